"""Training members as a population against training them one after the other on fused modules, in one run on one thread.

Both sides train the same models (tests hold them equal) on rows of two tables, batch 1, with clipping and Adam. `plain` is
what a PyTorch user writes for one model: nn.GRU, nn.Linear, autograd, torch's fused Adam. Rounds alternate between the two
sides; the table gives medians over rounds and their range.

The memory limit: at batch 1 a step must at least read every recurrent weight once forward and once backward at each of its
steps in time, write every gradient once, and let Adam read four and write three numbers a parameter. The bandwidth is
measured in the same run by copying memory.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from benchmarks import plain_seq2seq
from partwise.models.seq2seq import Seq2Seq
from partwise.population import Member, Population
from partwise.tasks import lookup_tables
from partwise.training.adam import MemberAdam
from partwise.training.memory import keep_freed
from partwise.training.rows import data
from partwise.training.rows.step import TrainingStep

TASK = lookup_tables.generate()
WORDS = {"source_words": 19, "target_words": 12}
CASES = ((128, 1), (128, 4), (128, 10), (128, 16), (256, 10), (512, 1), (512, 5), (512, 10))


def population_step(hidden: int, members: int) -> tuple[Callable[[], None], int]:
    """A call that trains every member for one step; and the number of parameters a member has."""
    architecture = Seq2Seq(hidden=hidden, **WORDS)
    population = Population.initial(architecture, [Member(f"m{i}", i) for i in range(members)], ["uniform"] * members)
    optimiser = MemberAdam(population.store, torch.zeros_like(population.store), 0.001, 5.0)
    rows = data.stack([TASK] * members, "train")
    rows = type(rows)(**{name: getattr(rows, name)[:, long_rows(rows)] for name in rows.__dataclass_fields__})
    step = TrainingStep(population, rows, torch.tensor([float(i % 2) for i in range(members)]), optimiser)
    order = iter(torch.from_numpy(data.order(range(members), rows.source.shape[1], 1, 0)).repeat(100, 1, 1))
    forced = torch.zeros(members, dtype=torch.bool)
    return lambda: step(next(order), forced), population.layout.width


def plain_step(hidden: int) -> Callable[[], None]:
    """A call that trains one guided model for one step, on fused modules."""
    model = plain_seq2seq.PlainSeq2Seq(*WORDS.values(), 16, hidden)
    torch.nn.init.uniform_(model.output.weight, -0.08, 0.08)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.001, fused=True)
    rows = data.stack([TASK], "train")
    indices = iter(torch.tensor(long_rows(rows)).repeat(100).tolist())

    def step() -> None:
        row = next(indices)
        plain_seq2seq.step(model, optimiser, rows.source[0, row, None], rows.target[0, row, None], 1.0)

    return step


def long_rows(rows: data.Rows) -> list[int]:
    """Rows of two tables, so that no side gains from padding."""
    return [row for row in range(rows.source.shape[1]) if int(rows.source_length[0, row]) == 4]


def milliseconds(step: Callable[[], None], steps: int) -> float:
    start = time.perf_counter()
    for _ in range(steps):
        step()
    return (time.perf_counter() - start) / steps * 1e3


def bandwidth() -> float:
    """Bytes a millisecond that one thread moves: read and write of a block beyond every cache."""
    block, other = torch.ones(2**26), torch.empty(2**26)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        other.copy_(block)
        times.append(time.perf_counter() - start)
    return 2 * block.numel() * 4 / min(times) / 1e3


def least_milliseconds(hidden: int, parameters: int, bytes_per_ms: float) -> float:
    encoder, decoder = 3 * hidden * hidden, 9 * hidden * hidden  # recurrent maps; focus, attention query and key, input
    traffic = 4 * 2 * (encoder + decoder) + 8 * parameters  # four steps in time, forward and backward; gradient and Adam
    return traffic * 4 / bytes_per_ms


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    keep_freed()
    bytes_per_ms = bandwidth()
    print(f"torch {torch.__version__}, one thread, memory {bytes_per_ms / 1e6:.1f} GB/s, {rounds} rounds; ms a member and step")
    print("| hidden | members | plain, alone | population | ratio (range) | memory limit | population / limit |")
    print("|---|---|---|---|---|---|---|")
    for hidden, members in CASES:
        together, parameters = population_step(hidden, members)
        alone = plain_step(hidden)
        steps = max(4, 4000 // (hidden * members) * 8)
        milliseconds(together, 3)
        milliseconds(alone, 3)
        pairs = [(milliseconds(alone, 2 * steps), milliseconds(together, steps) / members) for _ in range(rounds)]
        ratios = [own / plain for plain, own in pairs]
        plain, own = (statistics.median(side) for side in zip(*pairs, strict=True))
        limit = least_milliseconds(hidden, parameters, bytes_per_ms)
        print(
            f"| {hidden} | {members} | {plain:.2f} | {own:.2f} | {statistics.median(ratios):.2f} "
            f"({min(ratios):.2f} to {max(ratios):.2f}) | {limit:.2f} | {own / limit:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
