"""Copies one member's parameters into the independent plain model, whose modules lay some of them out differently."""

from __future__ import annotations

import torch

from benchmarks.plain_seq2seq import PlainSeq2Seq
from partwise.models.seq2seq import Seq2Seq
from partwise.population import Population


def plain_copy(population: Population, name: str) -> PlainSeq2Seq:
    sizes = population.architecture
    assert isinstance(sizes, Seq2Seq)
    model = PlainSeq2Seq(sizes.source_words, sizes.target_words, sizes.encoder_embedding, sizes.hidden, sizes.cell)
    model.to(population.store.dtype)
    state = model.state_dict()
    for key, value in plain_parameters(population, name).items():
        state[key].copy_(value)
    return model


def plain_parameters(population: Population, name: str) -> dict[str, torch.Tensor]:
    """The member's parameters under the plain model's names."""
    own = population.member(name).parameters
    renamed = {
        "encoder_embedding.weight": own["encoder.embedding.weight"],
        "decoder_embedding.weight": own["decoder.embedding.weight"],
        "score.weight": torch.cat((own["attention.key.weight"], own["attention.query.weight"]), dim=1),
        "score.bias": own["attention.key.bias"],
        "energy.weight": own["attention.energy.weight"],
        "energy.bias": own["attention.energy.bias"],
        "focus.weight": torch.cat((own["focus.context.weight"], own["focus.word.weight"]), dim=1),
        "focus.bias": own["focus.context.bias"],
        "output.weight": own["decoder.output.weight"],
        "output.bias": own["decoder.output.bias"],
    }
    for side in ("encoder", "decoder"):
        for ours, theirs in (("input", "ih"), ("recurrent", "hh")):
            for kind in ("weight", "bias"):
                renamed[f"{side}.{kind}_{theirs}_l0"] = own[f"{side}.{ours}.{kind}"]
    return renamed
