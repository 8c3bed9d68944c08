"""The fewest units from which a label can be read: a functional group (Dalvi et al. 2019; Baan et al. 2019, section 4.1).

1. Train a linear probe on all units; its test accuracy is the full accuracy.
2. Rank units by the absolute weights the probe gives them, summed over labels (or by the largest).
3. Take units in that order, one by one, until the test accuracy reaches 95 % of the full one. The main rule trains the probe
   again on the units taken ("refit"); the other rule sets all other units' weights to zero ("mask").

The paper states neither ranking nor readout nor solver, and the size hangs on all three; so does an untrained model's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Int
from torch import Tensor

from partwise.errors import InputError, unknown
from partwise.methods import _softmax_regression as regression
from partwise.methods._probe_data import ProbeData, probe_data
from partwise.methods.diagnostic_probe import PENALTY, check, train_and_test
from partwise.population import Population
from partwise.randomness import generator
from partwise.tasks._contract import Example

RANKINGS, READOUTS = ("sum", "max"), ("refit", "mask")
_BLOCK = 8  # sizes tried in one batch
_RANDOM_GROUPS = 10
Order = Int[Tensor, "member unit"]
PerMember = Float[Tensor, " member"]


@dataclass(frozen=True, kw_only=True)
class GroupRule:
    """The choices that a group's size hangs on; the defaults are the main rule of the studies."""

    ranking: str = "sum"
    readout: str = "refit"
    penalty: float = PENALTY
    steps: int = regression.STEPS
    share: float = 0.95
    largest: int | None = None

    def __post_init__(self) -> None:
        check(self.penalty, self.steps)
        if self.ranking not in RANKINGS:
            raise unknown("ranking", self.ranking, RANKINGS)
        if self.readout not in READOUTS:
            raise unknown("readout", self.readout, READOUTS)
        if not 0 < self.share <= 1:
            raise InputError(f"share is {self.share}; it is the share of the full accuracy to reach, above 0 and at most 1")
        if self.largest is not None and self.largest < 1:
            raise InputError(f"largest is {self.largest}; a group has 1 unit or more")


def functional_group(
    population: Population,
    examples: Sequence[Example],
    site: str,
    probe: str,
    *,
    rule: GroupRule | None = None,
    seed: int = 0,
) -> xr.Dataset:
    """`size` (NaN where no group up to `largest` reaches the share), `in_group`, accuracies and controls, of every member."""
    found = group_in(probe_data(population, examples, site, probe), rule or GroupRule(), seed)
    return found.assign_coords(member=list(population.names)).assign_attrs(site=site, probe=probe)


def group_in(data: ProbeData, rule: GroupRule, seed: int) -> xr.Dataset:
    """The same on values recorded before."""
    full, weights = train_and_test(data, seed, rule.penalty, rule.steps)
    shuffled, _ = train_and_test(data.shuffled(seed), seed, rule.penalty, rule.steps)
    order = rank(weights, rule.ranking)
    size, reached = _grow(data, weights, order, rule, rule.share * full, seed)
    place = order.argsort(dim=1)
    known = torch.where(torch.isfinite(size), size, 0.0)
    in_group = place < known.unsqueeze(1)
    found = {
        "full_accuracy": ("member", full),
        "shuffled_accuracy": ("member", shuffled),
        "size": ("member", size),
        "group_accuracy": ("member", reached),
        "random_accuracy": ("member", _random_groups(data, known, rule, seed)),
        "in_group": (("member", "unit"), in_group),
        "found_by_shap": ("member", _overlap(in_group, _shap(data, weights, seed))),
    }
    choices = {name: str(value) for name, value in vars(rule).items()}
    return xr.Dataset({name: (dims, values.cpu().numpy()) for name, (dims, values) in found.items()}, attrs=choices)


def rank(weights: regression.Weights, ranking: str) -> Order:
    """Units from the strongest to the weakest."""
    size = weights[..., :-1].abs()
    return (size.sum(dim=1) if ranking == "sum" else size.amax(dim=1)).argsort(dim=1, descending=True, stable=True)


def _grow(
    data: ProbeData, weights: regression.Weights, order: Order, rule: GroupRule, goal: PerMember, seed: int
) -> tuple[PerMember, PerMember]:
    """The smallest size at which each member reaches its goal, and the accuracy there; who has reached it drops out."""
    test, units = data.split(seed), data.values.shape[2]
    size, reached = torch.full_like(goal, torch.nan), torch.full_like(goal, torch.nan)
    largest = min(rule.largest or units, units)
    for start in range(0, largest, _BLOCK):
        left = torch.isnan(size).nonzero().squeeze(1)
        if len(left) == 0:
            break
        sizes = list(range(start + 1, min(start + _BLOCK, largest) + 1))
        values = data.values[left].gather(2, order[left, None, : sizes[-1]].expand(-1, data.values.shape[1], -1))
        if rule.readout == "refit":
            accuracies = _refitted(data, values, test, sizes, rule)
        else:
            accuracies = _masked(data, values, weights[left], order[left], test, sizes)
        for number, accuracy in zip(sizes, accuracies, strict=True):
            first = left[torch.isnan(size[left]) & (accuracy >= goal[left] - 1e-7)]
            size[first], reached[first] = float(number), accuracy[torch.isin(left, first)]
    return size, reached


def _refitted(data: ProbeData, values: Tensor, test: Tensor, sizes: list[int], rule: GroupRule) -> list[Tensor]:
    """Test accuracy of each size after training on the units taken, all sizes of all members at once."""
    inside = torch.arange(values.shape[2], device=values.device) < torch.tensor(sizes, device=values.device).unsqueeze(1)
    problems = (values.unsqueeze(0) * inside[:, None, None, :]).flatten(0, 1)
    weights = regression.fit(problems[:, ~test], data.label[None, ~test], len(data.classes), rule.penalty, rule.steps)
    return list(regression.accuracy(weights, problems[:, test], data.label[None, test]).view(len(sizes), -1))


def _masked(
    data: ProbeData, values: Tensor, weights: regression.Weights, order: Order, test: Tensor, sizes: list[int]
) -> list[Tensor]:
    """Test accuracy of each size with the first probe's own weights, those of all other units set to zero."""
    ranked = weights.gather(2, order[:, None, : sizes[-1]].expand(-1, weights.shape[1], -1))
    taken = [torch.cat((ranked[..., :size], weights[..., -1:]), dim=2) for size in sizes]
    return [
        regression.accuracy(one, values[:, test, :size], data.label[None, test]) for one, size in zip(taken, sizes, strict=True)
    ]


def _random_groups(data: ProbeData, size: PerMember, rule: GroupRule, seed: int) -> PerMember:
    """Mean test accuracy of as many units drawn at random, refitted: what any units of that number would reach."""
    members, _, units = data.values.shape
    test, widest = data.split(seed), max(1, int(size.max()))
    total = torch.zeros_like(size)
    for draw in range(_RANDOM_GROUPS):
        random = generator(seed, "random groups", draw)
        order = torch.from_numpy(np.stack([random.permutation(units)[:widest] for _ in range(members)])).to(size.device)
        values = data.values.gather(2, order.unsqueeze(1).expand(-1, data.values.shape[1], -1))
        values = values * (torch.arange(widest, device=size.device) < size.unsqueeze(1)).unsqueeze(1)
        weights = regression.fit(values[:, ~test], data.label[None, ~test], len(data.classes), rule.penalty, rule.steps)
        total += regression.accuracy(weights, values[:, test], data.label[None, test])
    return total / _RANDOM_GROUPS


def _shap(data: ProbeData, weights: regression.Weights, seed: int) -> Order:
    """Units ranked by mean |SHAP value|: of a linear score, w_j (x_j - mean x_j) is exact for independent units."""
    test = data.split(seed)
    centre = data.values[:, ~test].mean(dim=1, keepdim=True)
    moved = (data.values[:, test] - centre).abs().mean(dim=1)
    return (weights[..., :-1].abs().sum(dim=1) * moved).argsort(dim=1, descending=True, stable=True)


def _overlap(in_group: Tensor, order: Order) -> PerMember:
    """Share of each group that stands among as many units at the head of another ranking."""
    size = in_group.sum(dim=1)
    head = order.argsort(dim=1) < size.unsqueeze(1)
    return (in_group & head).sum(dim=1) / torch.where(size > 0, size, torch.nan)
