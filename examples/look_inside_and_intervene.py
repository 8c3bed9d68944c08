"""Look inside a population, move a part of one model into another, freeze it there, and train the rest on.

Run `train_your_own_population.py FOLDER` first, then this one with the same FOLDER; it takes about ten seconds on one core.
"""

from __future__ import annotations

import sys
from pathlib import Path

import partwise as pw
from partwise.tasks import lookup_tables
from partwise.training import run

WATCHED = ("validation", "heldout_compositions", "new_compositions")


def main(folder: Path) -> None:
    task = lookup_tables.generate(lookup_tables.Options(tables=6, bits=2, validation_rows=8, heldout_inputs=1), seed=0)
    population = pw.load(folder / "checkpoints" / "selected")
    rows = [*task.splits["train"], *task.splits["heldout_compositions"], *task.splits["new_compositions"]]

    # 1. From how few units can the current table be read off the encoder's state? All members at once.
    group = pw.functional_group(population, rows, "encoder.hidden", "current_table")
    for name in population.names:
        one = group.sel(member=name)
        print(f"{name}: {one['size'].item():.0f} units reach {one.group_accuracy.item():.2f} (all units "
              f"{one.full_accuracy.item():.2f}, shuffled labels {one.shuffled_accuracy.item():.2f})")  # fmt: skip

    # 2. Each guided model gets the encoder of the baseline of its seed; the rest trains on with that part frozen.
    hosts, donors = (population.select([f"{arm}-{seed}" for seed in (0, 1)]) for arm in ("guided", "baseline"))
    mixed = pw.transplant(hosts, donors, ["encoder"])
    plans = tuple(pw.MemberPlan(member=member, guidance=1.0, frozen=("encoder",)) for member in mixed.members)
    config = pw.TrainingConfig(epochs=20, batch_size=8, learning_rate=0.003)
    spec = pw.RunSpec(population.architecture, plans, (task,) * len(plans), config, WATCHED, start=mixed)
    pw.train(spec, folder / "with-a-baseline-encoder")

    before, after = (run.results(there)[1].accuracy for there in (folder, folder / "with-a-baseline-encoder"))
    for name in mixed.names:
        values = [one.sel(weights="selected", split="heldout_compositions", member=name).item() for one in (before, after)]
        print(f"{name}: held-out compositions {values[0]:.2f}, with a frozen baseline encoder {values[1]:.2f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
