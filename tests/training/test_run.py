"""Runs: killed for real at any moment and resumed, they end with the very bits of a run left alone."""

from __future__ import annotations

import dataclasses
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr

import partwise as pw
from partwise.errors import DamagedFile, InputError
from partwise.population import Population
from partwise.tasks import lookup_tables
from partwise.training import run
from partwise.training.rows import data, evaluate
from partwise.training.rows.objectives import task_loss
from partwise.training.rows.spec import RunSpec
from partwise.training.rows.trainee import RowsTrainee
from tests import tiny

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alone") / "run"
    run.train(tiny.spec(), folder)
    return folder


def test_killed_at_random_moments_a_run_ends_with_the_same_bits(tmp_path: Path) -> None:
    epochs, random_moment = 40, random.Random(0)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    command = [sys.executable, "-m", "tests.tiny"]
    subprocess.run([*command, str(whole), str(epochs)], cwd=ROOT, check=True)
    kills = 0
    while not run.is_done(broken):
        process = subprocess.Popen([*command, str(broken), str(epochs)], cwd=ROOT)
        wait_for_epoch(broken, 1 + 9 * kills, process)
        time.sleep(random_moment.uniform(0, 0.05))
        if kills < 4 and process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        assert process.wait(timeout=120) in (0, -signal.SIGKILL)
    assert kills == 4
    for weights in ("last", "selected", "epoch-0002"):
        one, other = (pw.load(folder / "checkpoints" / weights) for folder in (whole, broken))
        assert torch.equal(one.store, other.store), weights
    for one, other in zip(run.results(whole), run.results(broken), strict=True):
        xr.testing.assert_identical(one, other)


def wait_for_epoch(folder: Path, epoch: int, process: subprocess.Popen) -> None:
    last = folder / "checkpoints" / "last"
    while process.poll() is None and not (last.is_symlink() and int(last.readlink().name[-4:]) >= epoch):
        time.sleep(0.002)


def test_a_done_run_holds_what_it_promises(alone: Path) -> None:
    assert sorted(path.name for path in (alone / "checkpoints").iterdir()) == [
        "epoch-0000", "epoch-0002", "epoch-0006", "last", "selected",
    ]  # fmt: skip
    assert not (alone / "checkpoints" / "epoch-0002" / "moments.safetensors").exists()
    history, final = run.results(alone)
    assert dict(history.sizes) == {"epoch": 7, "split": 3, "member": 4}
    assert set(final.split.values) == set(tiny.spec().tasks[0].splits) - {"train"}
    assert np.isfinite(final.accuracy).all()
    last = final.accuracy.sel(weights="last", split="validation").values
    assert (last == history.accuracy.sel(epoch=6, split="validation").values).all()
    chosen = final.selected_epoch.values
    at_chosen = [history.accuracy.sel(split="validation", member=f"m{i}", epoch=chosen[i]).item() for i in range(4)]
    assert final.accuracy.sel(weights="selected", split="validation").values.tolist() == at_chosen
    initial, trained = pw.load(alone / "checkpoints" / "epoch-0000"), pw.load(alone / "checkpoints" / "last")
    for name in ("encoder.embedding.weight", "decoder.input.bias"):
        assert torch.equal(initial.parameters[name][2], trained.parameters[name][2])
        assert not torch.equal(initial.parameters[name][1], trained.parameters[name][1])


def test_members_learn(alone: Path) -> None:
    history, _ = run.results(alone)
    assert (history.train_loss.isel(epoch=6) < 0.8 * history.train_loss.isel(epoch=1)).all()


def test_member_bits_do_not_depend_on_how_many_train_beside_it(alone: Path, tmp_path: Path) -> None:
    run.train(tiny.spec(members=2), tmp_path / "two")
    two, four = (pw.load(folder / "checkpoints" / "last") for folder in (tmp_path / "two", alone))
    assert torch.equal(two.store, four.store[:2])


def test_a_folder_with_another_run_is_refused_with_the_difference(alone: Path) -> None:
    (alone / "DONE").rename(alone / "UNDONE")
    try:
        with pytest.raises(InputError, match=r"another run is here; config.learning_rate: 0.01 there, 0.02 asked for"):
            run.train(tiny.spec(learning_rate=0.02), alone)
    finally:
        (alone / "UNDONE").rename(alone / "DONE")


def test_a_run_with_a_damaged_checkpoint_does_not_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run.train(tiny.spec(epochs=2), folder)
    (folder / "DONE").unlink()
    moments = folder / "checkpoints" / "last" / "moments.safetensors"
    damaged = bytearray(moments.read_bytes())
    damaged[-1] ^= 4
    moments.write_bytes(damaged)
    with pytest.raises(DamagedFile, match=r"moments.safetensors: damaged"):
        run.train(tiny.spec(epochs=2), folder)


def test_a_member_that_diverges_is_marked_and_spares_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calm, stormy = tmp_path / "calm", tmp_path / "stormy"
    run.train(tiny.spec(epochs=3), calm)
    original = RowsTrainee.train_epoch

    def poisoned(self, epoch, report):  # type: ignore[no-untyped-def]
        if epoch == 2:
            self.population.parameters["decoder.output.bias"][1, 0] = torch.nan
        original(self, epoch, report)

    monkeypatch.setattr(RowsTrainee, "train_epoch", poisoned)
    run.train(tiny.spec(epochs=3), stormy)
    history, final = run.results(stormy)
    healthy, _ = run.results(calm)
    others = ["m0", "m2", "m3"]
    xr.testing.assert_equal(history.sel(member=others), healthy.sel(member=others))
    assert np.isnan(history.accuracy.sel(member="m1").isel(epoch=slice(2, None))).all()
    assert np.isnan(final.accuracy.sel(member="m1")).all()
    assert final.selected_epoch.sel(member="m1").item() == 1


def test_a_task_without_rows_to_select_on_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    spec = tiny.spec(members=1)
    bare = lookup_tables.generate(
        lookup_tables.Options(tables=3, bits=2, heldout_tables=1, heldout_compositions=1, validation_rows=0)
    )
    poor = RunSpec(spec.architecture, spec.plans, (bare,), spec.config, spec.watched)
    with pytest.raises(InputError, match=r"lookup-tables \(generated, seed 0\) has no rows for validation; training needs"):
        run.train(poor, tmp_path / "run")
    blind = RunSpec(spec.architecture, spec.plans, spec.tasks, spec.config, ("heldout_inputs",))
    with pytest.raises(InputError, match="it must hold validation, on which epochs are selected"):
        run.train(blind, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_members_that_cannot_train_together_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    spec = tiny.spec(members=2)
    other = lookup_tables.generate(
        lookup_tables.Options(tables=3, bits=2, heldout_tables=1, heldout_compositions=2, validation_rows=1)
    )
    wide = lookup_tables.generate()
    misspelt = dataclasses.replace(spec.plans[0], frozen=("encodr",))
    faulty = {
        "1 tasks for 2 members": dataclasses.replace(spec, tasks=spec.tasks[:1]),
        "found twice: m0": dataclasses.replace(spec, plans=(spec.plans[0],) * 2),
        "as many rows in train as each other; found": dataclasses.replace(spec, tasks=(spec.tasks[0], other)),
        "tasks with the same words": dataclasses.replace(spec, tasks=(spec.tasks[0], wide)),
        "unknown part of the model 'encodr'. Did you mean 'encoder'": dataclasses.replace(
            spec, plans=(misspelt, spec.plans[1])
        ),
    }
    for message, wrong in faulty.items():
        with pytest.raises(InputError, match=re.escape(message)):
            run.train(wrong, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_finished_run_does_not_pass_for_another(alone: Path) -> None:
    with pytest.raises(InputError, match=r"another run is here; config.learning_rate"):
        run.train(tiny.spec(learning_rate=0.02), alone)


def test_a_kill_before_the_first_epoch_is_survived(tmp_path: Path, alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(RowsTrainee, "train_epoch", killed)
        with pytest.raises(KeyboardInterrupt):
            run.train(tiny.spec(), tmp_path / "run")
    first = (tmp_path / "run" / "checkpoints" / "epoch-0000").stat().st_ino
    run.train(tiny.spec(), tmp_path / "run")
    assert (tmp_path / "run" / "checkpoints" / "epoch-0000").stat().st_ino == first  # never written twice: `last` pointed to it
    one, other = (pw.load(folder / "checkpoints" / "last") for folder in (tmp_path / "run", alone))
    assert torch.equal(one.store, other.store)


def test_loss_over_chunks_is_the_loss_over_all_rows(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    population = pw.load(alone / "checkpoints" / "last")
    rows = data.stack(tiny.spec().tasks, "train")
    whole = evaluate.accuracy_and_loss(population, rows)
    monkeypatch.setattr(evaluate, "_CHUNK", 5)
    for one, other in zip(whole, evaluate.accuracy_and_loss(population, rows), strict=True):
        torch.testing.assert_close(one, other)
    output = population.architecture.forward(population.weights(), rows.source, rows.source_length, rows.steps)
    torch.testing.assert_close(whole[1], task_loss(output.logits, rows.target, rows.counts))


def test_members_train_on_from_given_weights_and_frozen_numbers_keep_their_bits(tmp_path: Path) -> None:
    """A part frozen by name, and numbers held one by one; everything else moves, and the start is left as it was."""
    plain = tiny.spec(members=3, epochs=3, keep=())
    others = [pw.Member(plan.member.name, plan.member.seed + 50) for plan in plain.plans]
    start = Population.initial(plain.architecture, others, ["pytorch"] * 3)  # not what the run would draw itself
    held = np.random.default_rng(0).random(start.store.shape) < 0.1
    spec = dataclasses.replace(plain, start=start, held=held)  # member m2 of the tiny run freezes two parts by name
    before = start.store.clone()
    run.train(spec, tmp_path / "run")
    frozen = spec.frozen_mask()
    assert frozen is not None
    assert frozen[2].sum() > held[2].sum()
    after, real = pw.load(tmp_path / "run" / "checkpoints" / "last").store, _used(start)
    assert torch.equal(start.store, before)
    assert (after.numpy()[frozen] == before.numpy()[frozen]).all()
    moved = (after != before).numpy()
    assert (
        moved[~frozen & real].mean() > 0.8
    )  # embeddings of words that never come stay, as do units that attention never hears


def _used(population: Population) -> np.ndarray:
    """True at numbers of the store that are parameters, not the gaps between them."""
    used = np.zeros(population.store.shape, bool)
    for place in population.layout.places.values():
        used[:, place] = True
    return used


def test_a_run_that_keeps_no_weights_keeps_its_results(tmp_path: Path) -> None:
    spec = tiny.spec(members=2, epochs=2, keep=(), keep_weights=False)
    run.train(spec, tmp_path / "run")
    assert not (tmp_path / "run" / "checkpoints").exists()
    history, final = run.results(tmp_path / "run")
    assert np.isfinite(history.accuracy).all()
    assert np.isfinite(final.accuracy).all()


def test_a_start_or_a_mask_of_another_size_is_refused(tmp_path: Path) -> None:
    plain = tiny.spec(members=3, keep=())
    start = Population.initial(plain.architecture, [plan.member for plan in plain.plans][:2], ["pytorch"] * 2)
    with pytest.raises(InputError, match=r"start has shape \(2, \d+\); 3 members of this architecture need"):
        run.train(dataclasses.replace(plain, start=start), tmp_path / "run")
    with pytest.raises(InputError, match="held has shape"):
        run.train(dataclasses.replace(plain, held=np.zeros((3, 7), bool)), tmp_path / "run")
    assert not (tmp_path / "run").exists()
