"""GRU and LSTM steps as their equations, in PyTorch's conventions, with every gate a site.

A step takes what its input map and its recurrent map gave (both with their biases) and the old state. The open steps are the
reference. `gru_step_fast` and `lstm_step_fast` compute the same numbers: on the CPU with a hand-derived backward, on CUDA
with the kernels of PyTorch's own cells; tests hold them equal. Note the conventions: the GRU's update gate is 1 where the
OLD state is kept (most papers write the opposite), and its reset gate acts after the recurrent product.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from partwise.layers.tap import Tap, untouched
from partwise.layers.weights import Weights

Gates = Float[Tensor, "*batch gates"]
State = Float[Tensor, "*batch hidden"]
AnyState = Float[Tensor, "*batch _"]  # a projected hidden state is narrower than its cell

GATES = {"gru": 3, "lstm": 4}
SITES = {
    "gru": ("reset_gate", "update_gate", "candidate", "hidden"),
    "lstm": ("input_gate", "forget_gate", "candidate", "output_gate", "cell", "hidden"),
}


def step(
    cell: str, weights: Weights, name: str, from_input: Gates, state: tuple[AnyState, ...], t: int, tap: Tap = untouched
) -> tuple[State, ...]:
    """One step of the cell called `name`: the state is (hidden,) for a GRU, (hidden, cell) for an LSTM."""
    from_state = weights.linear(f"{name}.recurrent", state[0])
    fast = weights.hand_derived and tap is untouched
    if cell == "gru":
        if fast:
            return (gru_step_fast(from_input, from_state, state[0]),)
        return (gru_step(from_input, from_state, state[0], name, t, tap),)
    if fast:
        return lstm_step_fast(from_input, from_state, state[1])
    return lstm_step(from_input, from_state, state[1], name, t, tap)


def gru_step(from_input: Gates, from_state: Gates, hidden: State, name: str, t: int, tap: Tap = untouched) -> State:
    """r = sigma(W_ir x + b_ir + W_hr h + b_hr), z likewise, n = tanh(W_in x + b_in + r (W_hn h + b_hn)),
    h' = (1 - z) n + z h."""
    reset_in, update_in, candidate_in = from_input.chunk(3, dim=-1)
    reset_state, update_state, candidate_state = from_state.chunk(3, dim=-1)
    r = tap(f"{name}.reset_gate", t, torch.sigmoid(reset_in + reset_state))
    z = tap(f"{name}.update_gate", t, torch.sigmoid(update_in + update_state))
    n = tap(f"{name}.candidate", t, torch.tanh(candidate_in + r * candidate_state))
    return tap(f"{name}.hidden", t, (1 - z) * n + z * hidden)


def lstm_step(
    from_input: Gates, from_state: Gates, cell: State, name: str, t: int, tap: Tap = untouched
) -> tuple[State, State]:
    """i, f, o = sigma(...), g = tanh(...), c' = f c + i g, h' = o tanh(c'); gates lie in the order i, f, g, o."""
    input_gate, forget_gate, candidate, output_gate = (from_input + from_state).chunk(4, dim=-1)
    i = tap(f"{name}.input_gate", t, torch.sigmoid(input_gate))
    f = tap(f"{name}.forget_gate", t, torch.sigmoid(forget_gate))
    g = tap(f"{name}.candidate", t, torch.tanh(candidate))
    o = tap(f"{name}.output_gate", t, torch.sigmoid(output_gate))
    c = tap(f"{name}.cell", t, f * cell + i * g)
    return tap(f"{name}.hidden", t, o * torch.tanh(c)), c


def gru_step_fast(from_input: Gates, from_state: Gates, hidden: State) -> State:
    """`gru_step` in a third of the kernels or fewer; first derivatives only."""
    if hidden.is_cuda:
        new, _ = torch.ops.aten._thnn_fused_gru_cell(_flat(from_input), _flat(from_state), _flat(hidden))
        return new.view(hidden.shape)
    return _FastGru.apply(from_input, from_state, hidden)


def lstm_step_fast(from_input: Gates, from_state: Gates, cell: State) -> tuple[State, State]:
    """`lstm_step`, likewise."""
    if cell.is_cuda:
        hidden, new, _ = torch.ops.aten._thnn_fused_lstm_cell(_flat(from_input), _flat(from_state), _flat(cell))
        return hidden.view(cell.shape), new.view(cell.shape)
    return _FastLstm.apply(from_input, from_state, cell)


def _flat(values: Float[Tensor, "*batch width"]) -> Float[Tensor, "rows width"]:
    """PyTorch's cells know rows only."""
    return values.reshape(-1, values.shape[-1])


class _FastGru(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, from_input: Tensor, from_state: Tensor, hidden: Tensor) -> Tensor:
        width = hidden.shape[-1]
        gates = torch.add(from_input[..., : 2 * width], from_state[..., : 2 * width]).sigmoid_()
        r, z = gates[..., :width], gates[..., width:]
        candidate_state = from_state[..., 2 * width :]
        n = torch.addcmul(from_input[..., 2 * width :], r, candidate_state).tanh_()
        ctx.save_for_backward(gates, n, hidden, candidate_state)
        return torch.lerp(n, hidden, z)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        gates, n, hidden, candidate_state = ctx.saved_tensors
        width = hidden.shape[-1]
        r, z = gates[..., :width], gates[..., width:]
        to_hidden = gradient * z
        to_input = gradient.new_empty(*gradient.shape[:-1], 3 * width)
        to_candidate = to_input[..., 2 * width :]
        torch.ops.aten.tanh_backward.grad_input(gradient - to_hidden, n, grad_input=to_candidate)
        torch.mul(to_candidate, candidate_state, out=to_input[..., :width])
        torch.mul(hidden - n, gradient, out=to_input[..., width : 2 * width])
        to_gates = to_input[..., : 2 * width]
        torch.ops.aten.sigmoid_backward.grad_input(to_gates, gates, grad_input=to_gates)
        to_state = to_input.clone()
        to_state[..., 2 * width :] *= r
        return to_input, to_state, to_hidden


class _FastLstm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, from_input: Tensor, from_state: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        i, f, g, o = (from_input + from_state).chunk(4, dim=-1)
        i, f, g, o = torch.sigmoid(i), torch.sigmoid(f), torch.tanh(g), torch.sigmoid(o)
        new_cell = torch.addcmul(f * cell, i, g)
        squashed = torch.tanh(new_cell)
        ctx.save_for_backward(i, f, g, o, cell, squashed)
        return o * squashed, new_cell

    @staticmethod
    def backward(ctx: Any, to_hidden: Tensor, to_new_cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        i, f, g, o, cell, squashed = ctx.saved_tensors
        to_cell = to_new_cell + torch.ops.aten.tanh_backward(to_hidden * o, squashed)
        to_gates = torch.cat(
            (
                torch.ops.aten.sigmoid_backward(to_cell * g, i),
                torch.ops.aten.sigmoid_backward(to_cell * cell, f),
                torch.ops.aten.tanh_backward(to_cell * i, g),
                torch.ops.aten.sigmoid_backward(to_hidden * squashed, o),
            ),
            dim=-1,
        )
        return to_gates, to_gates, to_cell * f
