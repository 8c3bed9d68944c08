"""The decomposition of Murdoch et al., with everything that sentences share computed once. Same numbers as `equations`.

1. Read each distinct sentence once, whole. From then on the irrelevant side of every sum is the whole less the relevant side:
   one product a layer and step in place of two, and two activations a gate in place of five.
2. Before its first word a phrase contributes exactly nothing. Order the rows by that word; at step t only those that
   have begun take part, and of these only those that had begun before have a recurrent product.
3. The LSTM's output gate is not decomposed, so its rows of the maps are left out of the relevant side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from partwise.layers.weights import PlainWeights, StackedWeights, Weights
from partwise.methods._sentences import Sentences
from partwise.methods.contextual_decomposition.equations import bias_of, without_bias
from partwise.methods.contextual_decomposition.splits import Split
from partwise.methods.contextual_decomposition.variants import MURDOCH, Variant
from partwise.twins.readable import Readable

Value = Float[Tensor, "*batch _"]
Bias = Float[Tensor, "*#batch _"]  # one row for all
Mask = Bool[Tensor, "row time"]
States = tuple[Tensor, ...]
Here = tuple[Value, Value, Value]  # sums, activations, and the cell or the GRU's hidden state, a row each
_BLOCK = 512  # rows at a time on a CPU, so that what a step makes stays in its cache (measured)


def is_fast(variant: Variant) -> bool:
    fields = ("activation", "interactions", "output_gate")
    return all(getattr(variant, field) == getattr(MURDOCH, field) for field in fields)


@dataclass(frozen=True)
class Known:
    """What one layer computes whole at one step: what the input map alone gives; the sums that enter the three decomposed gates
    (i, f, g or r, z, n), biases included; the activations of all gates; and the new state, hidden first."""

    from_word: Value
    sums: Value
    gates: Value
    state: States

    def at(self, rows: Tensor) -> tuple[Value, Value, Value]:
        """Sums, activations and the cell (the GRU's hidden state) for rows, each of which reads one of the sentences."""
        sums, gates, last = (value.index_select(-2, rows) for value in (self.sums, self.gates, self.state[-1]))
        return sums, gates, last


def read_whole(model: Readable, read: Sentences) -> list[list[Known]]:
    """Every layer at every step on every sentence, undecomposed."""
    weights, x, layers = without_bias(model), read.vectors, []
    step = _whole_lstm if model.cell == "lstm" else _whole_gru
    for layer in range(model.layers):
        from_words = weights.linear(f"layer{layer}.input", x)
        state: States = tuple(part.expand(*x.shape[:-2], -1).contiguous() for part in read.start[layer])
        known = []
        for t in range(read.time):
            from_state = weights.linear(f"layer{layer}.recurrent", state[0])
            known.append(step(from_words[..., t, :], from_state, *bias_of(model, f"layer{layer}"), state))
            state = known[-1].state
        x = torch.stack([one.state[0] for one in known], dim=-2)
        layers.append(known)
    return layers


def decompose_fast(
    model: Readable,
    variant: Variant,
    read: Sentences,
    whole: list[list[Known]],
    sentence: Int[Tensor, " row"],
    inside: Mask,
    credited: Mask,
) -> Split:
    """The top layer's hidden states of every row in two parts; `sentence` says which of the distinct sentences a row reads."""
    begins = inside.long().argmax(dim=1)
    if variant.initial_state == "relevant" or variant.bias_product == "always":
        begins = torch.zeros_like(begins)
    shown = torch.stack([known.state[0] for known in whole[-1]], dim=-2).index_select(-3, sentence)
    relevant = torch.zeros_like(shown)
    order = begins.argsort()
    for rows in order.split(_BLOCK if not sentence.is_cuda else len(order)):
        steps = _relevant_states(model, variant, read, whole, sentence[rows], inside[rows], credited[rows], begins[rows])
        for t, values in steps:
            relevant[..., rows[: values.shape[-2]], t, :] = values
    return Split(relevant, shown.sub_(relevant))


def _relevant_states(
    model: Readable,
    variant: Variant,
    read: Sentences,
    whole: list[list[Known]],
    sentence: Int[Tensor, " row"],
    inside: Mask,
    credited: Mask,
    begins: Int[Tensor, " row"],
) -> Iterator[tuple[int, Value]]:
    """(step, the top layer's relevant states of the rows that have begun), for rows in the order in which they begin."""
    maps, step = _decomposed_maps(model), _lstm_step if model.cell == "lstm" else _gru_step
    biases = [bias_of(model, f"layer{layer}") for layer in range(model.layers)]
    states = [_first_state(variant, part, sentence) for part in read.start]
    times = torch.arange(read.time, device=begins.device)
    begun = torch.searchsorted(begins, times, right=True).tolist()
    had_begun = len(sentence) if variant.initial_state == "relevant" else 0
    for t in range(begun.index(next(filter(None, begun))), read.time):
        active = begun[t]
        in_phrase = inside[:active, t].nonzero().squeeze(1)
        below = None
        for layer, known in enumerate(whole):
            if below is None:
                from_input = known[t].sums.new_zeros(*model.lead, active, 3 * model.hidden)
                from_input[..., in_phrase, :] = known[t].from_word[..., sentence[in_phrase], : 3 * model.hidden]
            else:
                from_input = maps.linear(f"layer{layer}.input", below)
            old = tuple(part[..., :active, :] for part in states[layer])
            from_state = torch.zeros_like(from_input)
            if had_begun:
                from_state[..., :had_begun, :] = maps.linear(f"layer{layer}.recurrent", old[0][..., :had_begun, :])
            here = known[t].at(sentence[:active])
            new = step(here, from_input, from_state, biases[layer], old, credited[:active, t, None])
            for kept, value in zip(states[layer], new, strict=True):
                kept[..., :active, :] = value
            below = new[0]
        had_begun = active
        yield t, states[-1][0][..., :active, :]


def _whole_lstm(from_word: Value, from_state: Value, in_bias: Tensor, state_bias: Tensor, state: States) -> Known:
    sums = from_word + from_state + (in_bias + state_bias)
    width = sums.shape[-1] // 4
    gates = torch.cat(
        (sums[..., : 2 * width].sigmoid(), sums[..., 2 * width : 3 * width].tanh(), sums[..., 3 * width :].sigmoid()), dim=-1
    )
    i, f, g, o = gates.chunk(4, dim=-1)
    cell = f * state[1] + i * g
    return Known(from_word, sums[..., : 3 * width], gates, (o * torch.tanh(cell), cell))


def _whole_gru(from_word: Value, from_state: Value, in_bias: Tensor, state_bias: Tensor, state: States) -> Known:
    width = from_word.shape[-1] // 3
    recurrent = from_state + state_bias
    sums = from_word + in_bias
    sums[..., : 2 * width] += recurrent[..., : 2 * width]
    r, z = sums[..., : 2 * width].sigmoid().chunk(2, dim=-1)
    sums[..., 2 * width :] += r * recurrent[..., 2 * width :]
    n = sums[..., 2 * width :].tanh()
    return Known(from_word, sums, torch.cat((r, z, n), dim=-1), ((1 - z) * n + z * state[0],))


def _lstm_step(
    here: Here, from_input: Value, from_state: Value, biases: tuple[Tensor, Tensor], old: States, credited: Tensor
) -> States:
    """c_rel' = (f_rel + f_b) c_rel + i_rel (g_rel + g_b) + i_b g_rel (+ i_b g_b), and the whole output gate."""
    sums, gates, whole_cell = here
    width = old[0].shape[-1]
    two, three = 2 * width, 3 * width
    relevant = from_input.add_(from_state)
    bias = biases[0] + biases[1]
    i_and_f = _relevant(torch.sigmoid, relevant[..., :two], bias[..., :two], sums[..., :two], gates[..., :two])
    g = _relevant(torch.tanh, relevant[..., two:], bias[..., two:three], sums[..., two:], gates[..., two:three])
    i, f = i_and_f.chunk(2, dim=-1)
    bias_i, bias_f = bias[..., :two].sigmoid().chunk(2, dim=-1)
    bias_g = bias[..., two:three].tanh()
    cell = f.add_(bias_f).mul_(old[1])
    cell = cell.addcmul_(i, g + bias_g).addcmul_(bias_i, g)
    cell += torch.where(credited, bias_i * bias_g, 0.0)
    shown = torch.tanh(cell).sub_((whole_cell - cell).tanh_()).add_(whole_cell.tanh_())
    return shown.mul_(gates[..., three:]).mul_(0.5), cell


def _gru_step(
    here: Here, from_input: Value, from_state: Value, biases: tuple[Tensor, Tensor], old: States, credited: Tensor
) -> States:
    """h_rel' = i_rel (n_rel + n_b) + i_b n_rel (+ i_b n_b) + (z_rel + z_b) h_rel, where i_rel = -z_rel and i_b = 1 - z_b."""
    sums, activations, _ = here
    two = 2 * old[0].shape[-1]
    gate_bias = (biases[0] + biases[1])[..., :two]
    gates = _relevant(
        torch.sigmoid, from_input[..., :two] + from_state[..., :two], gate_bias, sums[..., :two], activations[..., :two]
    )
    r, z = gates.chunk(2, dim=-1)
    bias_r, bias_z = gate_bias.sigmoid().chunk(2, dim=-1)
    recurrent, recurrent_bias = from_state[..., two:], biases[1][..., two:]
    reset = r * (recurrent + recurrent_bias) + bias_r * recurrent
    bias = biases[0][..., two:] + bias_r * recurrent_bias
    n = _relevant(torch.tanh, from_input[..., two:] + reset, bias, sums[..., two:], activations[..., two:])
    bias_n = bias.tanh()
    written = (1 - bias_z) * n - z * (n + bias_n) + torch.where(credited, (1 - bias_z) * bias_n, 0.0)
    return (written + (z + bias_z) * old[0],)


def _relevant(function: Callable[[Tensor], Tensor], relevant: Value, bias: Bias, whole: Value, activation: Value) -> Value:
    """rel = 1/2 {[f(r + b) - f(b)] + [f(whole) - f(whole - r)]}, where f(whole) is known."""
    return (function(relevant + bias) - function(bias)).add_(activation).sub_(function(whole - relevant)).mul_(0.5)


def _decomposed_maps(model: Readable) -> Weights:
    """Both maps of each layer, as the gates that are decomposed need them: the first three blocks of rows."""
    maps = {
        name: value[..., : 3 * model.hidden, :]
        for name, value in model.parameters.items()
        if name.startswith("layer") and name.endswith("weight")
    }
    return PlainWeights(maps) if model.members is None else StackedWeights(maps)


def _first_state(variant: Variant, start: States, rows: Tensor) -> States:
    """The relevant side of the state before the first word."""
    relevant = variant.initial_state == "relevant"
    return tuple(
        (part.expand(*part.shape[:-2], len(rows), -1) if part.shape[-2] == 1 else part.index_select(-2, rows)).clone()
        if relevant
        else part.new_zeros(*part.shape[:-2], len(rows), part.shape[-1])
        for part in start
    )
