"""Gradient flow: how large a message from one word arrives at an earlier one, carried back through the words between them.

From step `start` to step `stop` the derivative of the state is a product of one Jacobian a word,
    d h_stop / d h_start = J_stop ... J_{start + 1}.
1. `hidden`: its Frobenius norm where each J is d h_t / d h_{t - 1} with the old cells held fixed, as the formula is written.
2. `state`: its Frobenius norm where h and c change together, which is what an LSTM really passes back.
3. `message`: the norm of the gradient of -log P(token) at `stop` with respect to the state at `start`.

Norms 1 and 2 are divided by the root of the number of units they start from, so that the identity has norm 1. They are root
mean squares of v J over random signs v, whose expectation is the Frobenius norm exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from partwise.errors import InputError
from partwise.layers.precision import exact_products
from partwise.methods._sentences import Sentences, States, bytes_of, check_words, read_through, sentences
from partwise.randomness import generator
from partwise.twins.readable import Readable, readable

_COPIES = 30  # values of a unit that a step keeps for the way back, per row: measured, rounded up


def gradient_flow(
    model: Any,
    ids: Any,
    start: int,
    stop: int,
    token: int,
    *,
    init: Any = "zero",
    dtype: torch.dtype | None = None,
    signs: int = 32,
    seed: int = 0,
    budget: str | int = "1GB",
) -> xr.Dataset:
    """From the state after word `stop` back to that after word `start`; dims (member, sentence), member for a population.

    `budget` bounds the memory at work: sentences are taken as many at a time as it holds.
    """
    with exact_products(), torch.enable_grad():
        known = readable(model, "gradient_flow", dtype)
        read = sentences(known, ids, None, init)
        if not 0 <= start < stop < read.time:
            raise InputError(f"start is {start} and stop {stop}; they must follow each other within the {read.time} words")
        if known.outputs is None:
            raise InputError("the model was wrapped without head=, so no token has a probability; wrap it with one nn.Linear")
        check_words(torch.tensor([token]), known.outputs, "token")
        a_row = max(1, *known.lead, 1) * signs * known.layers * known.hidden * known.dtype.itemsize * _COPIES * (stop - start)
        if not (rows := bytes_of(budget) // a_row):
            raise InputError(f"budget {bytes_of(budget):,} bytes is too small for one sentence; it needs at least {a_row:,}")
        parts = [
            _flow(known, read.rows(few), start, stop, token, signs, seed)
            for few in torch.arange(len(read.lengths), device=read.lengths.device).split(rows)
        ]
        found = {name: torch.cat([part[name] for part in parts], dim=-1) for name in parts[0]}
    dims = ("sentence",) if known.members is None else ("member", "sentence")
    coords = {} if known.members is None else {"member": list(known.members)}
    attributes = {"start": start, "stop": stop, "token": token, "signs": signs}
    return xr.Dataset({name: (dims, values.cpu().numpy()) for name, values in found.items()}, coords, attributes)


def _flow(
    model: Readable, read: Sentences, start: int, stop: int, token: int, signs: int, seed: int
) -> dict[str, Float[Tensor, "*member sentence"]]:
    with torch.no_grad():
        _, before = read_through(model, read.vectors[..., : start + 1, :], read.start)
    inside = read.vectors[..., start + 1 : stop + 1, :]
    return {
        "hidden": _norm(model, inside, before, signs, seed, cells=False),
        "state": _norm(model, inside, before, signs, seed, cells=True),
        "message": _message(model, inside, before, token),
    }


def _norm(
    model: Readable, inside: Tensor, before: Sequence[States], signs: int, seed: int, *, cells: bool
) -> Float[Tensor, "*member sentence"]:
    """Root mean square of v J: all signs at once, each sentence that many times over."""
    repeated = [tuple(part.repeat_interleave(signs, dim=-2) for part in layer) for layer in before]
    leaves = [part.requires_grad_() for layer in repeated for part in (layer if cells else layer[:1])]
    between = _as_it_is if cells else _without_cells
    _, after = read_through(model, inside.repeat_interleave(signs, dim=-3), repeated, between)
    ends = [part for layer in after for part in (layer if cells else layer[:1])]
    random = generator(seed, "signs")
    draws = [torch.from_numpy(random.choice([-1.0, 1.0], size=(signs, end.shape[-1]))).to(end) for end in ends]
    total = torch.stack([(end * draw.repeat(end.shape[-2] // signs, 1)).sum() for end, draw in zip(ends, draws, strict=True)])
    squares = sum(grad.square().sum(dim=-1) for grad in torch.autograd.grad(total.sum(), leaves))
    assert isinstance(squares, Tensor)
    units = sum(leaf.shape[-1] for leaf in leaves)
    return (squares.unflatten(-1, (-1, signs)).mean(dim=-1) / units).sqrt()


def _message(model: Readable, inside: Tensor, before: Sequence[States], token: int) -> Float[Tensor, "*member sentence"]:
    leaves = [part.detach().clone().requires_grad_() for layer in before for part in layer]
    width = len(before[0])
    state = tuple(tuple(leaves[place : place + width]) for place in range(0, len(leaves), width))
    top = read_through(model, inside, state)[1][-1][0]
    scores = model.weights.linear("output", top)
    surprise = scores.logsumexp(dim=-1) - scores[..., token]
    squares = [grad.square().sum(dim=-1) for grad in torch.autograd.grad(surprise.sum(), leaves)]
    return torch.stack(squares).sum(dim=0).sqrt()


def _as_it_is(_: int, state: States) -> States:
    return state


def _without_cells(_: int, state: States) -> States:
    """No gradient passes through a cell from step to step."""
    return (state[0], *(cell.detach() for cell in state[1:]))
