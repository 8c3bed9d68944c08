"""Running text cut into streams that are read side by side, window after window, as PyTorch's example of a language model does.

A text of n words becomes s streams of n // s words; what is left over is not read. The last window may be shorter: what it
lacks is filled with -1, which counts for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int, Int32
from torch import Tensor

NOTHING = -1


@dataclass(frozen=True)
class Text:
    """One split of every member's corpus on its device; window i has words i * window to (i + 1) * window, and one more."""

    ids: Int32[Tensor, "member stream place"]
    window: int

    @property
    def windows(self) -> int:
        return (self.ids.shape[-1] - 1) // self.window

    def __iter__(self) -> Iterator[Int32[Tensor, "member stream place"]]:
        for start in range(0, self.windows * self.window, self.window):
            yield self.ids[..., start : start + self.window + 1]


def text(texts: Sequence[Int[np.ndarray, " word"]], streams: int, window: int, device: str | torch.device = "cpu") -> Text:
    """Texts of equal length, one a member (the same array may come again: it is cut once)."""
    cut: dict[int, np.ndarray] = {}
    for words in texts:
        if id(words) not in cut:
            cut[id(words)] = _cut(words, streams, window)
    ids = torch.from_numpy(np.stack([cut[id(words)] for words in texts]))
    return Text(ids.to(device), window)


def _cut(words: Int[np.ndarray, " word"], streams: int, window: int) -> Int32[np.ndarray, "stream place"]:
    length = len(words) // streams
    windows = -(-(length - 1) // window)
    cut = np.full((streams, windows * window + 1), NOTHING, np.int32)
    cut[:, :length] = words[: streams * length].reshape(streams, length)
    return cut


def split_window(piece: Int[Tensor, "*member stream word"]) -> tuple[Tensor, Tensor]:
    """(words read, words to be predicted), each (member, stream, time), as int64."""
    words = piece.long()
    return words[..., :-1].clamp_min(0), words[..., 1:]
