"""A population of encoder-decoders with its rows: one epoch, what is watched, and the accuracies in the end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Int64

from partwise.population import Population
from partwise.tasks._encoding import Vocabulary
from partwise.training._contract import Optimiser, Report
from partwise.training.adam import MemberAdam
from partwise.training.history import History
from partwise.training.rows import data
from partwise.training.rows.evaluate import accuracy_and_loss
from partwise.training.rows.step import TrainingStep

if TYPE_CHECKING:
    from partwise.training.rows.spec import RunSpec

TRAIN, SELECT_ON = "train", "validation"


class RowsTrainee:
    """See `Trainee`."""

    def __init__(self, spec: RunSpec) -> None:
        self.spec = spec
        plans, config, device = spec.plans, spec.config, spec.device
        self.seeds = [plan.member.seed for plan in plans]
        words = {"source": Vocabulary.source(spec.tasks[0]).words, "target": Vocabulary.target(spec.tasks[0]).words}
        members = [plan.member for plan in plans]
        if spec.start is None:
            initial = Population.initial(spec.architecture, members, [plan.initialisation for plan in plans], words)
        else:
            initial = Population(spec.architecture, members, spec.start.store, words)
        self.population = initial.to(device)
        mask = spec.frozen_mask()
        self.optimiser: Optimiser = MemberAdam(
            self.population.store,
            torch.zeros_like(self.population.store),
            config.learning_rate,
            config.clip,
            None if mask is None else torch.from_numpy(mask).to(device),
        )
        self.rows = {split: data.stack(spec.tasks, split, device) for split in (TRAIN, *spec.watched)}
        guidance = torch.tensor([plan.guidance for plan in plans], device=device)
        self.totals = torch.zeros(2, len(self.population), device=device)
        self.step: Any = TrainingStep(self.population, self.rows[TRAIN], guidance, self.optimiser, self.totals)
        self.history = History(self.population.names, spec.watched, config.epochs)

    def prepare(self) -> None:
        if self.population.store.is_cuda:
            from partwise.training.cuda_graph import Graphed

            members, device = len(self.population), self.population.store.device
            indices = torch.zeros(members, self.spec.config.batch_size, dtype=torch.int64, device=device)
            forced = torch.zeros(members, dtype=torch.bool, device=device)
            self.step = Graphed(self.step, (indices, forced), self.step.touched)

    def train_epoch(self, epoch: int, report: Report) -> None:
        total = self.rows[TRAIN].source.shape[-2]
        device = self.spec.device
        order = torch.from_numpy(data.order(self.seeds, total, self.spec.config.batch_size, epoch)).to(device)
        chances = [plan.teacher_forcing for plan in self.spec.plans]
        forced = torch.from_numpy(data.forcing(self.seeds, chances, len(order), epoch)).to(device)
        self.totals.zero_()
        told = time.monotonic()
        for number, (indices, force) in enumerate(zip(order, forced, strict=True)):
            self.step(indices, force)
            if time.monotonic() - told > 1.0:
                report(epoch - 1 + number / len(order))
                told = time.monotonic()
        loss, right = (self.totals / torch.tensor([[len(order)], [total]], device=device)).cpu().numpy()
        self.history.arrays["train_loss"][epoch] = loss
        self.history.arrays["train_accuracy"][epoch] = right

    def evaluate(self, epoch: int) -> None:
        dead = ~self.optimiser.alive.cpu().numpy()
        for i, split in enumerate(self.spec.watched):
            accuracy, loss = accuracy_and_loss(self.population, self.rows[split])
            self.history.arrays["accuracy"][epoch, i] = np.where(dead, np.nan, accuracy.cpu().numpy())
            self.history.arrays["loss"][epoch, i] = np.where(dead, np.nan, loss.cpu().numpy())

    def selected(self, until: int) -> Int64[np.ndarray, " member"]:
        return self.history.selected(SELECT_ON, until)

    def final(self, selected: Population) -> xr.Dataset:
        """Accuracy on every split that all members have, but for the rows they were trained on."""
        everywhere = set.intersection(*(set(task.splits) for task in self.spec.tasks))
        splits = [split for split in self.spec.tasks[0].splits if split != TRAIN and split in everywhere]
        dead = ~self.optimiser.alive.cpu().numpy()
        accuracy = np.full((2, len(splits), len(self.seeds)), np.nan, np.float32)
        for i, split in enumerate(splits):
            rows = data.stack(self.spec.tasks, split, self.spec.device)
            for j, population in enumerate((self.population, selected)):
                values = accuracy_and_loss(population, rows)[0].cpu().numpy()
                accuracy[j, i] = np.where(dead, np.nan, values)
        coords = {"weights": ["last", "selected"], "split": splits, "member": list(self.population.names)}
        return xr.Dataset({"accuracy": (("weights", "split", "member"), accuracy)}, coords)
