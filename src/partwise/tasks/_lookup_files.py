"""Reader for the published samples: a folder of .tsv files with the columns source, target, attention indices.

1. The tables are read off the rows of train.tsv that hold one table.
2. Every row of every file is derived again from its source. The target must agree; attention may point to any position of the
   source, since a task may want any alignment. No row of train may stand in another file.
3. All faults are reported together, each with its file and line.
"""

from __future__ import annotations

import re
from pathlib import Path

from partwise.errors import InputError
from partwise.tasks._contract import Example
from partwise.tasks._lookup_rows import Tables, row

REQUIRED = ("train", "validation", "heldout_inputs", "heldout_compositions", "heldout_tables", "new_compositions")
OPTIONAL = ("longer_compositions_seen", "longer_compositions_incremental", "longer_compositions_new")
_SHOWN = 5
_BITS = re.compile("[01]+")

Line = tuple[str, list[str], list[str], list[str]]  # place, source, target, attention


def read(folder: Path) -> tuple[Tables, dict[str, list[Example]]]:
    """The tables, and the examples of every split that the folder holds."""
    missing = [f"{split}.tsv" for split in REQUIRED if not (folder / f"{split}.tsv").is_file()]
    if missing:
        raise InputError(f"{folder}: not a lookup-table sample, missing {', '.join(missing)}")
    present = [*REQUIRED, *(split for split in OPTIONAL if (folder / f"{split}.tsv").is_file())]
    faults: list[str] = []
    lines = {split: _lines(folder / f"{split}.tsv", faults) for split in present}
    tables = _tables(lines["train"], faults)
    _nothing_in_two_places(lines, faults)
    rows = {split: [made for line in lines[split] if (made := _row(tables, line, faults))] for split in present}
    if faults:
        more = f"; and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        raise InputError("; ".join(faults[:_SHOWN]) + more)
    return tables, rows


def _nothing_in_two_places(lines: dict[str, list[Line]], faults: list[str]) -> None:
    trained = {tuple(source) for _, source, _, _ in lines["train"]}
    for split in lines:
        for place, source, _, _ in lines[split] if split != "train" else ():
            if tuple(source) in trained:
                faults.append(f"{place}: {' '.join(source)!r} stands in train too, so nothing was held out")


def _lines(path: Path, faults: list[str]) -> list[Line]:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as UTF-8 text ({error})") from None
    lines: list[Line] = []
    for number, line in enumerate(text.splitlines(), start=1):
        columns = line.split("\t")
        place = f"{path.parent.name}/{path.name}:{number}"
        if len(columns) != 3:
            faults.append(f"{place}: {len(columns)} columns, expected 3 (source, target, attention indices)")
            continue
        source, target, attention = (column.split(" ") for column in columns)
        lines.append((place, source, target, attention))
    if not lines and not faults:
        faults.append(f"{path.parent.name}/{path.name}: no rows")
    return lines


def _tables(train: list[Line], faults: list[str]) -> Tables:
    found: Tables = {}
    for place, source, target, _ in train:
        if len(source) == 3 and source[2] == "." and len(target) == 2:
            x, name, _ = source
            if found.setdefault(name, {}).setdefault(x, target[1]) != target[1]:
                faults.append(f"{place}: {name}({x}) is {target[1]} here and {found[name][x]} before")
    inputs = {x for table in found.values() for x in table}
    odd = sorted(x for x in inputs if not _BITS.fullmatch(x))
    if odd:
        faults.append(f"train.tsv: unknown token {odd[0]!r}; inputs are strings of 0 and 1")
    for name, table in found.items():
        gone = sorted(inputs - set(table))
        if gone:
            faults.append(f"train.tsv: table {name} is not given alone on {', '.join(gone)}")
        if len(set(table.values())) < len(table) or not set(table.values()) <= inputs:
            faults.append(f"train.tsv: table {name} does not map the inputs one to one onto themselves")
    if not found:
        faults.append("train.tsv: no row holds a single table (`x tA .`), so the tables cannot be known")
    return {name: found[name] for name in sorted(found, key=lambda name: (len(name), name))}


def _row(tables: Tables, line: Line, faults: list[str]) -> Example | None:
    place, source, target, attention = line
    if len(source) < 3 or source[-1] != ".":
        faults.append(f"{place}: source {' '.join(source)!r} is not `x tA ... .`")
        return None
    x, parts = source[0], source[1:-1]
    strange = [part for part in parts if part not in tables]
    if strange:
        faults.append(f"{place}: unknown token {strange[0]!r}; tables are {', '.join(tables)}")
        return None
    if x not in tables[parts[0]]:
        faults.append(f"{place}: unknown token {x!r}; inputs are {', '.join(sorted(tables[parts[0]]))}")
        return None
    try:
        made = row(tables, parts, x)
    except KeyError:  # a table that is not total: already reported
        return None
    if tuple(target) != made.target:
        faults.append(f"{place}: target {' '.join(target)!r} contradicts the tables, which give {' '.join(made.target)!r}")
    indices = _attention(place, attention, len(source), len(made.alignment), faults)
    if indices is None:
        return None
    return Example(made.source, made.target, indices, made.derivation, made.probes)


def _attention(place: str, written: list[str], sources: int, steps: int, faults: list[str]) -> tuple[int, ...] | None:
    if not all(index.isascii() and index.isdigit() and len(index) < 6 for index in written):
        faults.append(f"{place}: attention {' '.join(written)!r} is not a row of positions")
        return None
    indices = tuple(int(index) for index in written)
    if len(indices) != steps:
        faults.append(f"{place}: {len(indices)} attention indices, expected {steps} (one a target token and one for the end)")
        return None
    beyond = [index for index in indices if index >= sources]
    if beyond:
        faults.append(f"{place}: attention index {beyond[0]} is out of range; the source has positions 0 to {sources - 1}")
        return None
    return indices
