"""Any number of parts at once: every non-linearity and every product shared out by Shapley's rule.

A sentence's words are dealt out to parts 0 to P - 1; one part more, the intercept, holds the biases, f(0) of every
non-linearity, and the state before the first word. At a non-linearity the players are all parts; v(S) = f(sum of S) - f(0),
so that a part that contributes nothing gets nothing. A product of two sums (sum a)(sum b) gives part p the share
1/2 (a_p sum b + sum a b_p).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from math import factorial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from partwise.layers import recurrence
from partwise.methods._sentences import Sentences
from partwise.methods.contextual_decomposition.equations import bias_of, without_bias
from partwise.twins.readable import Readable

MOST_PARTS = 8
Shares = Float[Tensor, "part *batch _"]  # the last part is the intercept


def decompose_parts(model: Readable, read: Sentences, part_of: Int[Tensor, "sentence time"], parts: int) -> Shares:
    """The top layer's hidden states, (part, member, sentence, time, unit)."""
    weights = without_bias(model)
    numbers = torch.arange(parts + 1, device=part_of.device).view(-1, *[1] * len(model.lead), 1, 1, 1)
    x = torch.where(part_of.unsqueeze(-1) == numbers, read.vectors, 0.0)
    for layer in range(model.layers):
        name = f"layer{layer}"
        from_inputs = _each(weights.linear, f"{name}.input", x)
        state = tuple(_intercept(value.expand(*read.vectors.shape[:-2], -1), parts) for value in read.start[layer])
        biases = bias_of(model, name)
        step = _lstm_step if model.cell == "lstm" else _gru_step
        outputs = []
        for t in range(read.time):
            from_state = _each(weights.linear, f"{name}.recurrent", state[0])
            state = step(_plus(from_inputs[..., t, :], biases[0]), _plus(from_state, biases[1]), state)
            outputs.append(state[0])
        x = torch.stack(outputs, dim=-2)
    return x


def _lstm_step(from_input: Shares, from_state: Shares, state: tuple[Shares, ...]) -> tuple[Shares, ...]:
    sums = (from_input + from_state).chunk(recurrence.GATES["lstm"], dim=-1)
    i, f, o = (share_out(torch.sigmoid, sums[gate]) for gate in (0, 1, 3))
    g = share_out(torch.tanh, sums[2])
    cell = share_product(f, state[1]) + share_product(i, g)
    return share_product(o, share_out(torch.tanh, cell)), cell


def _gru_step(from_input: Shares, from_state: Shares, state: tuple[Shares, ...]) -> tuple[Shares]:
    (r_in, z_in, n_in), (r_state, z_state, n_state) = from_input.chunk(3, dim=-1), from_state.chunk(3, dim=-1)
    r, z = share_out(torch.sigmoid, r_in + r_state), share_out(torch.sigmoid, z_in + z_state)
    n = share_out(torch.tanh, n_in + share_product(r, n_state))
    return (share_product(_plus(-z, torch.ones_like(z[0])), n) + share_product(z, state[0]),)


def share_out(function: Callable[[Tensor], Tensor], parts: Shares) -> Shares:
    """Shapley values of v(S) = f(sum of S) - f(0) over the parts; the last part gets f(0) on top."""
    coalitions, weights = _game(len(parts), parts.dtype, parts.device)
    nothing = function(torch.zeros_like(parts[0]))
    values = function(torch.tensordot(coalitions, parts, dims=1))
    return _plus(torch.tensordot(weights, values, dims=1), nothing)


def share_product(left: Shares, right: Shares) -> Shares:
    return (left * right.sum(dim=0) + left.sum(dim=0) * right) / 2


def _game(players: int, dtype: torch.dtype, device: torch.device) -> tuple[Float[Tensor, "coalition part"], Tensor]:
    """Which parts are in each coalition, and the weight of its value in each part's share:
    |S|! (P - |S| - 1)! / P! where joining it, minus the same where it has joined."""
    coalitions = list(itertools.product((0, 1), repeat=players))
    weights = torch.zeros(players, len(coalitions), dtype=torch.float64)
    for number, coalition in enumerate(coalitions):
        size = sum(coalition)
        for player, joined in enumerate(coalition):
            before = size - joined
            weight = factorial(before) * factorial(players - before - 1) / factorial(players)
            weights[player, number] = weight if joined else -weight
    return torch.tensor(coalitions, dtype=dtype, device=device), weights.to(device, dtype)


def _plus(parts: Shares, intercept: Tensor) -> Shares:
    """Add something to the last part."""
    return torch.cat((parts[:-1], (parts[-1] + intercept).unsqueeze(0)))


def _intercept(state: Tensor, parts: int) -> Shares:
    return torch.cat((state.new_zeros(parts, *state.shape), state.unsqueeze(0)))


def _each(linear: Callable[[str, Tensor], Tensor], name: str, parts: Shares) -> Shares:
    """A map of every part; the member axis, where there is one, must come first, so that parts go one by one."""
    return torch.stack([linear(name, part) for part in parts])
