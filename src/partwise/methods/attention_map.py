"""Where a sequence-to-sequence model looks while it writes, over a whole population at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr

from partwise.population import Population
from partwise.tasks._contract import Example
from partwise.tasks._encoding import END, Vocabulary, encode


@torch.no_grad()
def attention_map(population: Population, examples: Sequence[Example]) -> xr.Dataset:
    """Attention of every member on every sentence under greedy decoding, and the words written.

    Dims (member, sentence, target_time, source_time); the words of both sides are coordinates. Positions beyond a
    sentence's end are NaN.
    """
    source, target = Vocabulary(population.words["source"]), Vocabulary(population.words["target"])
    encoded = encode(examples, source, target)
    device, members = population.store.device, len(population)
    ids = torch.from_numpy(encoded.source).to(device).expand(members, -1, -1)
    lengths = torch.from_numpy(encoded.source_length).to(device).expand(members, -1)
    steps = encoded.target.shape[1]
    output = population.architecture.forward(population.weights(), ids, lengths, steps)

    attention = output.attention.cpu().numpy()
    outside_target = np.arange(steps) >= encoded.target_length[:, None]
    outside_source = np.arange(encoded.source.shape[1]) >= encoded.source_length[:, None]
    beyond = outside_target[:, :, None] | outside_source[:, None, :]
    written = np.array(target.words)[output.chosen.cpu().numpy()]
    return xr.Dataset(
        {
            "attention": (("member", "sentence", "target_time", "source_time"), np.where(beyond, np.nan, attention)),
            "written": (("member", "sentence", "target_time"), np.where(outside_target, "", written)),
        },
        {
            "member": list(population.names),
            "source_word": (("sentence", "source_time"), _words([example.source for example in examples], beyond.shape[2])),
            "target_word": (("sentence", "target_time"), _words([(*example.target, END) for example in examples], steps)),
        },
    )


def _words(rows: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    return [[*row, *[""] * (width - len(row))] for row in rows]
