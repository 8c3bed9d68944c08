"""The result of a decomposition: hidden states in two parts, decoded into scores only where they are asked for."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Int
from torch import Tensor

from partwise.errors import InputError
from partwise.layers.precision import exact_products
from partwise.methods._sentences import check_words
from partwise.twins.readable import Readable

States = Float[Tensor, "*member sentence time unit"]
At = int | Tensor | None


class Decomposition:
    """`data` holds the parts of the top layer's hidden states; `certificate` the largest relative error found in the rows that
    were checked (of any member: each one's own is in `data.error`)."""

    def __init__(
        self,
        model: Readable,
        variant: str,
        lengths: Int[Tensor, " sentence"],
        relevant: States,
        irrelevant: States,
        errors: Float[Tensor, "*member"],
        budget: int,
        parts: Float[Tensor, "part *member sentence time unit"] | None = None,
    ) -> None:
        self.variant, self.certificate = variant, float(errors.max())
        self._errors = errors
        self._model, self._lengths, self._budget = model, lengths, budget
        self._sides: dict[str, Tensor] = {"relevant": relevant, "irrelevant": irrelevant}
        self._parts = parts

    def __repr__(self) -> str:
        sentences, time = self._sides["relevant"].shape[-3:-1]
        return f"Decomposition({self.variant}, {sentences} sentences of up to {time} words, certificate {self.certificate:.1e})"

    @cached_property
    def data(self) -> xr.Dataset:
        """`relevant` and `irrelevant`, dims (member, sentence, time, unit) with member for a population only; NaN beyond a
        sentence's end. Labelled parts are in `parts`, with a dimension `part` whose last is the intercept."""
        dims = (*self._lead_dims, "sentence", "time", "unit")
        beyond = (torch.arange(self._time, device=self._lengths.device) >= self._lengths[:, None]).unsqueeze(-1)
        arrays = {name: (dims, self._masked(side, beyond)) for name, side in self._sides.items()}
        coords: dict[str, Any] = {} if self._model.members is None else {"member": list(self._model.members)}
        if self._model.members is not None:
            arrays["error"] = (("member",), self._errors.cpu().numpy())
        if self._parts is not None:
            arrays["parts"] = (("part", *dims), self._masked(self._parts, beyond))
            coords["part"] = [*map(str, range(len(self._parts) - 1)), "intercept"]
        return xr.Dataset(arrays, coords, {"variant": self.variant, "certificate": self.certificate})

    def logits(self, tokens: Any = None, at: At = -1) -> xr.Dataset:
        """Scores of `tokens` (default: every word) by each part, the head's bias in neither, at step `at` of each sentence
        (negative: counted from its end; `None`: every step). Dims (sentence, token), with time for every step."""
        weight = self._output()
        chosen = self._tokens(tokens)
        steps = self._time if at is None else 1
        width = weight.shape[-2] if chosen is None else len(chosen)
        size = 2 * self._sides["relevant"].shape[:-2].numel() * steps * width * weight.element_size()
        if size > self._budget:
            raise InputError(
                f"all these logits take {size:,} bytes, the budget is {self._budget:,}; ask for some tokens, for one step "
                "(at=), or raise budget="
            )
        if chosen is not None:
            weight = weight[..., chosen, :]
        dims = (*self._lead_dims, "sentence", *(("time",) if at is None else ()), "token")
        arrays = {}
        for name, side in self._sides.items():
            states = side if at is None else self._at(side, at)
            arrays[name] = (dims, self._scores(states, weight).cpu().numpy())
        coords: dict[str, Any] = {} if self._model.members is None else {"member": list(self._model.members)}
        if chosen is not None:
            coords["token"] = chosen.cpu().numpy()
        return xr.Dataset(arrays, coords, {"variant": self.variant})

    def probability(self, token: Any, at: At = -1) -> xr.DataArray:
        """The softmax of the relevant scores at `token` (one, or one a sentence): what the phrase alone would predict."""
        return self._probability(token, at, {"relevant"})

    def model_probability(self, token: Any, at: At = -1) -> xr.DataArray:
        """The model's own probability of `token`, for comparison: both parts and the head's bias."""
        return self._probability(token, at, set(self._sides))

    def _probability(self, token: Any, at: At, sides: set[str]) -> xr.DataArray:
        weight = self._output()
        sentences = len(self._lengths)
        wanted = torch.as_tensor(token, device=weight.device)
        if wanted.is_floating_point() or wanted.shape not in ((), (sentences,)):
            raise InputError(
                f"token has shape {tuple(wanted.shape)}; give one word id, or one for each of {sentences} sentences"
            )
        check_words(wanted, weight.shape[-2], "token")
        if at is None:
            raise InputError("probability needs a step: at=-1 is the last one")
        states = torch.stack([self._at(self._sides[name], at) for name in sides]).sum(dim=0)
        bias = self._model.parameters.get("output.bias") if len(sides) > 1 else None
        found = []
        members = int(np.prod(self._model.lead, dtype=int))
        rows = max(1, self._budget // (4 * members * weight.shape[-2] * weight.element_size()))
        for part, words in zip(states.split(rows, dim=-2), wanted.expand(sentences).split(rows), strict=True):
            scores = self._scores(part, weight)
            scores = scores if bias is None else scores + bias.unsqueeze(-2)
            picked = scores.gather(-1, words.long().expand(scores.shape[:-1]).unsqueeze(-1)).squeeze(-1)
            found.append((picked - scores.logsumexp(dim=-1)).exp())
        coords = {} if self._model.members is None else {"member": list(self._model.members)}
        values = torch.cat(found, dim=-1).cpu().numpy()
        return xr.DataArray(values, coords, (*self._lead_dims, "sentence"), "probability", {"variant": self.variant})

    @property
    def _time(self) -> int:
        return int(self._sides["relevant"].shape[-2])

    @property
    def _lead_dims(self) -> tuple[str, ...]:
        return () if self._model.members is None else ("member",)

    def _output(self) -> Float[Tensor, "*member word unit"]:
        weight = self._model.parameters.get("output.weight")
        if weight is None:
            raise InputError("the model was wrapped without head=, so there are no scores; wrap it with one nn.Linear")
        return weight

    def _scores(self, states: Float[Tensor, "*batch unit"], weight: Tensor) -> Float[Tensor, "*batch word"]:
        flat = states.reshape(*self._model.lead, -1, states.shape[-1])
        with exact_products():
            return (flat @ weight.mT).reshape(*states.shape[:-1], weight.shape[-2])

    def _tokens(self, tokens: Any) -> Int[Tensor, " token"] | None:
        if tokens is None:
            return None
        chosen = torch.as_tensor(tokens, device=self._lengths.device).reshape(-1)
        check_words(chosen, self._model.outputs or 0, "tokens")
        return chosen

    def _at(self, side: States, at: Any) -> Float[Tensor, "*member sentence unit"]:
        places = torch.as_tensor(at, device=self._lengths.device)
        if places.is_floating_point() or places.shape not in ((), self._lengths.shape):
            raise InputError(f"at has shape {tuple(places.shape)}; give one step, or one for each sentence, or None")
        steps = torch.where(places < 0, self._lengths + places, places)
        outside = (steps < 0) | (steps >= self._lengths)
        if outside.any():
            row = int(outside.nonzero()[0])
            raise InputError(
                f"at is {int(places.expand(len(steps))[row])}, but sentence {row} has {int(self._lengths[row])} words"
            )
        return side[..., torch.arange(len(steps), device=steps.device), steps, :]

    def _masked(self, values: Tensor, beyond: Tensor) -> np.ndarray:
        return (values.masked_fill(beyond, torch.nan) if beyond.any() else values).cpu().numpy()
