"""A weight matrix of several members as heat maps on one colour scale, rows named (Baan et al. 2019, Figure 1)."""

from __future__ import annotations

import numpy as np
import xarray as xr

from partwise.reports.figures._figure import Figure, Panel, drawing, panel


def heat_map(weights: xr.DataArray, norms: xr.Dataset, title: str, caption: str) -> Figure:
    """`weights` has dims (member, row, column); `norms` the row norms of all members, which go into the data download."""
    reach = float(np.abs(weights.values).max())
    table = norms.norm.to_dataframe().reset_index()
    panels = [_panel(weights.sel(member=member), str(member), reach) for member in weights.member.values]
    return Figure("embedding-map", title, caption, panels, table[["arm", "seed", "row", "norm"]])


def _panel(matrix: xr.DataArray, member: str, reach: float) -> Panel:
    with drawing(5.2, 2.9) as axes:
        shown = axes.imshow(
            matrix.values, cmap="RdBu_r", vmin=-reach, vmax=reach, aspect="auto", interpolation="nearest", rasterized=True
        )
        axes.set_yticks(range(matrix.sizes["row"]), [str(row) for row in matrix.row.values])
        axes.set(title=member.replace("-", " "), xlabel="embedding dimension")
        axes.figure.colorbar(shown, ax=axes, pad=0.01, label="weight")
        largest = str(matrix.row.values[int(np.argmax((matrix**2).sum("column").values))])
        says = f"Heat map of {member}: one row a word; the row with the largest norm is {largest}."
        return panel(axes, f"embedding-map-{member}", says)
