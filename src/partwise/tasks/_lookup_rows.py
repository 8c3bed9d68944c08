"""One row of the lookup-table task, with its derivation: shared by the generator and by the reader of published files."""

from __future__ import annotations

from collections.abc import Sequence

from partwise.tasks._contract import Application, Example

Table = dict[str, str]
Tables = dict[str, Table]


def row(tables: Tables, parts: Sequence[str], x: str) -> Example:
    """Apply `parts` to `x` from left to right and write down every step."""
    steps = []
    value = x
    for position, part in enumerate(parts, start=1):
        after = tables[part][value]
        steps.append(Application(part, position, value, after, target_position=position))
        value = after
    source = (x, *parts, ".")
    return Example(
        source=source,
        target=(x, *(step.after for step in steps)),
        alignment=tuple(range(len(source))),  # monotone; the full stop is what the end mark is about
        derivation=tuple(steps),
        probes={
            "current_table": (None, *parts, None),
            "time_step": (*range(len(source) - 1), None),  # 0 is the input string, as in the paper's Table 3
        },
    )
