"""Train a small population of your own, look at one model's gates, and see what it attends to.

Run it with `python examples/train_your_own_population.py FOLDER`; it takes about ten seconds on one core.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

import partwise as pw
from partwise.tasks import lookup_tables
from partwise.tasks._encoding import Vocabulary

WATCHED = ("validation", "heldout_compositions", "new_compositions")


def main(folder: Path) -> None:
    # 1. A task: six tables of two bits, drawn from seed 0.
    task = lookup_tables.generate(lookup_tables.Options(tables=6, bits=2, validation_rows=8, heldout_inputs=1), seed=0)
    words = len(Vocabulary.source(task)), len(Vocabulary.target(task))

    # 2. A population: a baseline and a guided model from each of two seeds, trained as one.
    plans = tuple(
        pw.MemberPlan(member=pw.Member(f"{arm}-{seed}", seed, {"arm": arm}), guidance=weight)
        for seed in (0, 1)
        for arm, weight in (("baseline", 0.0), ("guided", 1.0))
    )
    architecture = pw.Seq2Seq(source_words=words[0], target_words=words[1], hidden=64)
    config = pw.TrainingConfig(epochs=60, batch_size=8, learning_rate=0.003)
    pw.train(pw.RunSpec(architecture, plans, (task,) * len(plans), config, WATCHED), folder)

    # 3. The trained members: their gates over time, and where they look.
    population = pw.load(folder / "checkpoints" / "selected")
    example = task.splits["heldout_compositions"][0]
    ids = torch.tensor([Vocabulary(population.words["source"]).ids(example.source)])
    recorder = pw.Recorder(["decoder.update_gate"])
    one = population.member("guided-0")
    population.architecture.forward(one, ids, torch.tensor([len(example.source)]), steps=4, tap=recorder)
    gates = recorder["decoder.update_gate"]
    print(f"update gates of guided-0 {tuple(gates.shape)}: {(gates > 0.9).float().mean():.0%} above .9, "
          f"{(gates < 0.1).float().mean():.0%} below .1")  # fmt: skip
    looked = pw.attention_map(population, [example])
    for name in population.names:
        seen = looked.attention.sel(member=name, sentence=0)
        said = " ".join(looked.written.sel(member=name, sentence=0).values)
        print(f"{name}: writes {said}; looks at positions {seen.argmax('source_time').values.tolist()}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
