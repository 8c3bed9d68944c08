"""Accuracy over training, one panel a split: the mean over seeds with its interval, and every seed as a thin line."""

from __future__ import annotations

import numpy as np
import xarray as xr

from partwise.intervals import t_interval
from partwise.reports.figures._figure import COLOURS, LINES, Figure, Panel, drawing, panel


def learning_curves(history: xr.Dataset, names: dict[str, str]) -> Figure:
    """`history` has accuracy with dims (epoch, split, member) and the coordinate arm; `names` maps splits to titles."""
    table = history.accuracy.sel(split=list(names)).to_dataframe().reset_index()
    return Figure(
        name="learning-curves",
        title="Learning curves",
        caption="Sequence accuracy after each epoch. Thin lines are single models, the thick line is their mean, the band its "
        "95 % interval over seeds (by Student's t, cut off at 0 and 1). Epoch 0 is the untrained model.",
        panels=[_panel(history, split, title) for split, title in names.items()],
        table=table[["arm", "seed", "member", "split", "epoch", "accuracy"]],
    )


def _panel(history: xr.Dataset, split: str, title: str) -> Panel:
    ends = []
    with drawing(3.5, 2.5) as axes:
        for arm, colour in COLOURS.items():
            curves = history.accuracy.sel(split=split).values[:, history.arm.values == arm]
            mean = np.nanmean(curves, axis=1)
            axes.plot(history.epoch, curves, color=colour, linewidth=0.6, alpha=0.45)
            axes.plot(history.epoch, mean, color=colour, linewidth=2, linestyle=LINES[arm], label=arm)
            intervals = [t_interval(row[np.isfinite(row)].tolist()) for row in curves]
            low, high = np.array([interval or (np.nan, np.nan) for interval in intervals]).T
            axes.fill_between(history.epoch, low.clip(0, 1), high.clip(0, 1), color=colour, alpha=0.15, linewidth=0)
            ends.append(f"{arm} models end at {mean[-1]:.2f}")
        axes.set(title=title, ylim=(-0.03, 1.03), xlabel="epoch", ylabel="sequence accuracy")
        axes.legend(loc="upper left", fontsize=8, handlelength=2)
        return panel(axes, f"learning-curves-{split}", f"Learning curves on {title.lower()}: {' and '.join(ends)} on average.")
