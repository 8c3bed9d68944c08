"""A run small enough to train in seconds, for tests that need a real one (and, called as a script, a real process)."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from partwise.models.seq2seq import Seq2Seq
from partwise.population import Member
from partwise.tasks import lookup_tables
from partwise.training.config import MemberPlan, TrainingConfig
from partwise.training.rows.spec import RunSpec
from partwise.training.run import train

OPTIONS = lookup_tables.Options(tables=3, bits=2, heldout_tables=1, heldout_compositions=1, heldout_inputs=1, validation_rows=1)
WATCHED = ("validation", "heldout_inputs", "new_compositions")


def spec(members: int = 4, epochs: int = 6, keep: tuple[int, ...] = (0, 2), **more: object) -> RunSpec:
    plans = tuple(
        MemberPlan(
            member=Member(f"m{i}", i, {"arm": "guided" if i % 2 else "baseline", "split_seed": 0}),
            guidance=float(i % 2),
            teacher_forcing=0.5 * (i % 3 == 0),
            frozen=("encoder.embedding", "decoder.input.bias") if i == 2 else (),
        )
        for i in range(members)
    )
    task = lookup_tables.generate(OPTIONS)
    settings = {"epochs": epochs, "batch_size": 3, "learning_rate": 0.01, "keep_epochs": keep} | more
    return RunSpec(
        Seq2Seq(source_words=10, target_words=8, encoder_embedding=4, hidden=16),
        plans,
        (task,) * members,
        TrainingConfig(**settings),  # type: ignore[arg-type]
        WATCHED,
    )


if __name__ == "__main__":
    device = sys.argv[3] if len(sys.argv) > 3 else "cpu"
    train(dataclasses.replace(spec(epochs=int(sys.argv[2])), device=device), Path(sys.argv[1]))
