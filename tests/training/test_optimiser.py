"""Frozen parts keep their very bits, a diverging member spares the others, a long gradient is clipped per member."""

from __future__ import annotations

import torch

from partwise.training.optimiser import MemberAdam, row_norms, update_rows


def optimiser(members: int = 3, frozen: torch.Tensor | None = None, clip: float = 5.0) -> MemberAdam:
    torch.manual_seed(0)
    store = torch.randn(members, 8)
    return MemberAdam(store, torch.zeros_like(store), 0.1, clip, frozen)


def test_frozen_parameters_stay_bit_identical_though_momentum_exists() -> None:
    frozen = torch.zeros(3, 8, dtype=torch.bool)
    frozen[1, 2:5] = True
    adam = optimiser(frozen=frozen)
    adam.moments["first"].fill_(1.0)  # a zero gradient alone would not keep them still
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


def test_the_equations_are_the_fused_update() -> None:
    """`update_rows` (what CUDA compiles) against PyTorch's fused Adam: clipped, partly frozen, one member diverging."""
    frozen = torch.zeros(3, 8, dtype=torch.bool)
    frozen[0, 2:5] = True
    fused, open_path = optimiser(frozen=frozen, clip=1.0), optimiser(frozen=frozen, clip=1.0)
    moments = tuple(open_path.moments[name] for name in ("first", "second", "steps"))
    for step in range(6):
        gradients = torch.randn(3, 8, generator=torch.Generator().manual_seed(step))
        gradients[1, 3] = torch.inf if step == 3 else 0.5
        fused.gradients.copy_(gradients)
        fused.step()
        norms = row_norms(gradients, frozen)
        update_rows(open_path.store, gradients, moments, norms, open_path.alive, frozen, 0.1, 1.0)
    assert open_path.alive.tolist() == fused.alive.tolist() == [True, False, True]
    torch.testing.assert_close(open_path.store, fused.store)
    assert (open_path.store[0, 2:5] == optimiser().store[0, 2:5]).all()
