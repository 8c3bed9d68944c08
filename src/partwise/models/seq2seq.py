"""Sequence to sequence: a recurrent encoder, and a decoder that attends to it (Bahdanau et al. 2015; Hupkes et al. 2019).

1. The encoder reads the source; its outputs are kept, its last state starts the decoder.
2. At each step the decoder gets the word before (the true one under teacher forcing, else its own choice).
   pre-rnn:  attend with the old state, feed the context and the word to the recurrence, score from the new state;
   post-rnn: feed the word to the recurrence, attend with the new state, score from state and context.
   Full focus (pre-rnn only): the recurrence gets context * relu(W [context; word]) in place of [context; word].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from partwise.errors import InputError, unknown
from partwise.layers import initialise, recurrence
from partwise.layers.attention import attend
from partwise.layers.initialise import Parameter
from partwise.layers.tap import Tap, begin, untouched
from partwise.layers.weights import Weights
from partwise.models._contract import UnitAxis
from partwise.tasks._encoding import START_ID

ATTENTION = ("pre-rnn", "post-rnn")


@dataclass(frozen=True)
class Output:
    """What the decoder said at each step: scores (logits) of every word, the word chosen, and where it looked."""

    logits: Float[Tensor, "*batch target_time word"]
    chosen: Int[Tensor, "*batch target_time"]
    attention: Float[Tensor, "*batch target_time source_time"]


@dataclass(frozen=True, kw_only=True)
class Seq2Seq:
    """Sizes of an encoder-decoder. The decoder's embedding is as wide as the hidden state unless told otherwise."""

    source_words: int
    target_words: int
    encoder_embedding: int = 16
    hidden: int = 512
    decoder_embedding: int | None = None
    cell: str = "gru"
    attention: str = "pre-rnn"
    full_focus: bool = True

    def __post_init__(self) -> None:
        if self.cell not in recurrence.GATES:
            raise unknown("cell", self.cell, recurrence.GATES)
        if self.attention not in ATTENTION:
            raise unknown("attention", self.attention, ATTENTION)
        if self.full_focus and self.attention != "pre-rnn":
            raise InputError(
                f"full_focus weighs the context before the recurrence, so it needs attention pre-rnn; found {self.attention}"
            )

    @property
    def _decoder_width(self) -> int:
        return self.decoder_embedding or self.hidden

    def parameters(self) -> dict[str, Parameter]:
        hidden, word, gates = self.hidden, self._decoder_width, recurrence.GATES[self.cell]
        step_input = hidden if self.full_focus else word if self.attention == "post-rnn" else hidden + word
        parts = {
            "encoder.embedding": initialise.embedding(self.source_words, self.encoder_embedding),
            "encoder": initialise.recurrent_cell(gates, self.encoder_embedding, hidden),
            "attention.key": initialise.linear(hidden, hidden, range_of=2 * hidden),
            "attention.query": initialise.linear(hidden, hidden, bias=False, range_of=2 * hidden),
            "attention.energy": initialise.linear(hidden, 1),
            "decoder.embedding": initialise.embedding(self.target_words, word),
            "decoder": initialise.recurrent_cell(gates, step_input, hidden),
            "decoder.output": initialise.linear(2 * hidden if self.attention == "post-rnn" else hidden, self.target_words),
        }
        if self.full_focus:
            parts["focus.context"] = initialise.linear(hidden, hidden, range_of=hidden + word)
            parts["focus.word"] = initialise.linear(word, hidden, bias=False, range_of=hidden + word)
        return {f"{part}.{kind}": one for part, kinds in parts.items() for kind, one in kinds.items()}

    def sites(self) -> tuple[str, ...]:
        gates = recurrence.SITES[self.cell]
        inside = [f"{side}.{site}" for side in ("encoder", "decoder") for site in ("embedding", *gates)]
        return (*inside, "attention.weights", "attention.context", "decoder.logits")

    def units(self) -> dict[str, int]:
        return {"encoder": self.hidden, "decoder": self.hidden}

    def unit_axes(self) -> dict[str, tuple[UnitAxis, ...]]:
        """Where a unit is fed, feeds back, and is read: by attention, by the decoder's input, by the output."""
        gates = recurrence.GATES[self.cell]
        post = self.attention == "post-rnn"
        read = {
            "encoder": [UnitAxis("attention.key.weight", 1)],
            "decoder": [UnitAxis("attention.query.weight", 1), UnitAxis("decoder.output.weight", 1, start=post * self.hidden)],
        }
        read["encoder"].append(UnitAxis("decoder.output.weight" if post else "decoder.input.weight", 1))
        if self.full_focus:
            read["encoder"].append(UnitAxis("focus.context.weight", 1))
        return {side: (*_own_axes(side, gates), *axes) for side, axes in read.items()}

    def forward(
        self,
        weights: Weights,
        source: Int[Tensor, "*batch source_time"],
        source_length: Int[Tensor, "*batch"],
        steps: int,
        forced: Int[Tensor, "*batch target_time"] | None = None,
        teacher_forcing: Bool[Tensor, "*#batch"] | None = None,
        tap: Tap = untouched,
    ) -> Output:
        """Read `source`, then write `steps` words; where `teacher_forcing`, each is written after the true words `forced`."""
        begin(tap, self.sites())
        readable = torch.arange(source.shape[-1], device=source.device) < source_length.unsqueeze(-1)
        encoded, state = self._encode(weights, source, readable, tap)
        keys = weights.linear("attention.key", encoded)
        word = torch.full_like(source_length, START_ID)
        said: list[tuple[Tensor, Tensor, Tensor]] = []
        for t in range(steps):
            logits, attention, state = self._decode(weights, word, state, encoded, keys, readable, t, tap)
            word = logits.detach().argmax(dim=-1)
            said.append((logits, word, attention))
            if teacher_forcing is not None and forced is not None:
                word = torch.where(teacher_forcing, forced[..., t], word)
        logits_list, chosen, attentions = zip(*said, strict=True)
        return Output(torch.stack(logits_list, -2), torch.stack(chosen, -1), torch.stack(attentions, -2))

    def _encode(self, weights: Weights, source: Tensor, readable: Tensor, tap: Tap) -> tuple[Tensor, tuple[Tensor, ...]]:
        words = weights.embedding("encoder.embedding", source)
        if tap is not untouched:
            words = torch.stack([tap("encoder.embedding", t, words[..., t, :]) for t in range(source.shape[-1])], dim=-2)
        from_input = weights.linear("encoder.input", words)
        zero = words.new_zeros(*source.shape[:-1], self.hidden)
        state: tuple[Tensor, ...] = (zero,) if self.cell == "gru" else (zero, zero)
        outputs = []
        for t in range(source.shape[-1]):
            new = recurrence.step(self.cell, weights, "encoder", from_input[..., t, :], state, t, tap)
            inside = readable[..., t, None]  # a sentence that has ended keeps its last state
            state = tuple(torch.where(inside, after, before) for after, before in zip(new, state, strict=True))
            outputs.append(state[0])
        encoded = torch.stack(outputs, dim=-2)
        return encoded.masked_fill(~readable.unsqueeze(-1), 0.0), state

    def _decode(self, weights: Weights, word_ids: Tensor, state: tuple[Tensor, ...], *encoder: Any) -> tuple[Any, ...]:
        encoded, keys, readable, t, tap = encoder
        word = tap("decoder.embedding", t, weights.embedding("decoder.embedding", word_ids))
        if self.attention == "pre-rnn":
            context, attention = attend(weights, encoded, keys, state[0], readable, t, tap)
            if self.full_focus:
                focus = weights.linear("focus.context", context) + weights.linear("focus.word", word)
                step_input = context * torch.relu(focus)
            else:
                step_input = torch.cat((context, word), dim=-1)
            state = self._step(weights, step_input, state, t, tap)
            scored = state[0]
        else:
            state = self._step(weights, word, state, t, tap)
            context, attention = attend(weights, encoded, keys, state[0], readable, t, tap)
            scored = torch.cat((context, state[0]), dim=-1)
        return tap("decoder.logits", t, weights.linear("decoder.output", scored)), attention, state

    def _step(self, weights: Weights, step_input: Tensor, state: tuple[Tensor, ...], t: int, tap: Tap) -> tuple[Tensor, ...]:
        from_input = weights.linear("decoder.input", step_input)
        return recurrence.step(self.cell, weights, "decoder", from_input, state, t, tap)


def _own_axes(side: str, gates: int) -> tuple[UnitAxis, ...]:
    into = [UnitAxis(f"{side}.{part}.{kind}", 0, gates) for part in ("input", "recurrent") for kind in ("weight", "bias")]
    return (*into, UnitAxis(f"{side}.recurrent.weight", 1))


ARCHITECTURE = Seq2Seq
