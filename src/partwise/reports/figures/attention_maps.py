"""Attention of a baseline and a guided model on the same sentences, with what each wrote."""

from __future__ import annotations

import numpy as np
import xarray as xr

from partwise.reports.figures._figure import Figure, Panel, drawing, panel


def attention_maps(attention: xr.Dataset, names: dict[str, str]) -> Figure:
    """`attention` has dims (member, sentence, target_time, source_time), as `methods.attention_map` returns it."""
    panels = [
        _panel(attention.isel(member=member, sentence=sentence), names)
        for sentence in range(attention.sizes["sentence"])
        for member in range(attention.sizes["member"])
    ]
    table = attention.attention.to_dataframe().reset_index()
    return Figure(
        "attention-maps",
        "Where the models look",
        "Each row is one output step, each column one input symbol; a row's weights sum to 1. Both models have the same "
        "architecture and the same seed and read the same sentence; a word in brackets is what the row should have said.",
        panels,
        table,
    )


def _panel(one: xr.Dataset, names: dict[str, str]) -> Panel:
    rows, columns = [int(np.isfinite(one.attention.values).any(axis=axis).sum()) for axis in (1, 0)]
    weights = one.attention.values[:rows, :columns]
    written, wanted = one.written.values[:rows], one.target_word.values[:rows]
    steps = [str(word) if word == right else f"{word} ({right})" for word, right in zip(written, wanted, strict=True)]
    member, split = str(one.member.values), str(one.split.values)
    with drawing(3.5, 2.7) as axes:
        axes.imshow(weights, cmap="Purples", vmin=0, vmax=1, aspect="auto")
        for row, column in np.ndindex(*weights.shape):
            colour = "white" if weights[row, column] > 0.55 else "#222222"
            axes.text(column, row, f"{weights[row, column]:.2f}", ha="center", va="center", color=colour, fontsize=8)
        axes.set_xticks(range(columns), one.source_word.values[:columns])
        axes.set_yticks(range(rows), steps)
        axes.set_title(f"{member}: {names[split].lower()}")
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
        looked = ", ".join(
            f"{word} from {one.source_word.values[place]}" for word, place in zip(written, weights.argmax(axis=1), strict=True)
        )
        return panel(axes, f"attention-{member}-{split}", f"Attention of {member}: writes {looked} (where it looked most).")
