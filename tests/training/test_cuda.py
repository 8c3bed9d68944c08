"""The CUDA route: a captured step gives what the CPU gives, to float tolerance. Needs a CUDA device."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from partwise.population import Population
from partwise.training import data, run
from partwise.training.optimiser import MemberAdam
from partwise.training.spec import RunSpec
from partwise.training.step import TrainingStep
from tests import tiny

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")


def test_a_captured_step_gives_the_gradients_of_the_cpu() -> None:
    """One step in float64: losses, gradients and moments; weights are left out, since Adam blows up rounding."""
    from partwise.training.cuda_graph import GraphedStep

    spec = tiny.spec()
    found = []
    for device in ("cpu", "cuda"):
        initial = Population.initial(spec.architecture, [plan.member for plan in spec.plans], ["pytorch"] * len(spec.plans))
        models = initial.to(device, torch.float64)
        rows = data.stack(spec.tasks, "train", device)
        optimiser = MemberAdam(models.store, torch.zeros_like(models.store), 0.001, 5.0)
        step = TrainingStep(models, rows, torch.ones(len(models), device=device, dtype=torch.float64), optimiser)
        call = step if device == "cpu" else GraphedStep(step, 3)
        call(torch.arange(12, device=device).view(4, 3), torch.zeros(4, dtype=torch.bool, device=device))
        found.append((step.totals.cpu(), optimiser.gradients.cpu(), optimiser.moments["first"].cpu()))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-9)


def test_a_run_on_cuda_equals_the_run_on_the_cpu(tmp_path: Path) -> None:
    """Runs to its end, and learns what the CPU learns: float32 and Adam let single weights differ, not the loss."""
    settings = {"epochs": 3, "keep": ()}
    for device in ("cpu", "cuda"):
        spec = tiny.spec(**settings)
        run.train(RunSpec(spec.architecture, spec.plans, spec.tasks, spec.config, spec.watched, device), tmp_path / device)
    one, other = (run.results(tmp_path / device)[0].train_loss.values[1:] for device in ("cpu", "cuda"))
    assert other == pytest.approx(one, rel=0.05)
