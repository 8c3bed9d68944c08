"""The data of a population on its device: each member its own rows, in its own order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Int64
from torch import Tensor

from partwise.randomness import generator
from partwise.tasks._contract import Task
from partwise.tasks._encoding import Encoded, Vocabulary, encode


@dataclass(frozen=True)
class Rows:
    """Some rows for every member. `real` is False where a row only fills up the last batch."""

    source: Int[Tensor, "*member row source_time"]
    source_length: Int[Tensor, "*member row"]
    target: Int[Tensor, "*member row target_time"]
    target_length: Int[Tensor, "*member row"]
    alignment: Float[Tensor, "*member row target_time source_time"]
    real: Bool[Tensor, "*member row"]

    @property
    def steps(self) -> int:
        return self.target.shape[-1]

    @property
    def counts(self) -> Bool[Tensor, "*member row target_time"]:
        """Which output steps count: those of real rows, up to and with <eos>."""
        inside = torch.arange(self.steps, device=self.target.device) < self.target_length.unsqueeze(-1)
        return inside & self.real.unsqueeze(-1)

    def take(self, indices: Int[Tensor, "member batch"]) -> Rows:
        """Each member's rows at its own indices; an index of -1 stands for no row."""
        members = torch.arange(indices.shape[0], device=indices.device).unsqueeze(1)
        chosen = indices.clamp_min(0)
        taken = {field.name: getattr(self, field.name)[members, chosen] for field in fields(self)}
        return Rows(**taken | {"real": taken["real"] & (indices >= 0)})


def stack(tasks: Sequence[Task], split: str, device: str | torch.device = "cpu") -> Rows:
    """One split of each member's task, with a member axis; a shorter split is filled up with rows that are not real."""
    source, target = Vocabulary.source(tasks[0]), Vocabulary.target(tasks[0])
    encoded = {task: encode(task.splits[split], source, target) for task in dict.fromkeys(tasks)}
    parts = [encoded[task] for task in tasks]
    tensors = {}
    for field in fields(Encoded):
        arrays = [getattr(part, field.name) for part in parts]
        largest = tuple(max(sizes) for sizes in zip(*(array.shape for array in arrays), strict=True))
        # the fill repeats the last row, so that it has a length and an attention like any other
        filled = [np.pad(array, [(0, largest[0] - len(array)), *[(0, 0)] * (array.ndim - 1)], mode="edge") for array in arrays]
        wide = [np.pad(array, [(0, size - have) for size, have in zip(largest, array.shape, strict=True)]) for array in filled]
        tensors[field.name] = torch.from_numpy(np.stack(wide)).to(device)
    rows = tensors["source_length"].shape[1]
    real = np.array([np.arange(rows) < len(part.source_length) for part in parts])
    return Rows(**tensors, real=torch.from_numpy(real).to(device))


def order(seeds: Sequence[int], rows: int, batch_size: int, epoch: int) -> Int64[np.ndarray, "step member batch"]:
    """Which rows each member sees at each step of an epoch; the last batch is filled up with -1."""
    steps = -(-rows // batch_size)
    indices = np.full((len(seeds), steps * batch_size), -1, np.int64)
    for member, seed in enumerate(seeds):
        indices[member, :rows] = generator(seed, "data order", epoch).permutation(rows)
    return np.ascontiguousarray(indices.reshape(len(seeds), steps, batch_size).transpose(1, 0, 2))


def forcing(seeds: Sequence[int], chances: Sequence[float], steps: int, epoch: int) -> Bool[np.ndarray, "step member"]:
    """Teacher forcing, drawn once a batch and member, as the published code does."""
    draws = [
        generator(seed, "teacher forcing", epoch).random(steps) < chance for seed, chance in zip(seeds, chances, strict=True)
    ]
    return np.stack(draws, axis=1)
