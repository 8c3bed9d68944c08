"""One dot a model in rows of named cases, arms beside each other: the plain figure for group sizes and ablations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from partwise.reports.figures._figure import COLOURS, INK, MARKERS, Panel, drawing, panel

OTHERS = ("#5b8c5a", "#8a6fb0", "#a06b4a", "#777777")
Cases = Mapping[str, Mapping[str, np.ndarray]]  # row: series: one value a model


def value_dots(
    cases: Cases, name: str, title: str, axis: str, *, published: Mapping[str, Mapping[str, float]] | None = None,
    span: tuple[float, float] | None = None, log: bool = False,
) -> Panel:  # fmt: skip
    """`cases[row][series]` holds the values; `published[row][series]` a diamond."""
    series = list(dict.fromkeys(key for row in cases.values() for key in row))
    styles = _styles(series)
    words = []
    with drawing(6.2, 0.9 + 0.42 * len(cases)) as axes:
        for place, (row, values) in enumerate(cases.items()):
            for number, key in enumerate(series):
                if key not in values:
                    continue
                known = np.asarray(values[key], float)
                height = place + (number - (len(series) - 1) / 2) * 0.24
                colour, mark = styles[key]
                axes.plot(known, np.full(len(known), height), mark, color=colour, alpha=0.65, markersize=5)
                words.append(f"{row}, {key}: {np.nanmean(known):.3g}")
                theirs = (published or {}).get(row, {}).get(key)
                if theirs is not None:
                    axes.plot(theirs, height, "D", markerfacecolor="none", markeredgecolor=INK, markersize=8)
        for key in series:
            colour, mark = styles[key]
            axes.plot([], [], mark, color=colour, label=key)
        if published:
            axes.plot([], [], "D", markerfacecolor="none", markeredgecolor=INK, label="published")
        axes.set_yticks(range(len(cases)), list(cases))
        axes.set_ylim(len(cases) - 0.4, -0.6)
        axes.set(title=title, xlabel=axis)
        if span is not None:
            axes.set_xlim(*span)
        if log:
            axes.set_xscale("log")
        axes.grid(axis="x", alpha=0.2)
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0 if not title else 1.08), ncols=4, fontsize=8)
        return panel(axes, name, f"{title or axis}. Means: {'; '.join(words)}.")


def _styles(series: Sequence[str]) -> dict[str, tuple[str, str]]:
    others = iter(zip(OTHERS, ("^", "v", "P", "X"), strict=True))
    return {key: (COLOURS[key], MARKERS[key]) if key in COLOURS else next(others) for key in series}
