"""The CUDA route: a captured step gives what the CPU gives, to float tolerance. Needs a CUDA device."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from partwise.population import Population
from partwise.training import run
from partwise.training._contract import Report
from partwise.training.adam import MemberAdam
from partwise.training.rows import data
from partwise.training.rows.step import TrainingStep
from tests import tiny

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")


def test_a_captured_step_gives_the_gradients_of_the_cpu() -> None:
    """One step in float64: losses, gradients and moments; weights are left out, since Adam blows up rounding."""
    from partwise.training.cuda_graph import Graphed

    spec = tiny.spec()
    found = []
    for device in ("cpu", "cuda"):
        initial = Population.initial(spec.architecture, [plan.member for plan in spec.plans], ["pytorch"] * len(spec.plans))
        models = initial.to(device, torch.float64)
        rows = data.stack(spec.tasks, "train", device)
        optimiser = MemberAdam(models.store, torch.zeros_like(models.store), 0.001, 5.0)
        step = TrainingStep(models, rows, torch.ones(len(models), device=device, dtype=torch.float64), optimiser)
        inputs = torch.arange(12, device=device).view(4, 3), torch.zeros(4, dtype=torch.bool, device=device)
        call = step if device == "cpu" else Graphed(step, inputs, step.touched)
        call(*inputs)
        found.append((step.totals.cpu(), optimiser.gradients.cpu(), optimiser.moments["first"].cpu()))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-9)


def test_a_run_on_cuda_equals_the_run_on_the_cpu(tmp_path: Path) -> None:
    """In processes of their own, as users run them. Weights differ by float32 and Adam, the losses do not; a guided member
    whose guidance went missing would be far off."""
    losses = []
    for device in ("cpu", "cuda"):
        command = [sys.executable, "-m", "tests.tiny", str(tmp_path / device), "3", device]
        subprocess.run(command, cwd=Path(__file__).parents[2], check=True)
        losses.append(run.results(tmp_path / device)[0].train_loss.values[1:])
    assert losses[1] == pytest.approx(losses[0], rel=0.02)


def test_a_run_on_cuda_resumes_from_its_last_checkpoint(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for folder, epochs in ((whole, 4), (broken, 4)):
        spec = dataclasses.replace(tiny.spec(epochs=epochs), device="cuda")
        if folder == broken:
            with pytest.raises(KeyboardInterrupt):
                run.train(spec, folder, _stop_after(2))
        run.train(spec, folder)
    one, other = (run.results(folder)[0].train_loss.values[1:] for folder in (whole, broken))
    assert other == pytest.approx(one, rel=0.02)


def _stop_after(epochs: int) -> Report:
    def report(done: float) -> None:
        if done >= epochs:
            raise KeyboardInterrupt

    return report


def test_the_update_on_cuda_is_the_update_on_the_cpu() -> None:
    """With a frozen part, and a member that diverges."""
    frozen = torch.zeros(3, 64, dtype=torch.bool)
    frozen[1, 5:20] = True
    stores = []
    for device in ("cpu", "cuda"):
        store = torch.randn(3, 64, generator=torch.Generator().manual_seed(0)).to(device)
        adam = MemberAdam(store, torch.zeros_like(store), 0.01, 1.0, frozen.to(device))
        for step in range(5):
            gradients = torch.randn(3, 64, generator=torch.Generator().manual_seed(step + 1))
            gradients[2, 7] = torch.nan if step == 3 else 1.0
            adam.gradients.copy_(gradients.to(device))
            adam.step()
        assert adam.alive.tolist() == [True, True, False]
        stores.append(store.cpu())
    torch.testing.assert_close(stores[1], stores[0], rtol=1e-5, atol=1e-6)
