"""The decomposition as equations, both sides computed on their own: the reference for every faster path.

1. The embedded words are split: those of the phrase are relevant, all others irrelevant.
2. In each layer and step, a gate's input is split into W_x x + W_h h of the relevant side, of the irrelevant side, and
   the biases.
3. The activations are split (see splits), gates are multiplied with their sources, and each product is put on one side.
4. LSTM: c' = f c + i g and h' = o tanh(c'). GRU: i is 1 - z and f is z, h' = (1 - z) n + z h; the reset gate's product
   r (W_hn h + b_hn) is split as any other and enters the candidate's input, its bias product as a part of the
   candidate's bias.
5. The hidden states of both sides are the next layer's inputs.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from partwise.layers.weights import PlainWeights, StackedWeights, Weights
from partwise.methods._sentences import Sentences
from partwise.methods.contextual_decomposition.splits import Parts, Split, activate, activate_state, credit, multiply
from partwise.methods.contextual_decomposition.variants import Variant
from partwise.twins.readable import Readable

Mask = Bool[Tensor, "sentence time"]


def decompose(model: Readable, variant: Variant, read: Sentences, inside: Mask, credited: Mask) -> Split:
    """The top layer's hidden states in two parts, each (member, sentence, time, unit). `credited`: see `bias_product`."""
    phrase = inside.unsqueeze(-1)
    x = Split(torch.where(phrase, read.vectors, 0.0), torch.where(phrase, 0.0, read.vectors))
    weights = without_bias(model)
    for layer in range(model.layers):
        name = f"layer{layer}"
        inputs = Split(*(weights.linear(f"{name}.input", side) for side in x))
        biases = bias_of(model, name)
        state = tuple(_sided(part, variant.initial_state, read) for part in read.start[layer])
        outputs: list[Split] = []
        for t in range(read.time):
            from_input = Split(*(side[..., t, :] for side in inputs))
            from_state = Split(*(weights.linear(f"{name}.recurrent", side) for side in state[0]))
            step = lstm_step if model.cell == "lstm" else gru_step
            state = step(variant, from_input, from_state, biases, state, credited[:, t, None])
            outputs.append(state[0])
        x = Split(*(torch.stack(sides, dim=-2) for sides in zip(*outputs, strict=True)))
    return x


def lstm_step(
    variant: Variant,
    from_input: Split,
    from_state: Split,
    biases: tuple[Tensor, Tensor],
    state: tuple[Split, ...],
    credited: Bool[Tensor, "sentence 1"],
) -> tuple[Split, Split]:
    sums = [a + b for a, b in zip(from_input, from_state, strict=True)]
    i, f, g, o = (
        Parts(*gate) for gate in zip(*(part.chunk(4, dim=-1) for part in (*sums, biases[0] + biases[1])), strict=True)
    )
    i, f, o = (activate("sigmoid", gate, variant.activation) for gate in (i, f, o))
    g = activate("tanh", g, variant.activation)
    written, kept = credit(multiply(i, g, variant), credited), multiply(f, state[1], variant)
    cell = Split(written.relevant + kept.relevant, written.irrelevant + kept.irrelevant)
    squashed = activate_state(cell)
    if variant.output_gate:
        shown = multiply(o, squashed, variant)
        return Split(shown.relevant, shown.irrelevant), cell
    whole = o.relevant + o.irrelevant + o.bias
    return Split(whole * squashed.relevant, whole * squashed.irrelevant), cell


def gru_step(
    variant: Variant,
    from_input: Split,
    from_state: Split,
    biases: tuple[Tensor, Tensor],
    state: tuple[Split, ...],
    credited: Bool[Tensor, "sentence 1"],
) -> tuple[Split]:
    rows = zip(*(part.chunk(3, dim=-1) for part in (*from_input, biases[0])), strict=True)
    columns = zip(*(part.chunk(3, dim=-1) for part in (*from_state, biases[1])), strict=True)
    (r_in, z_in, n_in), (r_state, z_state, n_state) = ([Parts(*gate) for gate in gates] for gates in (rows, columns))
    r, z = (
        activate("sigmoid", Parts(*(a + b for a, b in zip(one, other, strict=True))), variant.activation)
        for one, other in ((r_in, r_state), (z_in, z_state))
    )
    reset = multiply(r, n_state, variant)
    n = activate("tanh", Parts(*(a + b for a, b in zip(n_in, reset, strict=True))), variant.activation)
    new = Parts(-z.relevant, -z.irrelevant, 1 - z.bias)
    written, kept = credit(multiply(new, n, variant), credited), multiply(z, state[0], variant)
    return (Split(written.relevant + kept.relevant, written.irrelevant + kept.irrelevant),)


def without_bias(model: Readable) -> Weights:
    """The model's maps as plain products: biases are a part of their own."""
    maps = {name: value for name, value in model.parameters.items() if not name.endswith(".bias")}
    return PlainWeights(maps) if model.members is None else StackedWeights(maps)


def bias_of(model: Readable, layer: str) -> tuple[Tensor, Tensor]:
    """The biases of the input map and of the recurrent map, ready to be added to (member, sentence, gate); zero without one."""
    found = []
    for side in ("input", "recurrent"):
        weight = model.parameters[f"{layer}.{side}.weight"]
        bias = model.parameters.get(f"{layer}.{side}.bias")
        found.append(weight.new_zeros(weight.shape[:-1]).unsqueeze(-2) if bias is None else bias.unsqueeze(-2))
    return found[0], found[1]


def _sided(part: Float[Tensor, "*member row hidden"], side: str, read: Sentences) -> Split:
    """The initial state, one row a sentence, on the side where the variant puts it."""
    rows = part.expand(*part.shape[:-2], len(read.lengths), part.shape[-1])
    return Split(rows, torch.zeros_like(rows)) if side == "relevant" else Split(torch.zeros_like(rows), rows)
