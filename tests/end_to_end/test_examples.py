"""The examples run as they stand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_train_your_own_population(tmp_path: Path) -> None:
    command = [sys.executable, "examples/train_your_own_population.py", str(tmp_path / "run")]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert said[0].startswith("update gates of guided-0 (1, 4, 64)")
    assert [line.split(":")[0] for line in said[1:]] == ["baseline-0", "guided-0", "baseline-1", "guided-1"]
