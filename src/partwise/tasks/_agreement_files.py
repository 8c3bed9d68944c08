"""The published files of the number-agreement tasks: two rows an item, the right sentence and the wrong one, in four
columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from partwise.errors import InputError
from partwise.tasks._agreement_lexicon import Template
from partwise.tasks._contract import MinimalPair

_COLUMNS = ("sentence", "number", "correct or wrong", "item")


def read_task(path: Path, template: Template) -> list[MinimalPair]:
    """Every item of one file. Sentences may have words of their own, but not another shape than the template's."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 ({error.reason} at byte {error.start})") from None
    if not lines or len(lines) % 2:
        raise InputError(f"{path}: has {len(lines)} lines; each item needs two, the right sentence and the wrong one")
    return list(_pairs(path, lines, template))


def _pairs(path: Path, lines: list[str], template: Template) -> Iterator[MinimalPair]:
    positions = {slot.role: place for place, slot in enumerate(template.slots) if slot.role}
    for number in range(0, len(lines), 2):
        right, wrong = (_columns(path, number + 1 + which, lines[number + which]) for which in (0, 1))
        where = f"{path}, lines {number + 1} and {number + 2}"
        if (right[2], wrong[2]) != ("correct", "wrong") or right[1::2] != wrong[1::2]:
            raise InputError(f"{where}: are no pair; found {right[2]} {right[3]}, then {wrong[2]} {wrong[3]}")
        one, other = right[0].split(" "), wrong[0].split(" ")
        if one[:-1] != other[:-1] or one[-1] == other[-1]:
            raise InputError(f"{where}: must differ in the last word and in nothing else; found {right[0]!r} and {wrong[0]!r}")
        if len(one) != len(template.slots) + 1:
            raise InputError(f"{where}: have {len(one)} words, this task has {len(template.slots) + 1}")
        if right[1] not in template.conditions():
            raise InputError(f"{where}: number is {right[1]!r}; allowed: {', '.join(template.conditions())}")
        yield MinimalPair(tuple(one[:-1]), one[-1], other[-1], right[1], positions)


def _columns(path: Path, line: int, text: str) -> list[str]:
    columns = text.split("\t")
    if len(columns) != len(_COLUMNS):
        raise InputError(f"{path}, line {line}: has {len(columns)} columns, expected {len(_COLUMNS)}: {', '.join(_COLUMNS)}")
    return columns
