"""Over which range each of fifty random units moves (Baan et al. 2019, Figure 3)."""

from __future__ import annotations

import numpy as np
import xarray as xr

from partwise.randomness import generator
from partwise.reports.figures._figure import COLOURS, INK, Figure, Panel, drawing, panel

SHOWN, SEED = 50, 0


def activation_boxes(ranges: xr.Dataset) -> Figure:
    """`ranges` has `value` with dims (site, member, unit, level) and `specialisation` (site, member, unit)."""
    panels = [_panel(ranges.sel(site=site), str(site), arm) for site in ranges.site.values for arm in COLOURS]
    table = ranges.specialisation.to_dataframe().reset_index()
    return Figure(
        "activation-ranges",
        "Ranges of single units",
        f"{SHOWN} units drawn at random (seed {SEED}) of one model of each arm, on the rows of all test splits: whiskers are "
        "the full range, boxes the quartiles. The download has every unit's specialisation to one table.",
        panels,
        table[["arm", "seed", "site", "unit", "specialisation"]],
    )


def _panel(ranges: xr.Dataset, site: str, arm: str) -> Panel:
    member = ranges.isel(member=int(np.flatnonzero(ranges.arm.values == arm)[0]))
    units = generator(SEED, "units shown").permutation(ranges.sizes["unit"])[:SHOWN]
    low, first, middle, third, high = member.value.values[units].T
    with drawing(4.4, 2.3) as axes:
        places = np.arange(len(units))
        axes.vlines(places, low, high, color=COLOURS[arm], linewidth=0.8)
        axes.bar(places, third - first, bottom=first, color=COLOURS[arm], width=0.7, alpha=0.8)
        axes.plot(places, middle, "_", color=INK, markersize=4)
        axes.set(title=f"{site.split('.')[0]}, {arm}", ylim=(-1.05, 1.05), xlabel="unit", ylabel="activation", xticks=())
        says = f"Ranges of {len(units)} units, {site}, {arm}: the full range is {np.mean(high - low):.2f} on average."
        return panel(axes, f"activation-ranges-{site.split('.')[0]}-{arm}", says)
