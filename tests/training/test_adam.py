"""Frozen parts keep their very bits, a diverging member spares the others, a long gradient is clipped per member."""

from __future__ import annotations

import torch

from partwise.training.adam import MemberAdam


def optimiser(members: int = 3, frozen: torch.Tensor | None = None, clip: float = 5.0) -> MemberAdam:
    torch.manual_seed(0)
    store = torch.randn(members, 8)
    return MemberAdam(store, torch.zeros_like(store), 0.1, clip, frozen)


def test_frozen_parameters_stay_bit_identical_though_momentum_was_saved() -> None:
    frozen = torch.zeros(3, 8, dtype=torch.bool)
    frozen[1, 2:5] = True
    adam = optimiser(frozen=frozen)
    moving = {name: torch.ones_like(values) for name, values in adam.moments.items()}
    adam.load(moving, adam.alive)  # a zero gradient alone would not keep them still
    before = adam.store.clone()
    for _ in range(5):
        adam.gradients.copy_(torch.randn(3, 8))
        adam.step()
    assert (adam.store[frozen] == before[frozen]).all()
    assert (adam.store[~frozen] != before[~frozen]).all()


def test_frozen_gradients_are_no_part_of_the_norm() -> None:
    frozen = torch.zeros(3, 8, dtype=torch.bool)
    frozen[0, 0] = True
    adam = optimiser(frozen=frozen)
    adam.gradients.fill_(1.0)
    adam.gradients[0, 0] = 1e6
    assert torch.allclose(adam.step(), torch.tensor([7.0, 8.0, 8.0]).sqrt())


def test_each_member_is_clipped_by_its_own_norm() -> None:
    adam = optimiser(clip=5.0)
    adam.gradients[0, 0], adam.gradients[1, 0] = 50.0, 4.0
    adam.step()
    assert torch.allclose(adam.gradients[:, 0], torch.tensor([5.0, 4.0, 0.0]), rtol=1e-5)


def test_a_member_that_diverges_stops_and_spares_the_rest() -> None:
    adam, calm = optimiser(), optimiser()
    for number in range(4):
        gradients = torch.randn(3, 8, generator=torch.Generator().manual_seed(number))
        adam.gradients.copy_(gradients)
        calm.gradients.copy_(gradients)
        if number == 2:
            before = adam.store[1].clone()
            adam.gradients[1, 3] = torch.nan
        adam.step()
        calm.step()
    assert adam.alive.tolist() == [True, False, True]
    assert (adam.store[1] == before).all()
    assert (adam.store[[0, 2]] == calm.store[[0, 2]]).all()


def test_one_step_is_adam_by_hand() -> None:
    adam = optimiser(members=1)
    before, gradient = adam.store.clone(), torch.linspace(-1, 1, 8)
    adam.gradients.copy_(gradient)
    adam.step()
    by_hand = before - 0.1 * gradient / (gradient.abs() + 1e-8)  # after one step both corrected moments are those of g
    torch.testing.assert_close(adam.store, by_hand)


def test_many_steps_are_adam_by_its_equations() -> None:
    """Algorithm 1 written out in float64: clipped, partly frozen, one member diverging at the fourth step."""
    frozen = torch.zeros(3, 8, dtype=torch.bool)
    frozen[0, 2:5] = True
    adam = optimiser(frozen=frozen, clip=1.0)
    store, first, second = adam.store.double(), torch.zeros(3, 8).double(), torch.zeros(3, 8).double()
    for step in range(6):
        gradients = torch.randn(3, 8, generator=torch.Generator().manual_seed(step))
        gradients[1, 3] = torch.inf if step == 3 else 0.5
        adam.gradients.copy_(gradients)
        adam.step()
        for row in (0, 1, 2) if step < 3 else (0, 2):
            g = torch.where(frozen[row], 0.0, gradients[row].double())
            g = g * min(1.0, 1.0 / float(g.norm() + 1e-6))
            first[row] = 0.9 * first[row] + 0.1 * g
            second[row] = 0.999 * second[row] + 0.001 * g**2
            mean, spread = first[row] / (1 - 0.9 ** (step + 1)), second[row] / (1 - 0.999 ** (step + 1))
            store[row] -= 0.1 * mean / (spread.sqrt() + 1e-8)
    assert adam.alive.tolist() == [True, False, True]
    assert adam.moments["steps"].tolist() == [6, 3, 6]
    torch.testing.assert_close(adam.store.double(), store, rtol=1e-5, atol=1e-6)
    assert (adam.store[0, 2:5] == optimiser().store[0, 2:5]).all()
