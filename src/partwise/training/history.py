"""What happened in each epoch, and which epoch is each member's best."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from jaxtyping import Float32, Int64


class History:
    """Arrays with dims (epoch, ...); epoch 0 is the untrained model. Kept in the checkpoint, so it is as old as the weights."""

    def __init__(self, members: Sequence[str], splits: Sequence[str], epochs: int) -> None:
        self.members, self.splits = tuple(members), tuple(splits)
        per_split = (epochs + 1, len(splits), len(members))
        self.arrays: dict[str, Float32[np.ndarray, ...]] = {
            "accuracy": np.full(per_split, np.nan, np.float32),
            "loss": np.full(per_split, np.nan, np.float32),
            "train_accuracy": np.full((epochs + 1, len(members)), np.nan, np.float32),
            "train_loss": np.full((epochs + 1, len(members)), np.nan, np.float32),
        }

    def selected(self, split: str, until: int) -> Int64[np.ndarray, " member"]:
        """Each member's best epoch so far: the highest accuracy on `split`, then the lowest loss, then the later epoch.

        The untrained model (epoch 0) is no candidate, nor is an epoch whose loss is not finite.
        """
        where = self.splits.index(split)
        best = np.zeros(len(self.members), np.int64)
        for member in range(len(self.members)):
            accuracy, loss = (self.arrays[name][: until + 1, where, member] for name in ("accuracy", "loss"))
            candidates = [epoch for epoch in range(1, until + 1) if np.isfinite(loss[epoch])]
            best[member] = max(candidates, key=lambda epoch: (accuracy[epoch], -loss[epoch], epoch), default=0)
        return best

    def to_dataset(self) -> xr.Dataset:
        data = {
            "accuracy": (("epoch", "split", "member"), self.arrays["accuracy"]),
            "loss": (("epoch", "split", "member"), self.arrays["loss"]),
            "train_accuracy": (("epoch", "member"), self.arrays["train_accuracy"]),
            "train_loss": (("epoch", "member"), self.arrays["train_loss"]),
        }
        epochs = np.arange(len(self.arrays["accuracy"]))
        return xr.Dataset(data, {"epoch": epochs, "split": list(self.splits), "member": list(self.members)})
