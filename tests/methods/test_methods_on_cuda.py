"""The methods for recurrent models on CUDA give what they give on the CPU. Needs a CUDA device."""

from __future__ import annotations

import pytest
import torch

import partwise as pw
from tests.methods.test_influence_paths import WORDS, model

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here"),
    pytest.mark.filterwarnings("ignore:completeness"),
]


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_paths_and_decompositions(cell: str) -> None:
    found = []
    for device in ("cpu", "cuda"):
        wrapped = model(cell)
        for module in (wrapped.embedding, wrapped.twins[0].module, wrapped.head):
            module.to(device)
        ids = torch.randint(WORDS, (3, 4), generator=torch.Generator().manual_seed(0)).to(device)
        every = pw.influence_paths(wrapped, ids, 0, (2, 5), points=4)
        strongest = pw.strongest_paths(wrapped, ids, 0, (2, 5), k=5)
        assert strongest.proven.all()
        found.append(
            [
                every.influence,
                every.neurons(every.labels[0]).values,
                strongest.influence.values,
                pw.path_sum(wrapped, ids, 0, (2, 5), pattern="x>*>h1@1>*>q").influence.values,
                pw.path_mass(wrapped, ids, 0, (2, 5), draws=50).total.values,
                pw.patch_paths(wrapped, ids, 0, (2, 5), pattern="x>*>h1@1>*>q").removed.values,
                pw.clamp(wrapped, ids, 0, (2, 5), keep=["?0@0"]).clamped.values,
                pw.ablate(wrapped, ids, (2, 5), [(0, 1), (1, 2)]).ablated.values,
                pw.contextual_decomposition(wrapped, ids, (1, 3)).data.relevant.values,
                pw.contextual_decomposition(wrapped, ids, (1, 3), variant="shapley").data.relevant.values,
                pw.gradient_flow(wrapped, ids, 0, 3, token=1).message.values,
            ]
        )
    for one, other in zip(*found, strict=True):
        assert other == pytest.approx(one, abs=1e-10)
