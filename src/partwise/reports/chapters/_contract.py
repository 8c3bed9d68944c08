"""What a chapter must offer: `figures(results)` and `tables(results)`, for whichever results are there."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True)
class Table:
    """A small table for the page: numbers that need no drawing."""

    title: str
    caption: str
    frame: pd.DataFrame
