"""Which rows a member sees, in which order, and when it is forced: functions of its seed and the epoch alone."""

from __future__ import annotations

import pytest
import torch

from partwise.errors import InputError
from partwise.population import Member
from partwise.tasks import lookup_tables
from partwise.tasks._encoding import Vocabulary, encode
from partwise.training.config import MemberPlan, TrainingConfig
from partwise.training.rows import data


def test_every_epoch_shows_every_row_once_in_an_order_of_its_own() -> None:
    order = data.order([5, 6], 10, 4, epoch=3)
    assert order.shape == (3, 2, 4)
    for member in range(2):
        seen = order[:, member].ravel()
        assert sorted(seen[seen >= 0]) == list(range(10))
        assert (seen[10:] == -1).all()
    assert (order[:, 0] != order[:, 1]).any()
    assert (data.order([6], 10, 4, epoch=3)[:, 0] == order[:, 1]).all()
    assert (data.order([6], 10, 4, epoch=4)[:, 0] != order[:, 1]).any()


def test_forcing_is_drawn_once_a_batch_with_its_chance() -> None:
    draws = data.forcing([0, 0, 1, 1], [0.0, 1.0, 0.2, 0.2], 5000, epoch=1)
    assert draws.shape == (5000, 4)
    assert draws.mean(axis=0)[:2].tolist() == [0.0, 1.0]
    assert draws.mean(axis=0)[2] == pytest.approx(0.2, abs=0.03)
    assert (draws[:, 2] == draws[:, 3]).all()
    assert (data.forcing([1], [0.2], 5000, epoch=2)[:, 0] != draws[:, 2]).any()


def test_rows_are_encoded_with_words_lengths_and_alignment() -> None:
    task = lookup_tables.generate()
    rows = data.stack([task], "train")
    source, target = Vocabulary.source(task).words, Vocabulary.target(task).words
    assert (len(source), len(target)) == (19, 12)
    for i, example in enumerate(task.splits["train"]):
        length, steps = int(rows.source_length[0, i]), int(rows.target_length[0, i])
        assert tuple(source[k] for k in rows.source[0, i, :length]) == example.source
        assert tuple(target[k] for k in rows.target[0, i, :steps]) == (*example.target, "<eos>")
        assert rows.alignment[0, i, :steps].argmax(-1).tolist() == list(example.alignment)
        assert rows.alignment[0, i].sum() == steps


def test_a_missing_index_stands_for_no_row() -> None:
    rows = data.stack([lookup_tables.generate()], "train").take(torch.tensor([[3, -1]]))
    assert rows.real.tolist() == [[True, False]]
    assert not rows.counts[0, 1].any()


def test_splits_of_different_size_are_filled_up_with_rows_that_do_not_count() -> None:
    tasks = [lookup_tables.generate(seed=seed) for seed in (0, 1)]
    sizes = [len(task.splits["longer_compositions_seen"]) for task in tasks]
    assert sizes[0] != sizes[1]
    rows = data.stack(tasks, "longer_compositions_seen")
    assert rows.real.sum(-1).tolist() == sizes


def test_a_word_outside_the_vocabulary_is_an_error() -> None:
    task = lookup_tables.generate()
    with pytest.raises(InputError, match=r"not in the vocabulary: t7; its words are <pad> <unk> 000 t1"):
        encode(
            task.splits["new_compositions"],
            Vocabulary(("<pad>", "<unk>", "000", "t1", "t8", ".", *task.target_words)),
            Vocabulary.target(task),
        )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TrainingConfig(epochs=0, batch_size=-1), "epochs is 0; it must be above 0; batch_size is -1"),
        (lambda: TrainingConfig(epochs=2, batch_size=1, learning_rate=float("nan")), "learning_rate is nan"),
        (lambda: TrainingConfig(epochs=2, batch_size=1, keep_epochs=(3,)), "keep_epochs names epoch 3; the run has epochs 0"),
        (lambda: MemberPlan(member=Member("a", 0), guidance=-1.0), "member a: guidance is -1.0; it must be 0"),
        (lambda: MemberPlan(member=Member("a", 0), teacher_forcing=1.5), "member a: teacher_forcing is 1.5; it is a chance"),
        (lambda: MemberPlan(member=Member("a", 0), initialisation="x"), "initialisation is 'x'; allowed: uniform, pytorch"),
    ],
)
def test_impossible_training_is_refused(make: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_orders_are_the_same_on_every_platform() -> None:
    """Taken once, on Linux x86-64 with numpy 2."""
    assert data.order([0], 6, 6, 1).ravel().tolist() == [5, 2, 4, 3, 1, 0]
