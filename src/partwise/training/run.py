"""A run: one population trained in one folder, from initial weights to `DONE`; killed at any moment, it goes on.

1. Write down what is to be done (`run.json`), or check that the folder's says the same.
2. Start from the last complete epoch: weights, moments and history lie in one checkpoint, so they are of one age.
3. Train an epoch, evaluate, select, write a checkpoint, point `last` to it. (Where epochs take less than a second, on CUDA, a
   checkpoint is written every ten seconds: writing it would take longer than the epoch it saves.)
4. At the end: selected weights as a checkpoint of their own, history and final accuracies as netCDF, then `DONE`. A run
   whose weights nobody will ask for (`keep_weights=False`) then drops its checkpoints.

Nothing random needs saving: every draw depends on the member's seed and the epoch alone (see `randomness`).
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import torch
import xarray as xr

from partwise import files, provenance
from partwise.errors import DamagedFile, InputError
from partwise.population import Member, Population
from partwise.training import checkpoint
from partwise.training._contract import Report, Spec

SAVE_EVERY = 10.0  # seconds between checkpoints on CUDA
SHARE_OF_SAVING = 10  # and at least this many times what the last one took


def train(spec: Spec, folder: Path, report: Report = lambda _: None) -> None:
    """Bring the run in `folder` to its end, from wherever it is."""
    spec.check()
    folder.mkdir(parents=True, exist_ok=True)
    with files.locked(folder):
        _write_down(spec, folder)
        if not is_done(folder):
            _Trainer(spec, folder).go(report)
    report(spec.config.epochs)


def is_done(folder: Path) -> bool:
    return (folder / "DONE").is_file()


def _write_down(spec: Spec, folder: Path) -> None:
    wanted = files.json_ready(spec.describe())
    note = folder / "run.json"
    if note.is_file():
        found = files.read_sealed(note)["spec"]
        if found != wanted:
            raise InputError(f"{folder}: another run is here; {'; '.join(files.differences(found, wanted)[:5])}")
    else:
        files.write_sealed(note, {"spec": wanted, "provenance": provenance.collect(device=provenance.device(spec.device))})


class _Trainer:
    def __init__(self, spec: Spec, folder: Path) -> None:
        self.config, self.device = spec.config, spec.device
        self.folder, self.checkpoints = folder, folder / "checkpoints"
        self.trainee = spec.trainee()
        self.population, self.optimiser = self.trainee.population, self.trainee.optimiser
        self.best = self.population.store.clone()
        self.seconds_before, self.began = 0.0, time.monotonic()
        self.saved, self.save_took = self.began, 0.0

    def go(self, report: Report) -> None:
        last = self._resume()
        self.trainee.prepare()
        if last is None:
            self._evaluate(0)
            if self._is_due(0) or 0 in self.config.keep_epochs:
                self._save(0)
        for epoch in range((last or 0) + 1, self.config.epochs + 1):
            self.trainee.train_epoch(epoch, report)
            self._evaluate(epoch)
            self._select(epoch)
            if self._is_due(epoch):
                self._save(epoch)
            elif epoch in self.config.keep_epochs:
                checkpoint.save(self._epoch_folder(epoch), self.population, epoch=epoch)
            report(epoch)
        self._finish()

    def _evaluate(self, epoch: int) -> None:
        """A member that has diverged is marked, and keeps NaN from then on."""
        self.optimiser.alive &= torch.isfinite(self.population.store).all(dim=1)
        self.trainee.evaluate(epoch)

    def _select(self, epoch: int) -> None:
        better = torch.from_numpy(self.trainee.selected(epoch) == epoch).to(self.device)
        self.best.copy_(torch.where(better.unsqueeze(1), self.population.store, self.best))

    def _is_due(self, epoch: int) -> bool:
        if not self.population.store.is_cuda:
            return True
        if epoch == self.config.epochs:
            return self.config.keep_weights
        return time.monotonic() - self.saved > max(SAVE_EVERY, SHARE_OF_SAVING * self.save_took)

    def _epoch_folder(self, epoch: int) -> Path:
        return self.checkpoints / f"epoch-{epoch:04d}"

    def _save(self, epoch: int) -> None:
        """The checkpoint of an epoch; then `last` moves to it; then what is no longer needed goes."""
        began = time.monotonic()
        folder = self._epoch_folder(epoch)
        history = self.trainee.history.arrays
        state = {
            "moments": self.optimiser.moments | {"alive": self.optimiser.alive},
            "selected": {"store": self.best},
            "history": {name: torch.from_numpy(values) for name, values in history.items()},
        }
        checkpoint.save(folder, self.population, state, epoch=epoch, seconds=self._seconds())
        link = self.checkpoints / ".last.part"
        link.unlink(missing_ok=True)
        link.symlink_to(folder.name)
        link.replace(self.checkpoints / "last")
        self.saved = time.monotonic()
        self.save_took = self.saved - began
        for other in self.checkpoints.glob("epoch-*"):
            if other.name == folder.name:
                continue
            if int(other.name.removeprefix("epoch-")) in self.config.keep_epochs:
                checkpoint.keep_weights_only(other)
            else:
                shutil.rmtree(other)

    def _resume(self) -> int | None:
        """Load the last complete epoch, if there is one, and say which it is."""
        last = self.checkpoints / "last"
        if not last.is_symlink():
            return None
        self.population.store.copy_(checkpoint.load(last).store)
        moments = checkpoint.read_tensors(last, "moments")
        self.optimiser.load({name: moments[name] for name in self.optimiser.moments}, moments["alive"])
        self.best.copy_(checkpoint.read_tensors(last, "selected")["store"])
        for name, values in checkpoint.read_tensors(last, "history").items():
            self.trainee.history.arrays[name] = values.numpy()
        facts = checkpoint.read_facts(last)
        self.seconds_before = facts.get("seconds", 0.0)
        return int(facts["epoch"])

    def _seconds(self) -> float:
        """Time spent on this run by all the processes that worked on it."""
        return round(self.seconds_before + time.monotonic() - self.began, 1)

    def _finish(self) -> None:
        chosen = self.trainee.selected(self.config.epochs)
        population = self.population
        selected = Population(population.architecture, population.members, self.best, population.words)
        if self.config.keep_weights:
            checkpoint.save(self.checkpoints / "selected", selected, epoch=chosen.tolist())
        final = self.trainee.final(selected).assign(selected_epoch=("member", chosen))
        hashes = {}
        for name, dataset in (("history", self.trainee.history.to_dataset()), ("final", final)):
            hashes[f"{name}.nc"] = files.write_dataset(self.folder / f"{name}.nc", dataset)
        done = {"epochs": self.config.epochs, "seconds": self._seconds(), "files": hashes}
        files.write_sealed(self.folder / "DONE", done)
        if not self.config.keep_weights:
            shutil.rmtree(self.checkpoints, ignore_errors=True)


def members(folder: Path) -> list[Member]:
    """Who was trained in a run, in the order of its results."""
    plans = files.read_sealed(folder / "run.json")["spec"]["plans"]
    return [Member(**plan["member"]) for plan in plans]


def results(folder: Path) -> tuple[xr.Dataset, xr.Dataset]:
    """(history, final) of a run that is done, checked against the hashes in `DONE`."""
    if not is_done(folder):
        raise DamagedFile(f"{folder}: the run is not done; resume it")
    hashes = files.read_sealed(folder / "DONE")["files"]
    return tuple(files.read_dataset(folder / name, hashes[name]) for name in ("history.nc", "final.nc"))  # type: ignore[return-value]
