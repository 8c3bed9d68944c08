"""The study of long-range rules on a tiny configuration: every part of it, its claims, and its page."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr

import partwise as pw
from partwise.cli import main
from partwise.studies.long_range_rules import STUDY, recipe

TINY = dataclasses.replace(
    recipe.PRESETS["quick"], types=30, tokens=4000, validation_tokens=400, width=8, streams=4, window=10, epochs=4,
    shown_epoch=2, keep_epochs=(0, 1, 2, 4), seeds=2, conduits_tried=(2, 8), occurrences_tried=(10, 100), conduits=10, rules=50,
    copies_tried=(5, 20), conduits_predicted=(8,), fault_copies=30, optimised=(8, 100), windows=6, test_window=14,
)  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("rules") / "out"
    parts = ",".join(part.name for part in STUDY.parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(recipe.PRESETS, "quick", TINY)
        patch.setitem(STUDY.presets, "quick", TINY.seeds)
        assert main(["study", "long-range-rules", "--out", str(out), "--jobs", "2", "--parts", parts]) == 0
    return out


def opened(finished: Path, name: str) -> xr.Dataset:
    with xr.open_dataset(finished / "results" / f"{name}.nc", engine="scipy") as dataset:
        return dataset.load()


def test_every_claim_of_direction_is_judged_where_its_models_are(finished: Path) -> None:
    claims = {claim["id"]: claim for claim in json.loads((finished / "claims.json").read_text())}
    kinds = {claim.id: claim.kind for claim in STUDY.claims}
    assert list(claims) == list(kinds)
    left_out = {"longer-needs-more-2-4", "longer-needs-more-4-8", "open-above-conduit-4"}
    left_out |= {f"{name}-true" for name in left_out if name.startswith("longer")}
    left_out |= {name for name in kinds if name.startswith("interaction-raises")}  # no models with 1,000 rules here
    left_out |= {f"{when}-{kind}-{k}-{arm}" for when in ("early", "late") for kind in ("seen", "unseen") for k in (2, 4)
                 for arm in ("some", "many")}  # fmt: skip
    numbers = {"error-small-frequency": 8, "error-small-predictability": 6}
    numbers |= {"decomposition-means-frequency": 4, "decomposition-means-predictability": 6}
    for name, claim in claims.items():
        expected = 0 if kinds[name] == "size" or name in left_out else numbers.get(name, 2)
        assert claim["n"] == expected, name
        assert (claim["verdict"] == "not run") == (expected == 0), name


def test_readings_are_what_the_models_say(finished: Path) -> None:
    """The model's own probability, once more from a checkpoint and the corpus, with nothing of the study's code between."""
    found = opened(finished, "frequency")
    assert dict(found.sizes) == {"epoch": 4, "member": 8, "windows": 2, "phrase": 2}
    assert (found.error < 1e-5).all()
    name = "k8-n100-random-1"
    folder = next(path for path in (finished / "runs").glob("frequency-*") if name in (path / "run.json").read_text())
    population = pw.load(folder / "checkpoints" / "epoch-0002").select([name])
    corpus = recipe.long_range_rules.generate(
        recipe.long_range_rules.Options(
            conduit=8, occurrences=100, setting="random", conduits=10, tokens=4000, types=30, validation_tokens=400, windows=6,
            window=14,
        ),
        seed=1,
    )  # fmt: skip
    for kind in ("seen", "unseen"):
        ids = torch.from_numpy(corpus.windows[kind][:, :-1]).long()
        with torch.no_grad():
            logits = population.architecture.forward(population.member(name), ids).logits[:, -1]
        probability = logits.softmax(-1)[:, 31].mean().item()
        reading = found.true_probability.sel(member=name, windows=kind, epoch=2).item()
        assert reading == pytest.approx(probability, rel=1e-5)
    alone = pw.contextual_decomposition(population, ids, (4, 5)).probability(31).mean().item()
    assert found.probability.sel(member=name, windows="unseen", phrase="open", epoch=2).item() == pytest.approx(alone, rel=1e-4)


def test_arms_and_facts(finished: Path) -> None:
    facts = opened(finished, "predictability-corpora")
    assert facts.copies.values.tolist() == [5, 5, 20, 20, 0, 0]
    assert facts.copies_mean.values == pytest.approx([5, 5, 20, 20, 0, 0], abs=1)
    assert (facts.rules == 50).all()
    assert (opened(finished, "fault-corpora").rules < 50).all()
    flow = opened(finished, "flow")
    assert np.isfinite(flow.state).all()
    assert dict(flow.sizes) == {"epoch": 4, "member": 6, "windows": 2}
    optimiser = opened(finished, "optimiser")
    assert sorted(zip(optimiser.momentum.values, optimiser.weight_decay.values, strict=True)) == [
        (0.0, 1e-4), (0.0, 1e-4), (0.9, 0.0), (0.9, 0.0),
    ]  # fmt: skip


def test_the_page_has_its_figures_and_its_doubts(finished: Path) -> None:
    page = (finished / "report.html").read_text()
    assert {path.stem for path in (finished / "figures").glob("*.csv")} == {
        "rule-frequency", "rule-prefixes", "predictability", "fault", "flow", "optimiser",
    }  # fmt: skip
    for words in (
        "What the corpora hold",
        "Decomposition tried out",
        "of the words are filler",
        "in truth: decomposition leaves",
    ):
        assert words in page
    assert "nan" not in page.split("What the corpora hold")[2].split("</table>")[0]


def test_it_reads_no_data(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["study", "long-range-rules", "--out", str(tmp_path / "out"), "--data-dir", str(tmp_path)]) == 2
    assert "generates its corpora from seeds" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
