"""The CUDA route: a captured step gives what the CPU gives, to float tolerance. Needs a CUDA device."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests import tiny

import partwise as pw
from partwise.training import run

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")


def test_a_run_on_cuda_equals_the_run_on_the_cpu(tmp_path: Path) -> None:
    """Few steps at a small rate, so that float32 has no time to turn a last bit into another symbol."""
    settings = {"epochs": 1, "learning_rate": 1e-4, "keep": ()}
    for device in ("cpu", "cuda"):
        spec = tiny.spec(**settings)
        run.train(run.RunSpec(spec.architecture, spec.plans, spec.tasks, spec.config, spec.watched, device), tmp_path / device)
    one, other = (pw.load(tmp_path / device / "checkpoints" / "last") for device in ("cpu", "cuda"))
    torch.testing.assert_close(one.store, other.store, rtol=1e-3, atol=1e-4)
