"""A run on running text small enough to train in a second (and, called as a script, a real process)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from partwise.models.language_model import LanguageModel
from partwise.population import Member
from partwise.tasks import long_range_rules
from partwise.training.run import train
from partwise.training.streams.spec import StreamConfig, StreamPlan, StreamSpec

OPTIONS: dict[str, Any] = {
    "conduit": 2, "occurrences": 50, "setting": "random", "tokens": 800, "types": 20, "validation_tokens": 210, "windows": 5,
    "window": 7,
}  # fmt: skip
CORPUS = long_range_rules.generate(long_range_rules.Options(**OPTIONS))


def spec(epochs: int = 3, **changes: Any) -> StreamSpec:
    given = {
        "architecture": LanguageModel(words=22, embedding=8, hidden=8),
        "plans": (
            StreamPlan(member=Member("plain", 0, {"arm": "plain"})),
            StreamPlan(member=Member("pushed", 1, {"arm": "pushed"}), momentum=0.5, weight_decay=1e-4),
        ),
        "corpora": (CORPUS, CORPUS),
        "config": StreamConfig(epochs=epochs, streams=4, window=7, keep_epochs=(3,)),
    }
    return StreamSpec(**given | changes)


if __name__ == "__main__":
    train(spec(epochs=int(sys.argv[2])), Path(sys.argv[1]))
