"""What a chapter must offer: `figures(results)`, `tables(results)` and `remarks(results, claims)`, for whichever results are
there. Remarks are sentences made from numbers, about claims that came out otherwise than published."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True)
class Table:
    """A small table for the page: numbers that need no drawing."""

    title: str
    caption: str
    frame: pd.DataFrame
