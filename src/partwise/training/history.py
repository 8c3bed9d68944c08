"""What happened in each epoch, and which epoch is each member's best."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from jaxtyping import Float32, Int64


class History:
    """Arrays with dims (epoch, ...); epoch 0 is the untrained model. Kept in the checkpoint, so it is as old as the weights.

    `watched` is measured on every split after every epoch, `trained` as the epoch goes.
    """

    def __init__(
        self,
        members: Sequence[str],
        splits: Sequence[str],
        epochs: int,
        watched: Sequence[str] = ("accuracy", "loss"),
        trained: Sequence[str] = ("train_accuracy", "train_loss"),
    ) -> None:
        self.members, self.splits = tuple(members), tuple(splits)
        per_split, per_member = (epochs + 1, len(splits), len(members)), (epochs + 1, len(members))
        self.arrays: dict[str, Float32[np.ndarray, ...]] = {
            **{name: np.full(per_split, np.nan, np.float32) for name in watched},
            **{name: np.full(per_member, np.nan, np.float32) for name in trained},
        }

    def selected(self, split: str, until: int) -> Int64[np.ndarray, " member"]:
        """Each member's best epoch so far: the highest accuracy on `split` (where accuracies are watched), then the lowest
        loss, then the later epoch.

        The untrained model (epoch 0) is no candidate, nor is an epoch whose loss is not finite.
        """
        where = self.splits.index(split)
        loss = self.arrays["loss"][: until + 1, where]
        accuracy = self.arrays["accuracy"][: until + 1, where] if "accuracy" in self.arrays else np.zeros_like(loss)
        best = np.zeros(len(self.members), np.int64)
        for member in range(len(self.members)):
            rank = list(zip(accuracy[:, member], -loss[:, member], range(until + 1), strict=True))
            candidates = [epoch for epoch in range(1, until + 1) if np.isfinite(loss[epoch, member])]
            best[member] = max(candidates, key=rank.__getitem__, default=0)
        return best

    def to_dataset(self) -> xr.Dataset:
        dims = {3: ("epoch", "split", "member"), 2: ("epoch", "member")}
        data = {name: (dims[values.ndim], values) for name, values in self.arrays.items()}
        epochs = np.arange(len(self.arrays["loss"]))
        return xr.Dataset(data, {"epoch": epochs, "split": list(self.splits), "member": list(self.members)})
