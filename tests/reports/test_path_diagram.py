"""The drawing of paths: a wider line for a stronger path, a colour for its sign, every word below its step."""

from __future__ import annotations

import re

import pytest

import partwise as pw
from partwise.errors import InputError

PATHS = ["x>g0@0>c0@0>h0@0>g1@0>c1@0>c1@1>h1@1>q", "x>i0@0>c0@0>c0@1>h0@1>o1@1>h1@1>q"]


def test_widths_colours_and_words() -> None:
    drawn = pw.path_diagram(PATHS, [0.4, -0.2], words=["boys", "run"], title="agreement")
    strokes = re.findall(r"stroke: (#\w+);[^\"]*?stroke-width: ([\d.]+)", drawn.svg)
    widths = {colour: {float(width) for c, width in strokes if c == colour} for colour in ("#c0392b", "#3b76b8")}
    assert max(widths["#c0392b"]) == pytest.approx(4.0)
    assert 2.0 in {round(width, 6) for width in widths["#3b76b8"]}
    for text in ("boys", "run", "agreement"):
        assert f">{text}</text>" in drawn.svg
    assert "The strongest, x>g0@0>c0@0>h0@0>g1@0" in drawn.says
    assert drawn.png()[:4] == b"\x89PNG"


def test_wrong_input_is_named() -> None:
    with pytest.raises(InputError, match="paths and influences must be equally many, and at least one; found 2 and 1"):
        pw.path_diagram(PATHS, [1.0])
    with pytest.raises(InputError, match="words holds 1; these paths have 2 steps"):
        pw.path_diagram(PATHS, [1.0, 2.0], words=["boys"])
