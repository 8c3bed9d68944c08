"""The examples run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def said_by(example: str, *words: str) -> list[str]:
    command = [sys.executable, f"examples/{example}.py", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def test_train_a_population_look_inside_it_and_intervene(tmp_path: Path) -> None:
    folder = str(tmp_path / "run")
    trained = said_by("train_your_own_population", folder)
    assert trained[0].startswith("update gates of guided-0 (1, 4, 64)")
    assert [line.split(":")[0] for line in trained[1:]] == ["baseline-0", "guided-0", "baseline-1", "guided-1"]
    changed = said_by("look_inside_and_intervene", folder)
    names = ["baseline-0", "guided-0", "baseline-1", "guided-1", "guided-0", "guided-1"]
    assert [line.split(":")[0] for line in changed] == names


def test_decompose_an_lstm_of_ones_own() -> None:
    said = said_by("decompose_your_own_lstm")
    assert said[0].startswith("the open recurrence differs from nn.LSTM by")
    leads = [re.findall(r"by ([+-][\d.]+)", line) for line in said if " speaks for " in line]
    differences = [abs(float(after_round) - float(after_square)) for after_round, after_square in leads]
    assert len(differences) == 4
    assert differences[0] > 3 * max(differences[1:])  # the bracket that was opened makes the difference, and no other word
