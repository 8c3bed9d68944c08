"""The letters-to-phonemes model of g2p-en 2.1.0 (Park and Kim, Apache-2.0): a GRU that reads letters, and a GRU that
writes phonemes.

Its `checkpoint20.npz` holds plain arrays in PyTorch's own layout. The writer starts in the reader's last state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from partwise.errors import InputError
from partwise.twins.wrapped import Wrapped, wrap

Hidden = Float[Tensor, "sentence point hidden"]
LETTERS = ("<pad>", "<unk>", "</s>", *"abcdefghijklmnopqrstuvwxyz")
_VOWELS = ("AA", "AE", "AH", "AO", "AW", "AY", "EH", "ER", "EY", "IH", "IY", "OW", "OY", "UH", "UW")
_OTHERS = (
    "B",
    "CH",
    "D",
    "DH",
    "F",
    "G",
    "HH",
    "JH",
    "K",
    "L",
    "M",
    "N",
    "NG",
    "P",
    "R",
    "S",
    "SH",
    "T",
    "TH",
    "UW",
    "V",
    "W",
    "Y",
)
PHONEMES = ("<pad>", "<unk>", "<s>", "</s>", *sorted([*_OTHERS, "Z", "ZH", *(f"{v}{s}" for v in _VOWELS for s in "012")]))
START, STOP, LONGEST = 2, 3, 20


@dataclass(frozen=True)
class LettersToSounds:
    """`reader` has no head; `writer` scores phonemes."""

    reader: Wrapped
    writer: Wrapped

    def ids(self, word: str) -> Int64[Tensor, "1 time"]:
        """The letters of a word and the end mark."""
        strange = sorted(set(word) - set(LETTERS))
        if strange or not word:
            raise InputError(f"word is {word!r}; give lower-case letters a to z")
        return torch.tensor([[*(LETTERS.index(letter) for letter in word), LETTERS.index("</s>")]])

    @torch.no_grad()
    def say(self, word: str) -> list[str]:
        """The phonemes of a word, always the likeliest next."""
        read, writer = self.reader(self.ids(word)), self.writer
        assert writer.embedding is not None
        assert writer.head is not None
        state, last = read[:, -1].unsqueeze(0), START
        written: list[str] = []
        while len(written) < LONGEST:
            said, state = writer.twins[0](writer.embedding(torch.tensor([[last]])), state)
            last = int(writer.head(said[0, -1]).argmax())
            if last == STOP:
                break
            written.append(PHONEMES[last])
        return written

    def first_sound(self, phoneme: str, other: str) -> Callable[[Hidden], Float[Tensor, "sentence point"]]:
        """A quantity for the reader: the writer's score of one phoneme as the first, less that of another."""
        for name in (phoneme, other):
            if name not in PHONEMES:
                raise InputError(f"{name!r} is no phoneme; they are {' '.join(PHONEMES[4:])}")
        right, wrong = PHONEMES.index(phoneme), PHONEMES.index(other)

        def score(hidden: Hidden) -> Float[Tensor, "sentence point"]:
            rows = hidden.flatten(0, 1)
            said = self.writer(torch.full((len(rows), 1), START), [(rows,)])[:, -1]
            return (said[:, right] - said[:, wrong]).view(hidden.shape[:2])

        return score


def letters_to_sounds(checkpoint: str | Path) -> LettersToSounds:
    """Read `checkpoint20.npz` of an installed (or downloaded) g2p-en."""
    path = Path(checkpoint)
    if not path.is_file():
        raise InputError(f"{path}: no such file; g2p-en 2.1.0 has it as g2p_en/checkpoint20.npz")
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: torch.from_numpy(stored[name]) for name in stored.files}
        reader, writer = (_gru(arrays, side) for side in ("enc", "dec"))
        head = nn.Linear(arrays["fc_w"].shape[1], arrays["fc_w"].shape[0])
        head.load_state_dict({"weight": arrays["fc_w"], "bias": arrays["fc_b"]})
    except (KeyError, ValueError, OSError, RuntimeError) as error:
        raise InputError(f"{path}: is not the checkpoint of g2p-en 2.1.0 ({error})") from None
    embeddings = [nn.Embedding.from_pretrained(arrays[f"{side}_emb"]) for side in ("enc", "dec")]
    return LettersToSounds(
        wrap(embedding=embeddings[0], recurrent=reader), wrap(embedding=embeddings[1], recurrent=writer, head=head)
    )


def _gru(arrays: dict[str, Tensor], side: str) -> nn.GRU:
    names = {"weight_ih_l0": "w_ih", "weight_hh_l0": "w_hh", "bias_ih_l0": "b_ih", "bias_hh_l0": "b_hh"}
    weight = arrays[f"{side}_w_ih"]
    gru = nn.GRU(weight.shape[1], len(weight) // 3, batch_first=True)
    gru.load_state_dict({theirs: arrays[f"{side}_{ours}"] for theirs, ours in names.items()})
    return gru
