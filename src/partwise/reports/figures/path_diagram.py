"""Paths over time and layers, as in Figures 1 and 2 of Lu et al. (2020): steps from left to right, layers from below."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from partwise.errors import InputError
from partwise.methods.influence_paths.graph import State
from partwise.reports.figures._figure import FAINT, INK, Panel, drawing, panel

POSITIVE, NEGATIVE = "#c0392b", "#3b76b8"
_PLACES = {  # within a step and layer, by node
    "i": (-0.95, 0.0), "f": (-0.95, 0.5), "g": (-0.45, 0.0), "r": (-0.95, 0.0), "z": (-0.95, 0.5), "n": (-0.45, 0.0),
    "c": (0.1, 0.5), "o": (0.1, 0.0), "h": (0.62, 0.95),
}  # fmt: skip
_STEP, _LAYER = 2.4, 1.75
_WIDEST = 4.0  # points
_BOX = "round,pad=0.02,rounding_size=0.12"


def path_diagram(
    paths: Sequence[str],
    influences: Sequence[float],
    *,
    words: Sequence[str] | None = None,
    name: str = "paths",
    title: str = "",
) -> Panel:
    """`paths` are labels, drawn as wide as their influence is large; red is positive, blue negative. `words` stand below
    the steps.

    `panel.svg` is the drawing, `panel.png()` the same as pixels.
    """
    if not len(paths) or len(paths) != len(influences):
        raise InputError(
            f"paths and influences must be equally many, and at least one; found {len(paths)} and {len(influences)}"
        )
    nodes = [label.split(">") for label in paths]
    places = [State.parse(node) for path in nodes for node in path[1:-1]]
    steps, layers = 1 + max(place.step for place in places), 1 + max(place.layer for place in places)
    names = list(words) if words is not None else [f"step {step}" for step in range(steps)]
    if len(names) < steps:
        raise InputError(f"words holds {len(names)}; these paths have {steps} steps")
    scale = _WIDEST / max(abs(value) for value in influences)
    with drawing(1.1 + 1.35 * steps, 0.9 + 1.15 * layers) as axes:
        _frame(axes, steps, layers, names)
        order = sorted(range(len(nodes)), key=lambda number: abs(influences[number]))
        for number in order:  # the strongest on top
            _draw(axes, nodes[number], influences[number], scale, steps, layers, bend=0.12 + 0.05 * (number % 3))
        axes.set_title(title)
        strongest = order[-1]
        says = (
            f"{len(paths)} paths over {steps} steps and {layers} layers. The strongest, {paths[strongest]}, has an "
            f"influence of {influences[strongest]:.3g}."
        )
        return panel(axes, name, says)


def _frame(axes: Axes, steps: int, layers: int, words: Sequence[str]) -> None:
    axes.set(xlim=(-1.4, _STEP * (steps - 1) + 2.1), ylim=(-1.15, _LAYER * (layers - 1) + 1.5), aspect="equal")
    axes.axis("off")
    for step in range(steps):
        axes.text(_STEP * step, -1.0, words[step], ha="center", va="bottom", color=INK, fontsize=9)
        for layer in range(layers):
            x, y = _STEP * step - 1.15, _LAYER * layer - 0.2
            axes.add_patch(FancyBboxPatch((x, y), 2.0, 1.35, boxstyle=_BOX, fill=False, edgecolor=FAINT, linewidth=0.7))


def _draw(axes: Axes, path: Sequence[str], influence: float, scale: float, steps: int, layers: int, bend: float) -> None:
    colour = POSITIVE if influence > 0 else NEGATIVE
    places = [_place(node, steps, layers) for node in path]
    for start, end in itertools.pairwise(places):
        arrow = FancyArrowPatch(
            start, end, connectionstyle=f"arc3,rad={bend}", arrowstyle="-", color=colour, alpha=0.75,
            linewidth=max(0.4, abs(influence) * scale), shrinkA=0, shrinkB=0, capstyle="round",
        )  # fmt: skip
        axes.add_patch(arrow)
    for node, (x, y) in zip(path, places, strict=True):
        axes.plot(x, y, "o", color=colour, markersize=3.2)
        text = {"x": "x", "q": "q"}.get(node, node[0])
        axes.text(x + 0.06, y + 0.07, text, color=INK, fontsize=7)


def _place(node: str, steps: int, layers: int) -> tuple[float, float]:
    if node == "x":
        return -0.2, -0.62
    if node == "q":
        return _STEP * (steps - 1) + 1.6, _LAYER * (layers - 1) + 0.95
    name, layer, step = State.parse(node)
    x, y = _PLACES[name]
    return _STEP * step + x, _LAYER * layer + y
