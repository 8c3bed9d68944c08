"""Training language models as a population against training them one after the other, in one run: ms a model and step.

`plain` is what a PyTorch user writes: nn.LSTM, cross_entropy, clip_grad_norm_, torch.optim.SGD, one model after the other. On a
CPU both sides use one thread. The limit counts the multiplications of the four maps, forwards and twice backwards, at the speed
of one large product of the same kind (tf32 on CUDA) measured in the same run.

    python -m benchmarks.stream_training [--device cuda] [--profile]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import nn

from partwise.layers.precision import fast_products
from partwise.models.language_model import LanguageModel
from partwise.population import Member
from partwise.tasks import long_range_rules
from partwise.training.memory import keep_freed
from partwise.training.streams.spec import StreamConfig, StreamPlan, StreamSpec
from partwise.training.streams.trainee import StreamsTrainee

CASES = {  # words, width, streams, window; how many members
    "cpu": (((102, 32, 10, 20), (1, 10)), ((102, 64, 20, 35), (1, 10)), ((1002, 200, 20, 35), (1, 4))),
    "cuda": (((1002, 200, 20, 35), (1, 8, 32, 64, 128)),),
}


def population_step(sizes: tuple[int, ...], members: int, device: str) -> Callable[[], None]:
    words, width, streams, window = sizes
    corpus = long_range_rules.generate(
        long_range_rules.Options(types=words - 2, tokens=streams * window * 60, setting="random", occurrences=100, conduit=4)
    )
    plans = tuple(StreamPlan(member=Member(f"m{i}", i)) for i in range(members))
    config = StreamConfig(epochs=1, streams=streams, window=window)
    architecture = LanguageModel(words=words, embedding=width, hidden=width)
    trainee = StreamsTrainee(StreamSpec(architecture, plans, (corpus,) * members, config, device))
    trainee.prepare()
    pieces = list(trainee.texts["train"])
    place = iter(range(10**9))
    return lambda: trainee._call(pieces[next(place) % len(pieces)])


def plain_step(sizes: tuple[int, ...], device: str) -> Callable[[], None]:
    words, width, streams, window = sizes
    embedding, lstm, head = nn.Embedding(words, width), nn.LSTM(width, width, batch_first=True), nn.Linear(width, words)
    model = nn.ModuleList([embedding, lstm, head]).to(device)
    optimiser = torch.optim.SGD(model.parameters(), lr=1.0)
    ids = torch.randint(words, (streams, window + 1), device=device)
    state = [torch.zeros(1, streams, width, device=device) for _ in range(2)]

    def step() -> None:
        optimiser.zero_grad()
        out, new = lstm(embedding(ids[:, :-1]), tuple(state))
        state[:] = [part.detach() for part in new]
        nn.functional.cross_entropy(head(out).flatten(0, 1), ids[:, 1:].flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimiser.step()

    return step


def milliseconds(step: Callable[[], None], device: str, steps: int) -> float:
    for _ in range(5):
        step()
    _wait(device)
    start = time.perf_counter()
    for _ in range(steps):
        step()
    _wait(device)
    return 1000 * (time.perf_counter() - start) / steps


def limit(sizes: tuple[int, ...], device: str) -> float:
    """ms a model and step if only the products of the maps took time."""
    words, width, streams, window = sizes
    operations = 3 * 2 * streams * window * (4 * width * width * 2 + width * words)
    size = 8192 if device == "cuda" else 1000
    a, b = torch.randn(size, size, device=device), torch.randn(size, size, device=device)
    with fast_products():
        took = milliseconds(lambda: a @ b, device, 5)
    return took * operations / (2 * size**3)


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def profile(sizes: tuple[int, ...], members: int, device: str) -> None:
    """Where one step's time goes on the device."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as record

    step = population_step(sizes, members, device)
    step()
    with record(activities=[ProfilerActivity.CUDA if device == "cuda" else ProfilerActivity.CPU]) as recorded:
        for _ in range(5):
            step()
        _wait(device)
    order = "self_cuda_time_total" if device == "cuda" else "self_cpu_time_total"
    print(recorded.key_averages().table(sort_by=order, row_limit=15, max_name_column_width=70))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    device = options.device
    torch.set_num_threads(1)
    keep_freed()
    where = torch.cuda.get_device_name() if device == "cuda" else "one thread"
    print(f"torch {torch.__version__}, {where}, 3 rounds; ms a model and step")
    print("| words, width, streams, window | members | plain, alone | population | ratio | limit | population / limit |")
    print("|---|---|---|---|---|---|---|")
    for sizes, counts in CASES[device]:
        steps = 200 if device == "cuda" else 40
        alone, least = plain_step(sizes, device), limit(sizes, device)
        for members in counts:
            together = population_step(sizes, members, device)
            rounds = [
                (milliseconds(alone, device, steps), milliseconds(together, device, max(5, steps // members)) / members)
                for _ in range(3)
            ]
            plain, ours = (statistics.median(side) for side in zip(*rounds, strict=True))
            name = ", ".join(map(str, sizes))
            print(
                f"| {name} | {members} | {plain:.3f} | {ours:.3f} | {ours / plain:.2f} | {least:.4f} | {ours / least:.1f} |",
                flush=True,
            )
        if options.profile:
            profile(sizes, 32 if device == "cuda" else counts[-1], device)


if __name__ == "__main__":
    main()
