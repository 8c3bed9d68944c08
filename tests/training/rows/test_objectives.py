"""Losses by hand arithmetic."""

from __future__ import annotations

from math import log

import pytest
import torch

from partwise.training.rows.objectives import guidance_loss, row_is_right, task_loss

# two rows of two steps; the second row ends after its first step
COUNTS = torch.tensor([[True, True], [True, False]])


def test_task_loss_is_the_sum_over_steps_of_means_over_rows() -> None:
    probabilities = torch.tensor([[[0.5, 0.25, 0.25], [0.1, 0.8, 0.1]], [[0.2, 0.2, 0.6], [0.3, 0.3, 0.4]]])
    target = torch.tensor([[0, 1], [2, 0]])
    by_hand = -(log(0.5) + log(0.6)) / 2 - log(0.8)
    assert task_loss(probabilities.log(), target, COUNTS).item() == pytest.approx(by_hand, rel=1e-6)


def test_guidance_is_minus_log_attention_on_the_right_position() -> None:
    attention = torch.tensor([[[0.7, 0.2, 0.1], [0.0, 1.0, 0.0]], [[0.25, 0.5, 0.25], [0.3, 0.3, 0.4]]])
    alignment = torch.zeros(2, 2, 3)
    alignment[0, 0, 0] = alignment[0, 1, 2] = alignment[1, 0, 1] = alignment[1, 1, 0] = 1.0
    by_hand = -(log(0.7) + log(0.5)) / 2 - log(1e-20)  # attention 0 is clamped; the padded step does not count
    assert guidance_loss(attention, alignment, COUNTS).item() == pytest.approx(by_hand, rel=1e-6)


def test_guidance_takes_any_alignment_and_skips_steps_without_one() -> None:
    attention = torch.tensor([[[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]]])
    alignment = torch.tensor([[[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]])
    by_hand = -(0.5 * log(0.7) + 0.5 * log(0.2))
    assert guidance_loss(attention, alignment, torch.ones(1, 2, dtype=torch.bool)).item() == pytest.approx(by_hand, rel=1e-6)


def test_losses_of_members_are_separate() -> None:
    torch.manual_seed(0)
    logits, target = torch.randn(3, 5, 4, 6), torch.randint(6, (3, 5, 4))
    counts = torch.rand(3, 5, 4) < 0.7
    together = task_loss(logits, target, counts)
    for i in range(3):
        assert together[i].item() == pytest.approx(task_loss(logits[i], target[i], counts[i]).item(), rel=1e-6)


def test_a_row_is_right_only_if_every_word_up_to_the_end_is() -> None:
    target = torch.tensor([[4, 5, 3], [4, 3, 0], [4, 5, 3]])
    chosen = torch.tensor([[4, 5, 3], [4, 3, 7], [4, 5, 6]])
    counts = torch.tensor([[True, True, True], [True, True, False], [True, True, True]])
    assert row_is_right(chosen, target, counts).tolist() == [True, True, False]
