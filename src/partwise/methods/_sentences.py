"""The sentences that a method reads, checked: word ids or vectors, their lengths, and the state before the first word."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from partwise.errors import InputError
from partwise.layers import recurrence
from partwise.layers.tap import Tap, untouched
from partwise.twins.readable import Readable

States = tuple[Tensor, ...]
_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


@dataclass(frozen=True)
class Sentences:
    """Embedded sentences. `start` holds (hidden, cell) or (hidden,) of each layer, one row for all sentences or one each."""

    vectors: Float[Tensor, "*member sentence time width"]
    lengths: Int[Tensor, " sentence"]
    start: tuple[States, ...]

    @property
    def time(self) -> int:
        return self.vectors.shape[-2]

    @property
    def inside(self) -> Bool[Tensor, "sentence time"]:
        """True at the words of each sentence, False at the padding after it."""
        return torch.arange(self.time, device=self.lengths.device) < self.lengths[:, None]

    def rows(self, chosen: Int[Tensor, " row"]) -> Sentences:
        """Some of the sentences, in the order given."""
        start = tuple(tuple(part if part.shape[-2] == 1 else part[..., chosen, :] for part in layer) for layer in self.start)
        return Sentences(self.vectors[..., chosen, :, :], self.lengths[chosen], start)


def sentences(model: Readable, ids: Any, lengths: Any = None, init: Any = "zero") -> Sentences:
    """Check what the caller gave, and embed it. `init` is "zero", word ids to read beforehand, or the states themselves.

    Members of a population read the same sentences, or each its own: ids (member, batch, time)."""
    given = torch.as_tensor(ids, device=model.device)
    if given.is_floating_point():
        if given.dim() != 3 or given.shape[-1] != model.width:
            raise InputError(f"ids has shape {tuple(given.shape)}; vectors must be (batch, time, {model.width})")
        vectors = given.to(model.dtype).expand(*model.lead, *given.shape)
    else:
        vectors = embed(model, given, "ids")
    rows, time = vectors.shape[-3:-1]
    if not rows or not time:
        raise InputError(f"ids has shape {tuple(given.shape)}; give at least one sentence of one word")
    return Sentences(vectors, _lengths(lengths, rows, time, model), _start(model, init, rows))


def embed(model: Readable, ids: Tensor, name: str) -> Float[Tensor, "*member sentence time width"]:
    """Vectors of word ids (batch, time), for one model or every member."""
    if ids.dim() != 2 and not (model.lead and ids.dim() == 3 and len(ids) == model.lead[0]):
        each = f", or ({model.lead[0]}, batch, time): sentences of their own for each member" if model.lead else ""
        raise InputError(f"{name} has shape {tuple(ids.shape)}; give (batch, time){each}")
    if model.words is None:
        raise InputError(f"{name} are word ids, but the model was wrapped without embedding=; give vectors or wrap with it")
    check_words(ids, model.words, name)
    ids = ids.to(torch.int64).expand(*model.lead, *ids.shape[-2:])
    return model.weights.embedding("embedding", ids)


def check_words(ids: Tensor, words: int, name: str) -> None:
    outside = ids[(ids < 0) | (ids >= words)]
    if outside.numel():
        raise InputError(f"{name} holds word {int(outside.flatten()[0])}; the vocabulary has words 0 to {words - 1}")


def bytes_of(budget: str | int) -> int:
    """A memory budget in bytes: a number, or text like "1GB" or "500 MB"."""
    if isinstance(budget, int) and budget > 0:
        return budget
    text = str(budget).upper().replace(" ", "")
    number, unit = text.rstrip("BKMGT"), text[len(text.rstrip("BKMGT")) :]
    try:
        size = float(number) * _UNITS[unit or "B"]
    except (ValueError, KeyError):
        size = 0
    if not 0 < size < float("inf"):
        raise InputError(f'budget is {budget!r}; give bytes, or text like "1GB" or "500MB"')
    return int(size)


def _lengths(lengths: Any, rows: int, time: int, model: Readable) -> Int[Tensor, " sentence"]:
    if lengths is None:
        return torch.full((rows,), time, dtype=torch.int64, device=model.device)
    given = torch.as_tensor(lengths, device=model.device)
    if given.shape != (rows,) or given.is_floating_point():
        raise InputError(f"lengths has shape {tuple(given.shape)}; give one whole number for each of the {rows} sentences")
    outside = given[(given < 1) | (given > time)]
    if outside.numel():
        raise InputError(f"lengths holds {int(outside[0])}; a sentence here has 1 to {time} words")
    return given.to(torch.int64)


def _start(model: Readable, init: Any, rows: int) -> tuple[States, ...]:
    if isinstance(init, str):
        if init != "zero":
            raise InputError(f'init is {init!r}; give "zero", word ids to read beforehand, or the states')
        return zero_state(model)
    if (isinstance(init, (tuple, list)) and init and isinstance(init[0], Tensor)) or _is_state(init):
        return _given_state(model, init, rows)
    words = torch.as_tensor(init, device=model.device)
    words = words.unsqueeze(0) if words.dim() == 1 else words
    if words.is_floating_point() or len(words) not in (1, rows):
        raise InputError(f"init has shape {tuple(words.shape)}; give the ids of one sentence, or one sentence a row ({rows})")
    with torch.no_grad():
        return read_through(model, embed(model, words, "init"), zero_state(model))[1]


def _is_state(init: Any) -> bool:
    return isinstance(init, Tensor) and init.is_floating_point()


def _given_state(model: Readable, init: Sequence[Tensor] | Tensor, rows: int) -> tuple[States, ...]:
    """States as the module itself takes them, (layer, batch, hidden), one for a GRU and (h, c) for an LSTM."""
    given = [init] if isinstance(init, Tensor) else list(init)
    wanted = 2 if model.cell == "lstm" else 1
    shapes = [tuple(part.shape) for part in given]
    allowed = [(model.layers, size, model.hidden) for size in {1, rows}]
    if len(given) != wanted or any(shape not in allowed for shape in shapes):
        needs = " and ".join(("h", "c")[:wanted])
        raise InputError(f"init has shapes {shapes}; give {needs} of shape ({model.layers}, 1 or {rows}, {model.hidden})")
    states = [part.detach().to(model.device, model.dtype) for part in given]
    return tuple(tuple(part[layer].expand(*model.lead, -1, -1) for part in states) for layer in range(model.layers))


def read_through(
    model: Readable,
    vectors: Float[Tensor, "*member sentence time width"],
    start: Sequence[States],
    between: Callable[[int, States], States] = lambda _, state: state,
    tap: Tap = untouched,
) -> tuple[Float[Tensor, "*member sentence time hidden"], tuple[States, ...]]:
    """The open equations over whole sentences: the top layer's hidden states at every step, and every layer's last state.

    `between` is given each layer's number and state on its way from one step to the next; `tap` the sites of every layer.
    """
    x, lasts = vectors, []
    for layer in range(model.layers):
        name = f"layer{layer}"
        state: States = tuple(part.expand(*x.shape[:-2], -1) for part in start[layer])
        from_input = model.weights.linear(f"{name}.input", x)
        outputs = []
        for t in range(x.shape[-2]):
            state = between(layer, state) if t else state
            state = recurrence.step(model.cell, model.weights, name, from_input[..., t, :], state, t, tap)
            outputs.append(state[0])
        x = torch.stack(outputs, dim=-2)
        lasts.append(state)
    return x, tuple(lasts)


def zero_state(model: Readable) -> tuple[States, ...]:
    """The state before the first word unless told otherwise, one row for all sentences."""
    zero = torch.zeros(*model.lead, 1, model.hidden, dtype=model.dtype, device=model.device)
    return ((zero,) * (2 if model.cell == "lstm" else 1),) * model.layers
