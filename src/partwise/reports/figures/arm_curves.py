"""A quantity over training in several arms: the mean over models with its interval, and every model as a thin line."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from partwise.intervals import t_interval
from partwise.reports.figures._figure import Panel, drawing, panel

STYLES = (
    ("#3b76b8", "-", "o"),
    ("#e07b26", (0, (5, 1.5)), "s"),
    ("#5b8c5a", (0, (1, 1.2)), "^"),
    ("#8a6fb0", (0, (3, 1, 1, 1)), "v"),
)
Arms = Mapping[str, xr.DataArray]  # by name: dims (epoch, member)


def arm_curves(
    arms: Arms, name: str, title: str, axis: str, *, span: tuple[float, float] | None = None, width: float = 3.5
) -> Panel:
    """`span` bounds the axis, and the bands."""
    ends = []
    with drawing(width, 2.6) as axes:
        for (arm, values), (colour, line, mark) in zip(arms.items(), STYLES, strict=False):
            curves = values.transpose("epoch", "member").values
            epochs, mean = values.epoch.values, np.nanmean(curves, axis=1)
            intervals = [t_interval(row[np.isfinite(row)].tolist()) or (np.nan, np.nan) for row in curves]
            low, high = (np.clip(side, *span) if span else np.array(side) for side in zip(*intervals, strict=True))
            axes.plot(epochs, curves, color=colour, linewidth=0.5, alpha=0.4)
            axes.plot(epochs, mean, color=colour, linewidth=1.8, linestyle=line, marker=mark, markersize=3, label=arm)
            axes.fill_between(epochs, low, high, color=colour, alpha=0.15, linewidth=0)
            ends.append(f"{arm} ends at {mean[-1]:.3g}")
        axes.set(title=title, xlabel="epoch", ylabel=axis)
        if span:
            axes.set_ylim(span[0] - 0.03 * (span[1] - span[0]), span[1] + 0.03 * (span[1] - span[0]))
        axes.legend(fontsize=8, handlelength=3)
        return panel(axes, name, f"{title}, {axis} over training: {'; '.join(ends)}, on average.")
