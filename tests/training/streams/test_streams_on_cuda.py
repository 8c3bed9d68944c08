"""Language models on CUDA: the captured, stacked step trains as the CPU does, to the tolerance of tf32. Needs a CUDA device."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import partwise as pw
from partwise.training import run
from partwise.training.streams.trainee import StreamsTrainee
from tests import tiny_text

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")


def test_a_captured_step_is_the_step() -> None:
    """Exact products, one epoch: weights, momenta and losses."""
    found = []
    for device in ("cpu", "cuda"):
        trainee = StreamsTrainee(tiny_text.spec(device=device))
        if device == "cuda":
            from partwise.training.cuda_graph import Graphed

            assert trainee.stacked
            first = next(iter(trainee.texts["train"])).long()
            trainee._call = Graphed(trainee.step, [first], trainee.step.touched)
        trainee.step.begin()
        for piece in trainee.texts["train"]:
            trainee._call(piece)
        found.append(
            [tensor.cpu() for tensor in (trainee.population.store, trainee.optimiser.moments["velocity"], trainee.step.total)]
        )
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


def test_a_run_on_cuda_learns_what_the_cpu_learns(tmp_path: Path) -> None:
    losses = []
    for device in ("cpu", "cuda"):
        run.train(tiny_text.spec(device=device), tmp_path / device)
        losses.append(run.results(tmp_path / device)[0].train_loss.values[1:])
    assert losses[1] == pytest.approx(losses[0], rel=0.02)


def test_decomposition_on_cuda_is_that_of_the_cpu(tmp_path: Path) -> None:
    run.train(tiny_text.spec(), tmp_path / "run")
    population = pw.load(tmp_path / "run" / "checkpoints" / "last")
    ids = torch.from_numpy(tiny_text.CORPUS.windows["unseen"]).long()
    one, other = (pw.contextual_decomposition(population.to(device), ids.to(device), (2, 4)).data for device in ("cpu", "cuda"))
    assert other.relevant.values == pytest.approx(one.relevant.values, abs=1e-6)
