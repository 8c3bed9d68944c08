"""A diagnostic classifier (Hupkes et al. 2018): can a label be read off a site by a linear map?

Trained on three quarters of the sentences and tested on the others, so that no sentence is on both sides. Beside the
accuracy stand two controls: the same probe on labels that were shuffled, and the share of the most frequent label.
"""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr
from jaxtyping import Float
from torch import Tensor

from partwise.errors import InputError
from partwise.methods import _softmax_regression as regression
from partwise.methods._probe_data import ProbeData, probe_data
from partwise.population import Population
from partwise.tasks._contract import Example

PENALTY = 1e-3


def diagnostic_probe(
    population: Population,
    examples: Sequence[Example],
    site: str,
    probe: str,
    *,
    penalty: float = PENALTY,
    steps: int = regression.STEPS,
    seed: int = 0,
) -> xr.Dataset:
    """`accuracy`, `shuffled` (the control) and `weight` of each member's probe; dims (member), (member, label, unit)."""
    check(penalty, steps)
    data = probe_data(population, examples, site, probe)
    accuracy, weights = train_and_test(data, seed, penalty, steps)
    shuffled, _ = train_and_test(data.shuffled(seed), seed, penalty, steps)
    most = float(data.label.bincount().max() / len(data.label))
    return xr.Dataset(
        {
            "accuracy": ("member", accuracy.cpu().numpy()),
            "shuffled": ("member", shuffled.cpu().numpy()),
            "weight": (("member", "label", "unit"), weights[..., :-1].cpu().numpy()),
        },
        {"member": list(population.names), "label": list(data.classes)},
        {"site": site, "probe": probe, "penalty": penalty, "steps": steps, "seed": seed, "most_frequent": most},
    )


def check(penalty: float, steps: int) -> None:
    if penalty < 0:
        raise InputError(f"penalty is {penalty}; it must be 0 (none) or above")
    if steps < 1:
        raise InputError(f"steps is {steps}; the solver needs 1 or more")


def train_and_test(
    data: ProbeData, seed: int, penalty: float, steps: int
) -> tuple[Float[Tensor, " member"], regression.Weights]:
    """Test accuracy and weights of one probe a member."""
    test = data.split(seed)
    weights = regression.fit(data.values[:, ~test], data.label[None, ~test], len(data.classes), penalty, steps)
    return regression.accuracy(weights, data.values[:, test], data.label[None, test]), weights
