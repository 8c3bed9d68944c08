"""How far each choice of the recipe moves each arm: every model of every cell as a dot."""

from __future__ import annotations

import numpy as np
import xarray as xr

from partwise.reports.figures._figure import COLOURS, MARKERS, Figure, Panel, drawing, panel

FACTORS = ("full_focus", "initialisation", "teacher_forcing")


def sensitivity_grid(grid: xr.Dataset, names: dict[str, str]) -> Figure:
    """`grid` holds all cells' members, labelled by the factors; one panel a split."""
    cells = sorted({tuple(cell) for cell in zip(*(grid[name].values for name in FACTORS), strict=True)}, key=_order)
    table = grid.accuracy.sel(split=list(names)).to_dataframe().reset_index()
    return Figure(
        "sensitivity-grid",
        "What the recipe decides",
        "Both arms under every combination of full focus, initialisation and teacher forcing. Each dot is one model "
        "(weights of the selected epoch); the first row is the published recipe.",
        [_panel(grid, cells, split, title) for split, title in names.items()],
        table[["arm", "seed", *FACTORS, "weights", "split", "accuracy"]],
    )


def _order(cell: tuple[str, str, float]) -> tuple[bool, bool, float]:
    return cell[0] != "yes", cell[1] != "uniform", float(cell[2])


def _panel(grid: xr.Dataset, cells: list[tuple[str, str, float]], split: str, title: str) -> Panel:
    words = []
    with drawing(3.9, 3.6) as axes:
        for place, cell in enumerate(cells):
            inside = np.all([grid[name].values == value for name, value in zip(FACTORS, cell, strict=True)], axis=0)
            for side, (arm, colour) in zip((-0.13, 0.13), COLOURS.items(), strict=True):
                values = grid.accuracy.sel(weights="selected", split=split).values[inside & (grid.arm.values == arm)]
                axes.plot(values, np.full(len(values), place + side), MARKERS[arm], color=colour, alpha=0.6, markersize=4.5,
                          label=arm if place == 0 else None)  # fmt: skip
                words.append(f"{cell_name(cell)}, {arm}: {np.nanmean(values):.2f}")
        axes.set_yticks(range(len(cells)), [cell_name(cell) for cell in cells])
        axes.set(xlim=(-0.04, 1.04), xlabel="sequence accuracy", title=title)
        axes.invert_yaxis()
        axes.grid(axis="y", alpha=0.2)
        axes.legend(loc="upper center", bbox_to_anchor=(0.4, -0.14), ncols=2, fontsize=8)
        return panel(axes, f"sensitivity-{split}", f"Recipe sensitivity on {title.lower()}. {'; '.join(words)}.")


def cell_name(cell: tuple[str, str, float]) -> str:
    """A cell of the grid in words."""
    focus = "focus" if cell[0] == "yes" else "no focus"
    initialisation = {"uniform": "U(±.08)", "pytorch": "PyTorch"}[str(cell[1])]
    return f"{focus}, {initialisation}, forcing {float(cell[2]):g}"
