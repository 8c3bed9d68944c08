"""Influence paths: along which gates, layers and steps one word's influence travels to a quantity, exactly and all of them.

Lu, Mardziel, Leino, Fredrikson and Datta (ACL 2020) split the influence of a word on a quantity (the score of the right
verb less that of the wrong one, say) by the chain rule into one number for every path through the gates of an LSTM. For
LSTMs and GRUs of any depth, batched over sentences and points.

1. Read every sentence with the source's vector at each point of a line (or any set of inputs), keeping all local derivatives.
2. Tangents from the source to the middle, adjoints from the quantity back to it; all pairs are one matrix product (`halves`).
3. Certificates: the sum over paths against autograd through the model, and that against the change of the quantity.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from partwise.errors import InputError
from partwise.layers.precision import exact_products
from partwise.methods._sentences import bytes_of
from partwise.methods.influence_paths.case import Case, cases
from partwise.methods.influence_paths.certificate import (
    Certificate,
    complete_certificate,
    conservation_error,
    total_influence,
    worst,
)
from partwise.methods.influence_paths.halves import best_cut, halves_held, influences
from partwise.methods.influence_paths.result import Paths
from partwise.methods.influence_paths.walk import counts

__all__ = ["Paths", "influence_paths"]

MOST_PATHS = 300_000


def influence_paths(
    model: Any,
    ids: Any,
    source: int,
    contrast: Any,
    baseline: Any = None,
    points: int = 50,
    *,
    rule: str = "midpoint",
    inputs: Any = None,
    lengths: Any = None,
    init: Any = "zero",
    dtype: torch.dtype | None = None,
    budget: str | int = "1GB",
) -> Paths:
    """Every path from the word at `source` to a quantity read from the last hidden state.

    `model` is what `pw.wrap` returns, or a population of language models. `contrast` is (right, wrong): word ids, one in
    all, one a sentence, or several a sentence; or a callable of the last hidden states (sentence, point, hidden), such as
    `pw.log_probability`. `baseline` is where the line to the word's vector begins, (batch, width); by default the mean of
    all word vectors. `rule` is midpoint or gauss-legendre. In place of a line, `inputs` takes any (values, direction, weights).
    """
    with exact_products():
        asked, members = cases(
            model, "influence_paths", ids, source=source, contrast=contrast, baseline=baseline, points=points, rule=rule,
            inputs=inputs, lengths=lengths, init=init, dtype=dtype,
        )  # fmt: skip
        graph, memory = asked[0].graph, bytes_of(budget)
        paths = counts(graph)[0][graph.last]
        if paths > MOST_PATHS:
            raise InputError(
                f"{graph.steps} steps of {graph.layers} layers have {paths:,} paths, too many to name one by one (at most "
                f"{MOST_PATHS:,}); ask pw.strongest_paths(...) for the strongest, or pw.path_sum(..., pattern=) for sets "
                "of them"
            )
        cut = best_cut(graph)
        found = [_every_path(case, cut, paths, memory) for case in asked]
    certificate = worst([one[2] for one in found])
    influence, totals = np.stack([one[0] for one in found]), np.stack([one[1] for one in found])
    first = slice(None) if members is not None else 0
    result = Paths(graph, cut, influence[first], totals[first], certificate, members, asked, _clusters(asked[0]), memory)
    certificate.warn(asked[0].model.dtype)
    return result


@torch.no_grad()
def _every_path(case: Case, cut: int, paths: int, memory: int) -> tuple[np.ndarray, np.ndarray, Certificate]:
    """(influences, total, errors) of one model."""
    influence = torch.zeros(len(case.rows), paths, dtype=case.model.dtype, device=case.rows.device)
    for part in case.chunks(halves_held(case.graph, cut), memory, numbers=paths):
        traced = part.trace()
        influence[part.rows] += influences(traced, cut, part.gradient(traced))
    total, _ = total_influence(case, memory)
    conservation = conservation_error(influence.sum(dim=1), influence.abs().sum(dim=1), total)
    return influence.cpu().numpy(), total.cpu().numpy(), complete_certificate(case, total, conservation)


def _clusters(case: Case) -> np.ndarray:
    """Sentences that are the same up to the target, and begin in the same state, are one cluster: no model can tell them
    apart."""
    rows = len(case.rows)
    states = [part.expand(rows, -1) for layer in case.read.start for part in layer]
    _, cluster = torch.cat((case.read.vectors.flatten(1), *states), dim=1).unique(dim=0, return_inverse=True)
    return np.asarray(cluster.cpu().numpy())
