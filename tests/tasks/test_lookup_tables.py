"""The lookup-table task: sizes and rules as published, every derivation redone here by hand, every malformed file refused."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import pytest

from partwise.errors import InputError
from partwise.tasks import lookup_tables
from partwise.tasks._contract import Example, Task
from partwise.tasks.lookup_tables import PUBLISHED, Options

SIZES = {
    "train": 232,
    "validation": 16,
    "heldout_inputs": 40,
    "heldout_compositions": 64,
    "heldout_tables": 192,
    "new_compositions": 32,
}
SAMPLES = range(1, 6)


def tables_of(task: Task) -> dict[tuple[str, str], str]:
    """(table, input) -> output, read off the rows that hold one table."""
    singles = [row for row in task.splits["train"] if len(row.source) == 3]
    return {(row.source[1], row.source[0]): row.target[1] for row in singles}


def mismatches(task: Task) -> int:
    """Rows whose target is not what the tables give from left to right, or whose derivation tells another story."""
    tables = tables_of(task)

    def wrong(row: Example) -> bool:
        x, *parts, stop = row.source
        target = [x]
        for part in parts:
            target.append(tables[part, target[-1]])
        told = [(step.part, step.before, step.after, step.source_position) for step in row.derivation]
        retold = [(part, target[i], target[i + 1], i + 1) for i, part in enumerate(parts)]
        return stop != "." or list(row.target) != target or told != retold

    return sum(wrong(row) for rows in task.splits.values() for row in rows)


@pytest.mark.parametrize("sample", SAMPLES)
def test_published_samples_have_the_published_counts_and_no_mismatch(data_dir: Path, sample: int) -> None:
    task = lookup_tables.read(data_dir / "lookup" / f"sample{sample}")
    assert {split: len(rows) for split, rows in task.splits.items()} == SIZES
    assert mismatches(task) == 0
    assert sum(len(row.source) == 3 for row in task.splits["train"]) == 64


def test_published_tables_are_those_of_the_files(data_dir: Path) -> None:
    found = tables_of(lookup_tables.read(data_dir / "lookup" / "sample1"))
    inputs = [format(i, "03b") for i in range(8)]
    wanted = {(f"t{k}", x): y for k, line in enumerate(PUBLISHED, 1) for x, y in zip(inputs, line.split(), strict=True)}
    assert found == wanted


@pytest.mark.parametrize("seed", range(3))
def test_generated_splits_follow_the_published_rules(seed: int) -> None:
    task = lookup_tables.generate(seed=seed)
    assert {split: len(task.splits[split]) for split in SIZES} == SIZES
    assert mismatches(task) == 0
    parts = {split: [row.source[1:-1] for row in rows] for split, rows in task.splits.items()}
    alone = {"t7", "t8"}
    seen = set(itertools.product([f"t{k}" for k in range(1, 7)], repeat=2))
    trained = {p for p in parts["train"] if len(p) == 2}
    held = set(parts["heldout_compositions"])
    assert len(trained) == 28
    assert len(held) == 8
    assert trained | held == seen
    assert set(parts["heldout_inputs"]) | set(parts["validation"]) == trained
    assert {len(alone & set(p)) for p in parts["heldout_tables"]} == {1}
    assert set(parts["new_compositions"]) == set(itertools.product(alone, repeat=2))
    rows = {split: {row.source for row in rows} for split, rows in task.splits.items()}
    assert sum(map(len, rows.values())) == len(set().union(*rows.values())) == sum(map(len, task.splits.values()))
    for p in parts["longer_compositions_seen"]:
        assert p[:2] in trained
        assert p[1:] in trained
    assert {sum(part in alone for part in p) for p in parts["longer_compositions_incremental"]} == {1}
    assert len(rows["longer_compositions_new"]) == 64


def test_every_table_is_a_bijection_and_seeds_differ() -> None:
    tables = [tables_of(lookup_tables.generate(seed=seed)) for seed in (0, 1)]
    for k in range(1, 9):
        assert len({y for (name, _), y in tables[0].items() if name == f"t{k}"}) == 8
    assert tables[0] != tables[1]


def test_generation_is_the_same_on_every_platform() -> None:
    """The hash was taken once, on Linux x86-64 with numpy 2; a change of the generator must change it knowingly."""
    assert lookup_tables.generate(seed=0).fingerprint().startswith("e86c66c70a9feca7")


def test_options_scale_the_task() -> None:
    options = Options(
        tables=4, bits=2, composition_length=3, heldout_tables=1, heldout_compositions=5, heldout_inputs=1, validation_rows=6
    )
    task = lookup_tables.generate(options, seed=3)
    sizes = {split: len(rows) for split, rows in task.splits.items()}
    assert sizes["train"] == 4 * 4 + (27 - 5) * 3
    assert (sizes["validation"], sizes["heldout_inputs"]) == (6, 22 - 6)
    assert (sizes["heldout_compositions"], sizes["heldout_tables"], sizes["new_compositions"]) == (5 * 4, 3 * 9 * 4, 4)
    assert mismatches(task) == 0


def test_a_row_says_what_can_be_probed_and_what_is_attended_to() -> None:
    row = next(row for row in lookup_tables.generate().splits["new_compositions"] if row.source[1:3] == ("t7", "t8"))
    assert row.alignment == (0, 1, 2, 3)
    assert row.probes == {"current_table": (None, "t7", "t8", None), "time_step": (0, 1, 2, None)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"heldout_tables": 8}, r"heldout_tables is 8; it must be below the number of tables \(8\)"),
        ({"heldout_compositions": 36}, "heldout_compositions is 36; there are 36, and"),
        ({"heldout_inputs": 8}, "heldout_inputs is 8; there are 8 inputs"),
        ({"validation_rows": 57}, "validation_rows is 57; the held-out inputs give 56 rows"),
        ({"bits": 0, "tables": -1}, "tables is -1; it must be at least 1; bits is 0"),
        ({"tables_from": "memory"}, "tables_from is 'memory'; allowed: drawn, published"),
        ({"tables_from": "published", "bits": 2}, "which means 8 tables of 3 bits; found 8 of 2"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Options(**options)


def write_sample(folder: Path) -> Path:
    """A sample in the published format, from the generator."""
    folder.mkdir()
    for split in SIZES:
        rows = lookup_tables.generate().splits[split]
        lines = ["\t".join((" ".join(r.source), " ".join(r.target), " ".join(map(str, r.alignment)))) for r in rows]
        (folder / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    return folder


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    task, made = lookup_tables.read(write_sample(tmp_path / "sample")), lookup_tables.generate()
    assert {split: list(rows) for split, rows in task.splits.items()} == {split: made.splits[split] for split in SIZES}


@pytest.mark.parametrize(
    ("split", "line", "message"),
    [
        ("train", "000 t1 .\t000 110", r"sample/train.tsv:233: 2 columns, expected 3"),
        ("validation", "000 t1 t9 .\t000 110 000\t0 1 2 3", r"validation.tsv:17: unknown token 't9'; tables are t1, t2"),
        ("validation", "0x0 t1 t2 .\t000 110 000\t0 1 2 3", r"validation.tsv:17: unknown token '0x0'; inputs are 000, 001"),
        (
            "new_compositions",
            "000 t7 .\t000 {t7(000)}\t0 1 9",
            "attention index 9 is out of range; the source has positions 0 to 2",
        ),
        ("new_compositions", "000 t7 .\t000 {t7(000)}\t0 1 -1", "attention '0 1 -1' is not a row of positions"),
        ("new_compositions", "000 t7 .\t000 {t7(000)}\t0 1 " + "9" * 5000, "is not a row of positions"),
        ("new_compositions", "000 t7 .\t000 {t7(000)}\t0 1 2", "'000 t7 .' stands in train too, so nothing was held out"),
        ("train", "<eos> t7 .\t<eos> 000\t0 1 2", "unknown token '<eos>'; inputs are strings of 0 and 1"),
        ("new_compositions", "000 t7 .\t000 {t7(000)}\t0 1", "2 attention indices, expected 3"),
        ("heldout_tables", "000 t7 .\t000 {wrong}\t0 1 2", "contradicts the tables, which give"),
        ("heldout_tables", "000 t7\t000 000\t0 1", "source '000 t7' is not `x tA ... .`"),
    ],
)
def test_malformed_rows_are_refused_with_file_and_line(tmp_path: Path, split: str, line: str, message: str) -> None:
    folder = write_sample(tmp_path / "sample")
    right = tables_of(lookup_tables.generate())["t7", "000"]
    wrong = "111" if right != "111" else "000"
    with (folder / f"{split}.tsv").open("a") as file:
        file.write(line.replace("{t7(000)}", right).replace("{wrong}", wrong) + "\n")
    with pytest.raises(InputError, match=message):
        lookup_tables.read(folder)


def test_other_faulty_samples_are_refused(tmp_path: Path) -> None:
    folder = write_sample(tmp_path / "sample")
    (folder / "validation.tsv").unlink()
    with pytest.raises(InputError, match=r"not a lookup-table sample, missing validation.tsv"):
        lookup_tables.read(folder)
    shutil.rmtree(folder)
    (write_sample(folder) / "validation.tsv").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="cannot be read as UTF-8"):
        lookup_tables.read(folder)
    shutil.rmtree(folder)
    text = (write_sample(folder) / "train.tsv").read_text()
    single = next(line for line in text.splitlines() if len(line.split("\t")[0].split()) == 3)
    (folder / "train.tsv").write_text(text.replace(single + "\n", ""))
    with pytest.raises(InputError, match="is not given alone on"):
        lookup_tables.read(folder)
