"""What a probe is trained on: one site's values with one label each, split by sentence, never by token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from partwise.errors import InputError, unknown
from partwise.methods._site_values import SiteValues, site_values
from partwise.population import Population
from partwise.randomness import generator
from partwise.tasks._contract import Example

TEST_SHARE = 0.25


@dataclass(frozen=True)
class ProbeData:
    """`values` of every member at every labelled place; `sentence` says which sentence a place is from.

    Each member's values are scaled by one number, so that a unit's standard deviation is 1 on average: a probe's penalty
    then means the same for an untrained site that hardly moves and for a trained one, and units keep their relative weights.
    """

    values: Float[Tensor, "member place unit"]
    label: Int[Tensor, " place"]
    sentence: Int[np.ndarray, " place"]
    classes: tuple[str, ...]

    def split(self, seed: int) -> Bool[Tensor, " place"]:
        """True where a place belongs to a sentence kept for testing: a quarter of the sentences, drawn from `seed`."""
        sentences = np.unique(self.sentence)
        order = generator(seed, "probe split").permutation(sentences)
        kept = order[: max(1, round(TEST_SHARE * len(order)))]
        return torch.from_numpy(np.isin(self.sentence, kept)).to(self.values.device)

    def shuffled(self, seed: int) -> ProbeData:
        """The same places under labels that mean nothing: the control of Hewitt and Liang's kind, labels permuted."""
        order = torch.from_numpy(generator(seed, "shuffled labels").permutation(len(self.label))).to(self.label.device)
        return ProbeData(self.values, self.label[order], self.sentence, self.classes)


def probe_data(population: Population, examples: Sequence[Example], site: str, probe: str) -> ProbeData:
    """Record `site` over sentences and keep the places where `probe` has a label."""
    return labelled(site_values(population, examples, [site])[site], probe, population.store.device)


def labelled(found: SiteValues, probe: str, device: torch.device | str = "cpu") -> ProbeData:
    """The same from values recorded before."""
    known = found.examples[0].probes
    if probe not in known:
        raise unknown("probe label", probe, known)
    labels = found.labels(probe)
    places = [(s, t) for s, t in zip(*np.nonzero(found.inside), strict=True) if labels[s][t] is not None]
    names = [str(labels[s][t]) for s, t in places]
    classes = tuple(sorted(set(names)))
    if len(classes) < 2:
        raise InputError(f"probe label {probe!r} has {len(classes)} class on these examples; a probe needs two or more")
    sentence, time = np.array(places).T
    if len(np.unique(sentence)) < 2:
        raise InputError("a probe is tested on other sentences than it is trained on; give two sentences or more")
    values = found.values[:, sentence, time].astype(np.float32)
    spread = values.std(axis=1, keepdims=True).mean(axis=2, keepdims=True)
    return ProbeData(
        torch.from_numpy(values / np.where(spread > 0, spread, 1)).to(device),
        torch.tensor([classes.index(name) for name in names], device=device),
        sentence,
        classes,
    )
