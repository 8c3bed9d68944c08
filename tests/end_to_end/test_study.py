"""The command on a tiny configuration, from an empty folder to the page; and every way to call it wrong."""

from __future__ import annotations

import html
import json
import shutil
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr

import partwise as pw
from partwise import files
from partwise.cli import main
from partwise.studies._claims import above, near
from partwise.studies.attentive_guidance import STUDY, recipe

TINY = recipe.Preset(
    hidden=20, batch_size=32, epochs=2, seeds=2, keep_epochs=(0, 1), components=tuple(recipe.COMPONENTS),
    directions=tuple(recipe.DIRECTIONS), pairs=2, retrained=1, pruned_retrained=1,
)  # fmt: skip
KEYS = {"id", "study", "text", "published", "measured", "interval", "n", "preset", "rule", "verdict"}
FIGURES = {
    "accuracy-dots", "learning-curves", "attention-maps", "sensitivity-grid", "embedding-map", "network", "activation-ranges",
    "gate-saturation", "functional-groups", "group-rules", "substitution", "pruning", "emergence",
}  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every part of the study, tiny, in two processes."""
    out = tmp_path_factory.mktemp("study") / "out"
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        assert main(["study", "attentive-guidance", "--out", str(out), "--jobs", "2", "--parts", every_part()]) == 0
    return out


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    shrink(monkeypatch)


def shrink(patch: pytest.MonkeyPatch) -> None:
    for preset in ("quick", "paper"):
        patch.setitem(recipe.PRESETS, preset, TINY)
        patch.setitem(STUDY.presets, preset, TINY.seeds)


def every_part() -> str:
    return ",".join(part.name for part in STUDY.parts)


def test_everything_outsiders_rely_on_is_written(finished: Path) -> None:
    written = {str(path.relative_to(finished)) for path in finished.rglob("*") if path.is_file()}
    assert {"claims.json", "report.html", "provenance.json", "results/behaviour.nc", "figures/accuracy-dots.svg"} <= written
    assert not [name for name in written if name.endswith(".part")]
    claims = json.loads((finished / "claims.json").read_text())
    assert [claim["id"] for claim in claims] == [claim.id for claim in STUDY.claims]
    assert all(set(claim) >= KEYS for claim in claims)
    assert {claim["verdict"] for claim in claims} <= {"replicated", "not replicated", "inconclusive", "not run"}
    for claim, rule in zip(claims, STUDY.claims, strict=True):
        assert (claim["verdict"] == "not run") == (rule.kind == "size")  # quick tests directions only
        both_may_fail = claim["id"].startswith("strongest-above")  # then a pair of pruned models decides nothing
        assert claim["n"] == (0 if rule.kind == "size" else 2) or both_may_fail


def test_results_are_labelled_and_know_where_they_come_from(finished: Path) -> None:
    with xr.open_dataset(finished / "results" / "sensitivity.nc", engine="scipy") as grid:
        assert grid.sizes["member"] == 8 * 2 * 2
        cells = set(zip(grid.full_focus.values, grid.initialisation.values, grid.teacher_forcing.values, strict=True))
        assert len(cells) == 8
        made = json.loads(grid.attrs["provenance"])
        assert {"partwise", "torch", "commit", "made", "config"} <= set(made)
    with xr.open_dataset(finished / "results" / "spread.nc", engine="scipy") as star:
        pairs = sorted(zip(star.arm.values, star.seed.values, star.split_seed.values, strict=True))
        assert pairs == [(arm, *pair) for arm in ("baseline", "guided") for pair in ((0, 0), (0, 1), (1, 0))]


def test_a_difference_claim_is_the_paired_difference_of_the_results(finished: Path) -> None:
    claims = {claim["id"]: claim for claim in json.loads((finished / "claims.json").read_text())}
    with xr.open_dataset(finished / "results" / "behaviour.nc", engine="scipy") as data:
        picked = data.accuracy.sel(weights="selected", split="heldout_inputs").to_series()
    by_hand = [float(picked[f"guided-{seed}"] - picked[f"baseline-{seed}"]) for seed in (0, 1)]
    assert claims["guided-above-baseline-hi"]["values"] == pytest.approx(by_hand)
    assert claims["guided-above-baseline-hi"]["measured"] == pytest.approx(np.mean(by_hand))


def test_checkpoints_can_be_loaded_and_tapped(finished: Path) -> None:
    population = pw.load(finished / "runs" / "behaviour-1-of-2" / "checkpoints" / "last")
    assert population.words["source"][-1] == "."
    recorder = pw.Recorder(population.architecture.sites())
    ids = torch.tensor([[2, 10, 11, 18]])
    population.architecture.forward(population.member(population.names[0]), ids, torch.tensor([4]), 4, tap=recorder)
    for site in population.architecture.sites():
        assert recorder[site].shape[:2] == (1, 4), site


class Page(HTMLParser):
    """What a browser would fetch or run, and what a screen reader would read."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.unnamed: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        self.ids += [given["id"]] if given.get("id") else []
        if tag == "svg" and not given.get("aria-label"):
            self.unnamed.append(tag)
        if tag == "th" and not given.get("scope"):
            self.unnamed.append(tag)
        links = [given.get("src"), given.get("href"), given.get("xlink:href")]
        self.fetched += [link for link in links if link and not link.startswith(("data:", "#"))]


def test_the_page_is_self_contained_and_readable(finished: Path) -> None:
    text = (finished / "report.html").read_text()
    page = Page(text)
    assert page.fetched == []
    assert not {"script", "iframe", "link rel=stylesheet"} & set(page.tags)
    assert "url(http" not in text
    assert "@import" not in text
    assert page.unnamed == []
    assert len(page.ids) == len(set(page.ids))
    assert set(page.ids) >= {f"c1-{name}" for name in FIGURES}
    assert text.count('download="') == len(FIGURES)
    for claim in STUDY.claims:
        assert sentence(claim.text) in html.unescape(text)
    assert len(text) < 5_000_000


def sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def test_a_second_call_says_that_it_is_done(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (finished / "claims.json").read_bytes()
    assert call("--out", str(finished), "--resume", "--parts", every_part()) == 0
    assert "Already done" in capsys.readouterr().out
    assert (finished / "claims.json").read_bytes() == before


def call(*more: str) -> int:
    return main(["study", "attentive-guidance", "--jobs", "1", *more])


def complaint(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that a wrong call prints."""
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert printed.err.startswith("partwise: ")
    return printed.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["study", "attentive-guidence"], "unknown study 'attentive-guidence'. Did you mean 'attentive-guidance'?"),
        (["study"], "the following arguments are required: name. See `partwise study --help`."),
        (["study", "attentive-guidance", "--sed", "1"], "unrecognized arguments: --sed 1"),
        (["study", "attentive-guidance", "--seed", "x"], "argument --seed: invalid int value: 'x'"),
        (["study", "attentive-guidance", "--preset", "papr"], "unknown preset 'papr'. Did you mean 'paper'?"),
        (["study", "attentive-guidance", "--seeds", "0", "--seed", "-1"], "--seeds is 0; it must be 1 or more; --seed is -1"),
        (["study", "attentive-guidance", "--jobs", "0"], "--jobs is 0; it must be 1 or more"),
        (["study", "attentive-guidance", "--device", "tpu"], "unknown device 'tpu'."),
        (["study", "attentive-guidance", "--parts", "behavior"], "unknown part 'behavior'. Did you mean 'behaviour'?"),
        (["study", "attentive-guidance", "--data-dir", "/nowhere"], "--data-dir /nowhere: no such folder"),
        (["study", "attentive-guidance", "--checkpoint", "x"], "--checkpoint: attentive-guidance trains its own models"),
        (["study", "attentive-guidance", "--seed", "2147483647"], "--seed is 2147483647; with --seeds 2 it must stay below"),
        (
            ["study", "attentive-guidance", "--seeds", "1", "--parts", "spread"],
            "part spread compares seeds and needs --seeds 2",
        ),
        (["report", "/nowhere"], "/nowhere: no finished study here (claims.json is missing)"),
        (["reprot"], "invalid choice: 'reprot'"),
    ],
)
def test_wrong_calls_get_one_line_and_status_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert message in complaint(capsys)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_cuda_without_a_device_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert call("--device", "cuda", "--out", str(tmp_path / "out")) == 2
    assert "--device cuda: PyTorch finds no CUDA device here; use --device cpu" in complaint(capsys)
    assert not (tmp_path / "out").exists()


def test_the_report_needs_a_file_to_write_to(capsys: pytest.CaptureFixture[str], tmp_path: Path, finished: Path) -> None:
    for target in (tmp_path, tmp_path / "missing" / "page.html"):
        assert main(["report", str(finished), "--out", str(target)]) == 2
        assert f"--out {target}: must be a file in a folder that exists" in complaint(capsys)
    assert list(tmp_path.iterdir()) == []


def test_two_studies_on_one_page_do_not_mix(finished: Path, tmp_path: Path) -> None:
    assert main(["report", str(finished), str(finished), "--out", str(tmp_path / "page.html"), "--png"]) == 0
    page = Page((tmp_path / "page.html").read_text())
    assert len(page.ids) == len(set(page.ids))
    assert page.tags.count("main") == 1
    assert page.tags.count("article") == 2
    assert (finished / "figures" / "accuracy-dots.png").read_bytes().startswith(b"\x89PNG")


def test_a_start_that_was_killed_at_once_can_be_started_again(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "lock").touch()
    (out / ".study.json.part").write_text("{")
    assert call("--out", str(out), "--parts", "behaviour") == 0
    assert (out / "claims.json").is_file()


def test_two_processes_on_one_folder_are_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with files.locked(out):
        assert call("--out", str(out)) == 2
    assert "another process is writing here; wait for it, or choose another --out" in complaint(capsys)
    assert [path.name for path in out.iterdir()] == ["lock"]


def test_folders_that_must_not_be_touched(capsys: pytest.CaptureFixture[str], tmp_path: Path, finished: Path) -> None:
    assert call("--out", str(finished)) == 2
    assert "is not empty; add --resume to go on there, or choose another folder" in complaint(capsys)
    assert call("--out", str(finished), "--resume", "--seeds", "3") == 2
    assert "holds another configuration" in (line := complaint(capsys))
    assert "seeds: 2 there, 3 asked for" in line
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.tex").write_text("precious")
    assert call("--out", str(mine), "--resume") == 2
    assert "is not a study folder of partwise" in complaint(capsys)
    assert [path.name for path in mine.iterdir()] == ["thesis.tex"]
    assert call("--out", str(mine / "thesis.tex" / "out")) == 2
    assert "(Not a directory); choose another folder" in complaint(capsys)


def test_data_faults_are_found_before_anything_is_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert call("--data-dir", str(tmp_path), "--out", str(tmp_path / "out")) == 2
    assert "has no folder lookup/ with sample1 to sample5" in complaint(capsys)
    (tmp_path / "lookup" / "sample1").mkdir(parents=True)
    assert call("--data-dir", str(tmp_path), "--out", str(tmp_path / "out")) == 2
    assert "not a lookup-table sample, missing train.tsv" in complaint(capsys)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["results/behaviour.nc", "study.json", "state.json", "claims.json", "provenance.json"])
def test_a_damaged_file_is_named_and_not_trusted(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, finished: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(finished, copy, symlinks=True)
    path = copy / name
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    path.write_bytes(damaged)
    written_anew = name in ("claims.json", "provenance.json")  # a study makes them from its results
    study = ["study", "attentive-guidance", "--out", str(copy), "--resume"]
    for arguments in (["report", str(copy)], *([] if written_anew else [study])):
        assert main(arguments) == 2
        assert f"{name}: damaged (cut short or changed since it was written)" in complaint(capsys)


def test_rules_stand_beside_the_claims_that_were_declared() -> None:
    """The rules of the published numbers, as they were written before the first run."""
    rules = {claim.id: claim.rule for claim in STUDY.claims}
    assert rules["guided-above-baseline-nc"] == above(0.0)
    assert rules["nc-gap-large"] == above(0.3)
    assert rules["table-6-nc"] == near(0.87, 0.1)
    assert rules["table-5-hc"] == near(0.222, 0.1)
