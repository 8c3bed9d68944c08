"""How much influence all paths have together, positive and negative apart, where they are too many to enumerate.

1. Draw paths hop by hop. A hop is drawn with a chance in proportion to sqrt(n E) of the state it leads to, where n counts
   the paths that go on from there, and E is the sum of their squared influences (`influence_paths/moments`, exactly): by
   Cauchy and Schwarz, an upper bound of all the influence there. The chance p of the whole path is the product.
2. |influence| / p is an unbiased estimate of the sum A of all absolute influences. Its mean over draws has a 95 % interval.
3. The sum T of all influences is known exactly, so that the positive ones make (T + A) / 2 and the negative ones (T - A) / 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float64
from torch import Tensor

from partwise.errors import InputError
from partwise.intervals import t_interval
from partwise.layers.precision import exact_products
from partwise.methods._sentences import bytes_of
from partwise.methods.influence_paths import follow
from partwise.methods.influence_paths.case import Case, cases
from partwise.methods.influence_paths.certificate import total_and_certificate
from partwise.methods.influence_paths.graph import State
from partwise.methods.influence_paths.halves import Tangents
from partwise.methods.influence_paths.moments import Rest, check_budget
from partwise.methods.influence_paths.walk import counts
from partwise.progress import Progress
from partwise.randomness import generator

_COPIES = 12  # tangents held for each draw, with those of every hop that it might take
Arrived = tuple[Tensor, Float64[np.ndarray, " draw"]]  # tangents of the draws at a state, and the logarithms of their chances


def path_mass(
    model: Any,
    ids: Any,
    source: int,
    contrast: Any,
    baseline: Any = None,
    points: int = 10,
    *,
    draws: int = 2000,
    seed: int = 0,
    rule: str = "gauss-legendre",
    inputs: Any = None,
    lengths: Any = None,
    init: Any = "zero",
    dtype: torch.dtype | None = None,
    budget: str | int = "2GB",
) -> xr.Dataset:
    """`absolute`, `positive` and `negative` influence of all paths together, dims (sentence), each with an `_interval`
    (low, high).

    `largest`: the largest share of one draw in the estimate; where it is large, trust no interval, and draw more. Other
    arguments as for `influence_paths`.
    """
    if draws < 2:
        raise InputError(f"draws is {draws}; it must be 2 or more, so that there is an interval")
    with exact_products(), torch.no_grad():
        asked, members = cases(
            model, "path_mass", ids, source=source, contrast=contrast, baseline=baseline, points=points, rule=rule,
            inputs=inputs, lengths=lengths, init=init, dtype=dtype,
        )  # fmt: skip
        memory = bytes_of(budget)
        check_budget(asked[0], memory, _COPIES * draws)
        done = [0]
        with Progress("path mass", float(len(asked) * len(asked[0].rows)), lambda: float(done[0])):
            found = []
            for number, case in enumerate(asked):
                total, certificate = total_and_certificate(case, memory)
                rows = []
                for row in case.rows:
                    random = generator(seed, "paths", number, int(row))  # sentences and members have draws of their own
                    weights = _weights(case.part(row.unsqueeze(0), 0, case.points), draws, random)
                    rows.append(_estimate(weights, float(total[row])))
                    done[0] += 1
                found.append(xr.concat(rows, "sentence"))
                certificate.warn(case.model.dtype)
    return found[0] if members is None else xr.concat(found, xr.Variable("member", list(members)))


def _weights(case: Case, draws: int, random: np.random.Generator) -> Float64[np.ndarray, " draw"]:
    """|influence| / chance of every draw."""
    traced = case.trace()
    gradient = case.gradient(traced)[0]
    rest, (_, onwards) = Rest(traced, gradient), counts(case.graph)
    carrier = Tangents(traced)
    waiting: dict[State | None, list[Arrived]] = {None: [(traced.tangent.expand(draws, -1, -1), np.zeros(draws))]}
    weights: list[np.ndarray] = []
    for state in (None, *rest.in_order()):
        if state not in waiting:
            continue
        groups = waiting.pop(state)
        tangents, chances = torch.cat([group[0] for group in groups]), np.concatenate([group[1] for group in groups])
        if state == case.graph.last:
            values = torch.einsum("nph,ph,p->n", tangents, gradient, case.inputs.weights).double().cpu().numpy()
            weights.append(np.abs(values) * np.exp(-chances))
            continue
        moves, arrived = follow.extend(carrier, state, tangents)
        scores = np.stack(
            [
                np.sqrt(rest.energy(move.to, some).cpu().numpy() * float(onwards[move.to])) + 1e-300
                for move, some in zip(moves, arrived, strict=True)
            ]
        )
        shares = scores / scores.sum(axis=0)
        drawn = (shares.cumsum(axis=0) > random.random(len(chances))).argmax(axis=0)
        for number, (move, some) in enumerate(zip(moves, arrived, strict=True)):
            chosen = np.flatnonzero(drawn == number)
            if len(chosen):
                there = chances[chosen] + np.log(shares[number, chosen])
                waiting.setdefault(move.to, []).append((some[torch.from_numpy(chosen).to(some.device)], there))
    return np.concatenate(weights)


def _estimate(weights: Float64[np.ndarray, " draw"], total: float) -> xr.Dataset:
    absolute = float(weights.mean())
    interval = t_interval(weights.tolist())
    assert interval is not None
    low, high = max(interval[0], abs(total)), interval[1]  # all together are at least as much as their sum
    ends = {
        "absolute": (absolute, low, high),
        "positive": ((total + absolute) / 2, (total + low) / 2, (total + high) / 2),
        "negative": ((total - absolute) / 2, (total - high) / 2, (total - low) / 2),
    }
    arrays: dict[str, Any] = {name: value for name, (value, _, _) in ends.items()}
    arrays |= {f"{name}_interval": ("end", [one, other]) for name, (_, one, other) in ends.items()}
    arrays |= {"total": total, "largest": float(weights.max() / weights.sum()) if absolute else 0.0}
    return xr.Dataset(arrays, {"end": ["low", "high"]})
