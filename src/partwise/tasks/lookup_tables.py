"""Lookup tables (Liska et al. 2019): apply bijections of bit strings one after the other, strictly left to right.

A row reads `x tA tB .` and asks for `x tA(x) tB(tA(x))`: a copy of the input and every intermediate result. The splits:

1. train: every table alone on every input, and the compositions of seen tables that were not held out, less the
   inputs held out for each of them;
2. heldout_inputs and validation: those compositions on their held-out inputs, the validation rows drawn from among them;
3. heldout_compositions: the compositions of seen tables that were held out, on every input;
4. heldout_tables: compositions with exactly one of the tables that train shows only alone;
5. new_compositions: compositions of nothing but such tables;
6. longer_*: one table more. `seen`: every stretch of the trained length is a composition in train; `incremental`:
   exactly one table that train shows only alone; `new`: nothing but such tables. (The published files have rows of
   these three names too, but their rule was not published; this one is ours.)
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from partwise.errors import InputError
from partwise.randomness import generator
from partwise.tasks import _lookup_files
from partwise.tasks._contract import Example, Task
from partwise.tasks._lookup_rows import Table, Tables, row

PUBLISHED = (
    "110 001 101 010 011 000 111 100", "101 001 010 111 110 011 000 100", "111 101 010 100 011 000 001 110",
    "000 100 010 101 111 001 110 011", "001 000 110 100 101 010 011 111", "011 010 101 111 110 000 001 100",
    "011 110 000 100 001 111 101 010", "010 100 110 000 001 011 101 111",
)  # fmt: skip
"""The eight tables of the published samples: t1(000), t1(001), ..., t1(111); then t2; and so on."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Sizes of the task; the defaults are the published ones. `tables_from` is "drawn" (from the seed) or "published"."""

    tables: int = 8
    bits: int = 3
    composition_length: int = 2
    heldout_tables: int = 2
    heldout_compositions: int = 8
    heldout_inputs: int = 2
    validation_rows: int = 16
    tables_from: str = "drawn"

    def __post_init__(self) -> None:
        faults = list(self._faults())
        if faults:
            raise InputError.of(faults)

    def _faults(self) -> Iterable[str]:
        least = {"tables": 1, "bits": 1, "composition_length": 2}
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if isinstance(value, int) and value < least.get(name, 0):
                yield f"{name} is {value}; it must be at least {least.get(name, 0)}"
        if self.tables_from not in ("drawn", "published"):
            yield f"tables_from is {self.tables_from!r}; allowed: drawn, published"
        elif self.tables_from == "published" and (self.tables, self.bits) != (8, 3):
            yield f"tables_from is published, which means 8 tables of 3 bits; found {self.tables} of {self.bits}"
        if self.heldout_tables >= self.tables:
            yield f"heldout_tables is {self.heldout_tables}; it must be below the number of tables ({self.tables})"
            return
        compositions = (self.tables - self.heldout_tables) ** self.composition_length
        if self.heldout_compositions >= compositions:
            yield f"heldout_compositions is {self.heldout_compositions}; there are {compositions}, and train needs one"
        if self.heldout_inputs >= 2**self.bits:
            yield f"heldout_inputs is {self.heldout_inputs}; there are {2**self.bits} inputs, and train needs one"
        spare = (compositions - self.heldout_compositions) * self.heldout_inputs
        if self.validation_rows > spare:
            yield f"validation_rows is {self.validation_rows}; the held-out inputs give {spare} rows to draw from"


def generate(options: Options | None = None, seed: int = 0) -> Task:
    """Draw the tables, what is held out, and the order of train from a seed."""
    options = options or Options()
    tables = _tables(options, seed)
    names = list(tables)
    seen, alone = names[: len(names) - options.heldout_tables], names[len(names) - options.heldout_tables :]
    inputs = _bit_strings(options.bits)
    length = options.composition_length
    draw = generator(seed, "lookup tables", "splits")

    compositions = list(itertools.product(seen, repeat=length))
    order = draw.permutation(len(compositions))
    held = {compositions[i] for i in order[: options.heldout_compositions]}
    trained = [parts for parts in compositions if parts not in held]

    train: list[tuple[tuple[str, ...], str]] = [((name,), x) for name in names for x in inputs]
    unseen_inputs = []
    for parts in trained:
        out = set(draw.permutation(len(inputs))[: options.heldout_inputs])
        train += [(parts, x) for i, x in enumerate(inputs) if i not in out]
        unseen_inputs += [(parts, x) for i, x in enumerate(inputs) if i in out]
    unseen_inputs = [unseen_inputs[i] for i in draw.permutation(len(unseen_inputs))]

    def of(count: int, size: int) -> list[tuple[str, ...]]:
        """Compositions of `size` tables, `count` of them shown only alone."""
        return [p for p in itertools.product(names, repeat=size) if sum(t in alone for t in p) == count]

    def with_every_input(compositions: Iterable[tuple[str, ...]]) -> list[tuple[tuple[str, ...], str]]:
        return [(parts, x) for parts in compositions for x in inputs]

    known = set(trained)
    stretches = [p for p in of(0, length + 1) if p[:-1] in known and p[1:] in known]
    splits = {
        "train": [train[i] for i in draw.permutation(len(train))],
        "validation": unseen_inputs[: options.validation_rows],
        "heldout_inputs": unseen_inputs[options.validation_rows :],
        "heldout_compositions": with_every_input(p for p in compositions if p in held),
        "heldout_tables": with_every_input(of(1, length)),
        "new_compositions": with_every_input(itertools.product(alone, repeat=length)),
        "longer_compositions_seen": with_every_input(stretches),
        "longer_compositions_incremental": with_every_input(of(1, length + 1)),
        "longer_compositions_new": with_every_input(itertools.product(alone, repeat=length + 1)),
    }
    rows = {split: [row(tables, parts, x) for parts, x in pairs] for split, pairs in splits.items() if pairs}
    return _task(tables, rows, origin=f"generated, seed {seed}")


def read(folder: str | Path) -> Task:
    """Read a published sample (a folder of .tsv files). Every row is derived again from the tables and must agree."""
    tables, rows = _lookup_files.read(Path(folder))
    return _task(tables, rows, origin=f"read from {Path(folder).name}")


def _task(tables: Tables, rows: dict[str, list[Example]], origin: str) -> Task:
    inputs = sorted(next(iter(tables.values())))
    return Task("lookup-tables", (*inputs, *tables, "."), tuple(inputs), rows, origin)


def _tables(options: Options, seed: int) -> Tables:
    inputs = _bit_strings(options.bits)
    if options.tables_from == "published":
        outputs: Sequence[Sequence[str]] = [line.split() for line in PUBLISHED]
    else:
        draw = generator(seed, "lookup tables", "tables")
        outputs = [[inputs[i] for i in draw.permutation(len(inputs))] for _ in range(options.tables)]
    return {f"t{k + 1}": Table(zip(inputs, images, strict=True)) for k, images in enumerate(outputs)}


def _bit_strings(bits: int) -> list[str]:
    return [format(number, f"0{bits}b") for number in range(2**bits)]
