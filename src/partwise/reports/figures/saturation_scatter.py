"""How often each gate unit is closed and open (Baan et al. 2019, Figure 4), with the diagonal of the always saturated."""

from __future__ import annotations

import numpy as np
import xarray as xr

from partwise.reports.figures._figure import COLOURS, FAINT, Figure, Panel, drawing, panel

GATES = {"reset_gate": ("#7b4fb5", "o"), "update_gate": ("#2a9d62", "^")}


def saturation_scatter(saturation: xr.Dataset) -> Figure:
    """`saturation` has left, right and between, dims (gate, member, unit)."""
    sides = sorted({str(gate).split(".")[0] for gate in saturation.gate.values}, reverse=True)
    panels = [_panel(saturation, side, arm) for side in sides for arm in COLOURS]
    table = saturation[["left", "right", "between"]].mean("unit").to_dataframe().reset_index()
    return Figure(
        "gate-saturation",
        "Gate saturation",
        "Each mark is one unit of one model of each arm: the fraction of steps at which its gate is below .1 (left-saturated) "
        "and above .9 (right-saturated). In the convention used here, that of the paper's code, an update gate of 1 keeps the "
        "old state; in the paper's own formula the two axes of the update gates change places.",
        panels,
        table[["arm", "seed", "gate", "left", "right", "between"]],
    )


def _panel(saturation: xr.Dataset, side: str, arm: str) -> Panel:
    member = saturation.isel(member=int(np.flatnonzero(saturation.arm.values == arm)[0]))
    words = []
    with drawing(3.2, 3.0) as axes:
        axes.plot((0, 1), (1, 0), color=FAINT, linewidth=0.8)
        for gate, (colour, mark) in GATES.items():
            one = member.sel(gate=f"{side}.{gate}")
            axes.plot(
                one.left, one.right, mark, color=colour, alpha=0.35, markersize=3.5, linewidth=0,
                label=gate.replace("_", " "), rasterized=True,
            )  # fmt: skip
            words.append(f"{gate.replace('_', ' ')} left {float(one.left.mean()):.2f}, right {float(one.right.mean()):.2f}")
        axes.set(title=f"{side}, {arm}", xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
        axes.set(xlabel="fraction left-saturated", ylabel="fraction right-saturated")
        axes.legend(loc="upper right", fontsize=8)
        return panel(axes, f"gate-saturation-{side}-{arm}", f"Gates of the {side}, {arm}, on average: {'; '.join(words)}.")
