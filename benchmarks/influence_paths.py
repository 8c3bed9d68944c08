"""Influence paths: all of them, the strongest of a long context, and sums over patterns, against a prefix tree and the
arithmetic.

Two layers of 650 units (random weights; speed does not depend on them), two threads, in one run:
- all 41,561 paths of five steps at 20 points: meeting in the middle against the prefix tree (the same batched products
  without the meeting, measured on one point of one sentence and multiplied), and the multiplications that the meeting
  itself needs, at the speed of one large product;
- the 20 strongest paths of twelve steps (about 1e10 paths), proved, at 10 Gauss-Legendre points; and of six steps against the
  full enumeration;
- the sum over a pattern at fifty steps.

    python -m benchmarks.influence_paths [--device cuda]
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

import partwise as pw
from partwise.methods.influence_paths import halves
from partwise.methods.influence_paths.graph import Graph

HIDDEN, WORDS, POINTS = 650, 1000, 20
ROUNDS = 3


def model(device: str) -> Any:
    torch.manual_seed(0)
    parts = nn.Embedding(WORDS, HIDDEN), nn.LSTM(HIDDEN, HIDDEN, 2), nn.Linear(HIDDEN, WORDS)
    for parameter in parts[1].parameters():
        nn.init.uniform_(parameter, -0.15, 0.15)  # as wide as a trained model's
    embedding, lstm, head = (part.to(device) for part in parts)
    return pw.wrap(embedding=embedding, recurrent=lstm, head=head)


def seconds(work: Callable[[], Any], device: str) -> tuple[float, float, float]:
    """(median, least, most) over rounds, the first one left out."""
    found = []
    for _ in range(ROUNDS + 1):
        start = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        found.append(time.perf_counter() - start)
    return float(np.median(found[1:])), min(found[1:]), max(found[1:])


def row(what: str, took: tuple[float, float, float], note: str) -> None:
    print(f"| {what} | {took[0]:.3f} | {took[1]:.3f} to {took[2]:.3f} | {note} |", flush=True)


def every_path(lm: Any, device: str) -> None:
    sentences = 4 if device == "cpu" else 256
    ids = torch.randint(WORDS, (sentences, 5), device=device)
    budget = "1GB" if device == "cpu" else "60GB"
    whole = seconds(lambda: pw.influence_paths(lm, ids, 0, (1, 2), points=POINTS, budget=budget), device)
    each = tuple(one / sentences for one in whole)
    graph = Graph("lstm", 2, 5)
    cut = halves.best_cut(graph)
    arithmetic = POINTS * 2 * (halves.products(graph, cut) * HIDDEN**2 + 41_561 * HIDDEN)
    limit = arithmetic / speed(device)
    row("all 41,561 paths of 5 steps, 20 points, a sentence", each, f"{each[0] / limit:.1f} x the arithmetic ({limit:.3f} s)")
    case = pw.influence_paths(lm, ids[:1], 0, (1, 2), points=POINTS).cases[0]
    part = case.part(torch.tensor([0], device=device), 0, 1)
    with torch.no_grad():
        traced = part.trace()
        gradient = part.gradient(traced)
        tree = seconds(lambda: halves.influences(traced, graph.steps - 1, gradient), device)
    scaled = tuple(POINTS * one for one in tree)
    row("the same by a prefix tree of tangents", scaled, f"{scaled[0] / each[0]:.0f} x as long")
    if device == "cuda":
        print(f"| sentences a second | {1 / each[0]:.0f} | | |")


def strongest(lm: Any, device: str) -> None:
    found: list[Any] = []
    long, short = torch.randint(WORDS, (1, 12), device=device), torch.randint(WORDS, (1, 6), device=device)
    took = seconds(lambda: found.append(pw.strongest_paths(lm, long, 0, (1, 2))), device)
    one = found[-1].isel(sentence=0)
    paths = pw.count_paths(steps=12, layers=2)
    row(
        "the 20 strongest of 12 steps",
        took,
        f"proven {bool(one.proven)}; {int(one.extended):,} beginnings of {paths:.1e} paths",
    )
    few = pw.strongest_paths(lm, short, 0, (1, 2)).isel(sentence=0)
    every = pw.influence_paths(lm, short, 0, (1, 2), points=10, rule="gauss-legendre").top(20)
    same = sum(a == b for a, b in zip(few.label.values, every.path, strict=True))
    print(f"| of 6 steps, against all 238,806 | | | {same} of 20 the same, in the same order |")


def pattern(lm: Any, device: str) -> None:
    ids = torch.randint(WORDS, (1, 50), device=device)
    took = seconds(lambda: pw.path_sum(lm, ids, 0, (1, 2), pattern="x>*>c1@*+>h1@*>q"), device)
    row("the sum over x>*>c1@*+>h1@*>q at 50 steps", took, f"of {float(pw.count_paths(steps=50, layers=2)):.0e} paths in all")


def speed(device: str) -> float:
    """Operations a second of a large product in float32 proper."""
    size = 2000 if device == "cpu" else 8192
    a, b = torch.randn(size, size, device=device), torch.randn(size, size, device=device)
    return 2 * size**3 / seconds(lambda: a @ b, device)[0]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    device = parser.parse_args().device
    torch.set_num_threads(2)
    warnings.filterwarnings("ignore", message="completeness")
    where = "two threads" if device == "cpu" else torch.cuda.get_device_name()
    print(f"torch {torch.__version__}, {where}, 2 layers of {HIDDEN} units, median of {ROUNDS} rounds")
    print("| what | seconds | range | |")
    print("|---|---|---|---|")
    lm = model(device)
    every_path(lm, device)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"| peak memory of the process so far (budget 1 GB, libraries included) | | | {peak} MB |")
    strongest(lm, device)
    pattern(lm, device)


if __name__ == "__main__":
    main()
