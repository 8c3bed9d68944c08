"""The values that flow through named sites of a population while it reads and writes some sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float

from partwise.errors import unknown
from partwise.layers.tap import Recorder
from partwise.population import Population
from partwise.tasks._contract import Example, Label
from partwise.tasks._encoding import Vocabulary, encode


@dataclass(frozen=True)
class SiteValues:
    """One site's values, and which (sentence, time) lie inside a sentence. `side` is encoder or decoder."""

    site: str
    side: str
    values: Float[np.ndarray, "member sentence time unit"]
    inside: Bool[np.ndarray, "sentence time"]
    examples: Sequence[Example]

    def labels(self, probe: str) -> list[list[Label]]:
        """A probe's label at each (sentence, time): a decoder step carries that of the source position it is aligned with."""
        times = self.inside.shape[1]
        rows = []
        for example in self.examples:
            known = example.probes[probe]
            places = example.alignment if self.side == "decoder" else range(len(example.source))
            row = [known[place] if place >= 0 else None for place in places]
            rows.append([*row, *[None] * (times - len(row))])
        return rows


@torch.no_grad()
def site_values(population: Population, examples: Sequence[Example], sites: Sequence[str]) -> dict[str, SiteValues]:
    """Record sites over sentences under greedy decoding, all members at once. An unknown site gets the nearest name."""
    known = [site for site in population.architecture.sites() if site.split(".")[0] in ("encoder", "decoder")]
    for site in sites:
        if site not in known:
            raise unknown("site", site, known)
    encoded = encode(examples, Vocabulary(population.words["source"]), Vocabulary(population.words["target"]))
    device, members = population.store.device, len(population)
    recorder = Recorder(sites)
    ids = torch.from_numpy(encoded.source).to(device).expand(members, -1, -1)
    lengths = torch.from_numpy(encoded.source_length).to(device).expand(members, -1)
    steps = encoded.target.shape[1]
    population.architecture.forward(population.weights(), ids, lengths, steps, tap=recorder)
    sides = {"encoder": encoded.source_length, "decoder": encoded.target_length}
    found = {}
    for site in sites:
        side = site.split(".")[0]
        values = recorder[site].cpu().numpy()
        inside = np.arange(values.shape[2]) < sides[side][:, None]
        found[site] = SiteValues(site, side, values, inside, examples)
    return found
