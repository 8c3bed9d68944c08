"""Group size, gate saturation and accuracy over the epochs of training, with seed bands."""

from __future__ import annotations

import numpy as np
import xarray as xr

from partwise.intervals import t_interval
from partwise.reports.figures._figure import COLOURS, LINES, Figure, Panel, drawing, panel


def emergence_curves(found: xr.Dataset, history: xr.Dataset) -> Figure:
    """`found` has size (epoch, target, member) and distance (epoch, gate, member); `history` the accuracies."""
    panels = [_panel(found["size"].sel(target=target), f"units: {target}", "units") for target in found.target.values]
    panels += [_panel(found.distance.sel(gate=gate), f"distance: {gate}", "distance") for gate in found.gate.values[-2:]]
    epochs = [int(epoch) for epoch in found.epoch.values]
    new = history.accuracy.sel(split="new_compositions", epoch=epochs)
    panels.append(_panel(new, "accuracy: new compositions", "accuracy"))
    return Figure(
        "emergence",
        "Composition emerging",
        "At the checkpoints of training: the units that carry a label, the gates' mean distance from the axes and the diagonal "
        "of the saturation figure, and accuracy. Lines are means, bands 95 % intervals over seeds. Epoch 0 is untrained.",
        panels,
        found["size"].to_dataframe().reset_index(),
    )


def _panel(values: xr.DataArray, title: str, axis: str) -> Panel:
    ends = []
    with drawing(3.6, 2.4) as axes:
        for arm, colour in COLOURS.items():
            curves = values.transpose("epoch", "member").values[:, values.arm.values == arm]
            mean = np.array([np.nanmean(row) if np.isfinite(row).any() else np.nan for row in curves])
            intervals = [t_interval(row[np.isfinite(row)].tolist()) or (np.nan, np.nan) for row in curves]
            low, high = np.array(intervals).T
            axes.plot(values.epoch, mean, color=colour, linestyle=LINES[arm], marker=".", label=arm)
            axes.fill_between(values.epoch, low.clip(0), high, color=colour, alpha=0.15, linewidth=0)
            ends.append(f"{arm} {mean[0]:.2f} to {mean[-1]:.2f}")
        axes.set_xscale("symlog", linthresh=1)
        axes.set_xticks([int(epoch) for epoch in values.epoch.values], [str(int(epoch)) for epoch in values.epoch.values])
        axes.minorticks_off()
        axes.set(title=title, xlabel="epoch", ylabel=axis)
        axes.legend(fontsize=8)
        name = "".join(letter if letter.isalnum() else "-" for letter in title.lower())
        return panel(axes, f"emergence-{name}", f"{title} over training: {'; '.join(ends)}.")
