"""Strong weights as edges between units, senders below and receivers above (Baan et al. 2019, Figure 2)."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.collections import LineCollection

from partwise.reports.figures._figure import Figure, Panel, drawing, panel

_POSITIVE, _NEGATIVE, _UNIT = "#c2452d", "#2f6db3", "#8a8f99"  # pixels cannot follow light and dark, so they suit both
_DPI = 100


def network(edges: xr.Dataset, graphs: xr.Dataset) -> Figure:
    """`edges` has dims (matrix, member, edge); `graphs` the graph numbers of all members, which go into the download."""
    panels = [
        _panel(edges.sel(matrix=matrix, member=member), str(matrix), str(member))
        for matrix in edges.matrix.values
        for member in edges.member.values
    ]
    numbers = ["gini_in", "gini_out", "polar_senders", "polar_receivers", "modularity"]
    table = graphs[numbers].to_dataframe().reset_index()
    return Figure(
        "network",
        "Strong connections",
        "The strongest 1 % of the weights of one matrix, from the sending units (below) to the receiving ones (above); red is "
        "positive, blue negative. One model of each arm; the download has the graph numbers of all.",
        panels,
        table[["arm", "seed", "matrix", *numbers]],
    )


def _panel(one: xr.Dataset, matrix: str, member: str) -> Panel:
    sender, receiver, weight = (one[name].values for name in ("sender", "receiver", "weight"))
    ends = np.stack((np.stack((sender, np.zeros(len(sender))), 1), np.stack((receiver, np.ones(len(sender))), 1)), 1)
    strength = np.abs(weight) / np.abs(weight).max()
    with drawing(3.9, 2.4) as axes:
        colours = [_POSITIVE if value > 0 else _NEGATIVE for value in weight]
        axes.add_collection(LineCollection(list(ends), colors=colours, linewidths=strength, alpha=0.5, rasterized=True))
        for level, units in ((0, sender), (1, receiver)):
            degree = np.bincount(units)
            named = np.flatnonzero(degree)
            axes.scatter(named, np.full(len(named), level), s=2 + degree[named], color=_UNIT, zorder=3, rasterized=True)
        axes.set(title=f"{matrix}, {member.replace('-', ' ')}", xlabel="unit", yticks=(0, 1))
        axes.set_yticklabels(("from", "to"))
        axes.autoscale_view()
        busiest = max(np.bincount(sender).max(), np.bincount(receiver).max())
        says = f"Strong weights of {matrix} in {member}: {len(weight)} edges; the busiest unit has {int(busiest)} of them."
        return panel(axes, f"network-{matrix.replace(' ', '-').lower()}-{member}", says, dpi=_DPI)
