"""Contextual decomposition of all (sentence, word) pairs, ours against the peers', in one run, same inputs, one thread.

Each contestant is a process of its own: medians over rounds (the first one included, as a user would feel it), and the peak
memory of its process, libraries included. The arithmetic limit counts the products that no way around exists: reading each
sentence once, the relevant side of every pair from its word on, and both sides' scores at the last step; at the speed of one
large matrix product measured in the same run.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from benchmarks import peers

CASES = {  # layers, width, words of the vocabulary, words of a sentence
    "1 layer, H 200, V 1000, T 10": (1, 200, 1_000, 10),
    "2 layers, H 650, V 10k, T 7": (2, 650, 10_000, 7),
}
SENTENCES = 100
CONTESTANTS = {"partwise": ("ours_cd", None), "acd 0.0.2 cd_text": ("acd_cd_text", 1), "diagNNose 1.1": ("diagnnose_cd", None)}
SAME_CONVENTION = "acd 0.0.2 cd_text"


def main() -> None:
    print(f"torch {torch.__version__}, one thread, {SENTENCES} sentences, every pair of a sentence and a word")
    print("| case | contestant | ms | range | peak MB | times partwise | largest difference |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, sizes in CASES.items():
            case = Path(folder) / "case.npz"
            np.savez(case, **made(*sizes))  # type: ignore[arg-type]
            report(name, sizes, case, Path(folder))


def report(name: str, sizes: tuple[int, ...], case: Path, folder: Path) -> None:
    scores, ours = {}, None
    for contestant, (script, most_layers) in CONTESTANTS.items():
        if most_layers is not None and sizes[0] > most_layers:
            print(f"| {name} | {contestant} | cannot | | | | |")
            continue
        kept = folder / f"{script}.npy"
        found = peers.run(script, case, str(kept), ours=contestant == "partwise")
        scores[contestant] = np.load(kept)
        ms = [1000 * seconds for seconds in found["seconds"]]
        median = statistics.median(ms)
        ours = ours or median
        distance = ""
        if contestant == SAME_CONVENTION:
            distance = f"{np.abs(scores['partwise'].reshape(scores[contestant].shape) - scores[contestant]).max():.1e}"
        print(
            f"| {name} | {contestant} | {median:.0f} | {min(ms):.0f} to {max(ms):.0f} | {found['peak_mb']:.0f} | "
            f"{median / ours:.1f} | {distance} |",
            flush=True,
        )
    limit = arithmetic(*sizes) / speed() * 1000
    print(f"| {name} | limit of the arithmetic | {limit:.0f} | | | {limit / (ours or 1):.2f} | |", flush=True)


def made(layers: int, width: int, words: int, time: int) -> dict[str, np.ndarray]:
    """Weights as PyTorch draws them, by its names, and random sentences."""
    torch.manual_seed(0)
    lstm = torch.nn.LSTM(width, width, layers)
    arrays = {name: value.detach().numpy() for name, value in lstm.named_parameters()}
    arrays["embedding"] = torch.nn.Embedding(words, width).weight.detach().numpy()
    arrays["output"] = torch.nn.Linear(width, words, bias=False).weight.detach().numpy()
    arrays["ids"] = torch.randint(words, (SENTENCES, time)).numpy()
    return arrays


def arithmetic(layers: int, width: int, words: int, time: int) -> float:
    """Multiplications and additions of the products alone."""
    whole = time * layers * 2 * 4 * width * width
    steps = time * (time + 1) // 2  # over the words of a sentence: steps from each word on
    relevant = layers * 2 * 3 * width * width * steps
    scores = 2 * time * words * width
    return 2.0 * SENTENCES * (whole + relevant + scores)


def speed() -> float:
    """Operations a second of a large product on one thread."""
    torch.set_num_threads(1)
    a, b = torch.randn(1000, 1000), torch.randn(1000, 1000)
    a @ b
    start = time.perf_counter()
    for _ in range(5):
        a @ b
    return 5 * 2e9 / (time.perf_counter() - start)


if __name__ == "__main__":
    sys.exit(main())
