"""Contextual decomposition a second time, written from the papers in numpy: one sentence, one phrase, one number at a time.

Nothing here is shared with the package. A value is a dictionary of its parts: `r` from the phrase, `q` from the other words,
`b` from the biases. `relevant` says which products gate-source count as the phrase's.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection

import numpy as np

MURDOCH = {"rr", "rb", "br"}
Parts = dict[str, np.ndarray]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def bias_first(f: Callable, parts: Parts) -> Parts:
    """Murdoch et al. 2018, eq. 15 with the bias fixed in the first place: the mean over the two orders of r and q."""
    r, q, b = (parts[name] for name in "rqb")
    rel = np.mean([f(b + r) - f(b), f(b + q + r) - f(b + q)], axis=0)
    irrel = np.mean([f(b + q) - f(b), f(b + r + q) - f(b + r)], axis=0)
    return {"r": rel, "q": irrel, "b": f(b)}


def all_orders(f: Callable, parts: Parts, nothing: float) -> Parts:
    """The mean contribution of each part over all orders, where f of nothing is `nothing`."""
    shares = {name: np.zeros_like(value) for name, value in parts.items()}
    for order in itertools.permutations(parts):
        before, total = nothing, 0.0
        for name in order:
            total = total + parts[name]
            shares[name] = shares[name] + (f(total) - before) / math.factorial(len(parts))
            before = f(total)
    shares["b"] = shares["b"] + nothing
    return shares


def product(gate: Parts, source: Parts, relevant: Collection[str]) -> tuple[Parts, np.ndarray]:
    """The product's two sides, and bias times bias apart."""
    sides = {side: np.zeros_like(gate["r"]) for side in "rq"}
    for one, other in itertools.product(gate, source):
        if (one, other) != ("b", "b"):
            side = "r" if one + other in relevant else "q"
            sides[side] = sides[side] + gate[one] * source[other]
    return sides, gate["b"] * source["b"] if "b" in source else np.zeros(())


def decompose(
    cell: str,
    layers: list[dict[str, np.ndarray]],
    words: np.ndarray,
    phrase: Collection[int],
    credited: Collection[int],
    *,
    how: str = "bias-first",
    relevant: Collection[str] = MURDOCH,
    output_gate: bool = False,
    start: list[tuple[np.ndarray, ...]] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """(relevant, irrelevant) hidden states of the top layer, (time, unit). `credited`: steps whose bias product is relevant."""

    def activate(f: Callable, parts: Parts) -> Parts:
        if how == "bias-first":
            return bias_first(f, parts)
        return all_orders(f, parts, 0.0 if how == "shapley-zero" else float(f(np.zeros(()))))

    inputs = [
        {"r": word, "q": np.zeros_like(word)} if t in phrase else {"r": np.zeros_like(word), "q": word}
        for t, word in enumerate(words)
    ]
    for number, layer in enumerate(layers):
        hidden = layer["hh"].shape[1]
        first = start[number] if start else (np.zeros(hidden),) * 2
        h = {"r": np.zeros(hidden), "q": first[0]}
        c = {"r": np.zeros(hidden), "q": first[-1]}
        outputs = []
        for t, x in enumerate(inputs):
            into = {side: layer["ih"] @ x[side] for side in "rq"} | {"b": layer["b_ih"]}
            back = {side: layer["hh"] @ h[side] for side in "rq"} | {"b": layer["b_hh"]}
            if cell == "lstm":
                names = ("i", "f", "g", "o")
                sums = {g: {s: (into[s] + back[s])[n * hidden : (n + 1) * hidden] for s in "rqb"} for n, g in enumerate(names)}
                gates = {g: activate(np.tanh if g == "g" else sigmoid, sums[g]) for g in names}
                written, both = product(gates["i"], gates["g"], relevant)
                kept, _ = product(gates["f"], c, relevant)
                c = {side: written[side] + kept[side] for side in "rq"}
                c["r" if t in credited else "q"] = c["r" if t in credited else "q"] + both
                shown = {
                    "r": np.mean([np.tanh(c["r"]), np.tanh(c["q"] + c["r"]) - np.tanh(c["q"])], axis=0),
                    "q": np.mean([np.tanh(c["q"]), np.tanh(c["r"] + c["q"]) - np.tanh(c["r"])], axis=0),
                }
                if output_gate:
                    h, _ = product(gates["o"], shown, relevant)
                else:
                    whole = sigmoid(sum(sums["o"].values()))
                    h = {side: whole * shown[side] for side in "rq"}
            else:
                cut = {n: slice(n * hidden, (n + 1) * hidden) for n in range(3)}
                r, z = (activate(sigmoid, {s: into[s][cut[n]] + back[s][cut[n]] for s in "rqb"}) for n in (0, 1))
                reset, both = product(r, {s: back[s][cut[2]] for s in "rqb"}, relevant)
                candidate = {s: into[s][cut[2]] + reset[s] for s in "rq"} | {"b": into["b"][cut[2]] + both}
                n = activate(np.tanh, candidate)
                written, both = product({"r": -z["r"], "q": -z["q"], "b": 1 - z["b"]}, n, relevant)
                kept, _ = product(z, h, relevant)
                h = {side: written[side] + kept[side] for side in "rq"}
                h["r" if t in credited else "q"] = h["r" if t in credited else "q"] + both
            outputs.append(h)
        inputs = outputs
    return np.stack([x["r"] for x in inputs]), np.stack([x["q"] for x in inputs])
