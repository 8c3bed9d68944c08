"""A figure: panels as SVG, what they say in words, and the table they were drawn from. Number and drawing never separate.

Each panel is a drawing of its own, so that a page can set them side by side on a desk and one below the other on a phone.
Text and lines are drawn in stand-in colours that the page's style sheet replaces, so that figures follow light and dark.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

INK, FAINT = "#010203", "#020304"  # stand-ins for var(--ink) and var(--faint)
COLOURS = {"baseline": "#3b76b8", "guided": "#e07b26"}
MARKERS = {"baseline": "o", "guided": "s"}  # colour is never the only difference
LINES = {"baseline": (0, (5, 1.5)), "guided": "-"}
_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9,
    "svg.fonttype": "none",
    "svg.hashsalt": "partwise",
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.frameon": False,
}


@dataclass(frozen=True)
class Panel:
    """One drawing: `name` for files, `says` for readers who cannot see it."""

    name: str
    says: str
    svg: str
    canvas: Canvas

    def png(self) -> bytes:
        """The same drawing as pixels, made only when asked for."""
        written = io.BytesIO()
        with mpl.rc_context(_STYLE):
            self.canvas.savefig(written, format="png", dpi=160, facecolor="white")
        return written.getvalue()


@dataclass(frozen=True)
class Figure:
    name: str
    title: str
    caption: str
    panels: Sequence[Panel]
    table: pd.DataFrame


@contextmanager
def drawing(width: float, height: float) -> Iterator[Axes]:
    """Axes in the house style; call `panel` on them before the block ends."""
    with mpl.rc_context(_STYLE):
        yield Canvas(figsize=(width, height), layout="constrained").subplots()


def panel(axes: Axes, name: str, says: str, dpi: int = 160) -> Panel:
    """`dpi` is that of what is drawn as pixels; lines and text are drawn as such."""
    canvas = axes.figure
    assert isinstance(canvas, Canvas)
    svg = io.StringIO()
    canvas.savefig(svg, format="svg", metadata={"Date": None}, dpi=dpi)
    return Panel(name, says, svg.getvalue(), canvas)


def for_file(one: Panel) -> str:
    """The panel as a drawing that stands alone, dark on light."""
    return one.svg.replace(INK, "#222222").replace(FAINT, "#999999")


def for_page(one: Panel, prefix: str) -> str:
    """The panel as a part of a page: no XML prologue, ids unique on it, a text for screen readers, the page's colours."""
    svg = one.svg[one.svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}-{one.name}-", svg)
    svg = svg.replace(INK, "var(--ink, #222)").replace(FAINT, "var(--faint, #999)")
    return svg.replace("<svg ", f'<svg role="img" aria-label="{html.escape(one.says)}" ', 1)
