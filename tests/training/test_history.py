"""Selection: accuracy first, then loss, then the later epoch."""

from __future__ import annotations

import numpy as np
import pytest

from partwise.training.history import History

NAN = float("nan")


@pytest.mark.parametrize(
    ("accuracy", "loss", "epoch"),
    [
        ([0.9, 0.2, 0.5, 0.4], [0.1, 0.5, 0.9, 0.1], 2),  # highest accuracy wins over loss; the untrained model is no candidate
        ([0.0, 1.0, 1.0, 1.0], [9.0, 0.3, 0.1, 0.2], 2),  # equal accuracy: lowest loss
        ([0.0, 1.0, 1.0, 0.5], [9.0, 0.1, 0.1, 0.0], 2),  # equal in both: the later epoch
        ([0.0, 0.5, NAN, NAN], [9.0, 0.1, NAN, NAN], 1),  # a diverged member keeps what it had
        ([NAN, NAN, NAN, NAN], [NAN, NAN, NAN, NAN], 0),
    ],
)
def test_selected_epoch(accuracy: list[float], loss: list[float], epoch: int) -> None:
    history = History(["m"], ["train", "validation"], 3)
    history.arrays["accuracy"][:, 1, 0] = accuracy
    history.arrays["loss"][:, 1, 0] = loss
    assert history.selected("validation", 3).tolist() == [epoch]


def test_members_are_selected_separately_and_labelled() -> None:
    history = History(["a", "b"], ["validation"], 2)
    history.arrays["accuracy"][:, 0] = [[0, 0], [1, 0], [0, 1]]
    history.arrays["loss"][:] = 0.0
    assert history.selected("validation", 2).tolist() == [1, 2]
    assert history.selected("validation", 1).tolist() == [1, 1]
    dataset = history.to_dataset()
    assert dataset.accuracy.sel(member="b", split="validation", epoch=2).item() == 1
    assert np.isnan(dataset.train_loss).all()
