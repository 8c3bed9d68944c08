"""Fixtures shared by all tests. Shapes are checked: pyproject.toml hooks jaxtyping and beartype into partwise."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with published data: PARTWISE_DATA, or ../shared/data beside the checkout; skipped where there is none."""
    folder = Path(os.environ.get("PARTWISE_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not (folder / "lookup").is_dir():
        pytest.skip("published data not found: set PARTWISE_DATA to a folder that holds lookup/sample1 to sample5")
    return folder
