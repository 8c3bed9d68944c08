"""A population of language models with its texts: one epoch over the training text, and the loss on the validation text."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Int64

from partwise.layers.precision import fast_products
from partwise.parts import mask_of
from partwise.population import Population
from partwise.training._contract import Optimiser, Report
from partwise.training.history import History
from partwise.training.sgd import MemberSgd
from partwise.training.streams import data
from partwise.training.streams.evaluate import text_loss
from partwise.training.streams.step import StreamStep

if TYPE_CHECKING:
    from partwise.training.streams.spec import StreamSpec

TRAIN, SELECT_ON = "train", "validation"


class StreamsTrainee:
    """See `Trainee`."""

    def __init__(self, spec: StreamSpec) -> None:
        plans, config, device = spec.plans, spec.config, spec.device
        members = [plan.member for plan in plans]
        words = {"text": spec.corpora[0].words}
        schemes = [plan.initialisation for plan in plans]
        self.population = Population.initial(spec.architecture, members, schemes, words).to(device)
        frozen = np.stack([mask_of(spec.architecture, plan.frozen) for plan in plans])
        self.optimiser: Optimiser = MemberSgd(
            self.population.store,
            torch.zeros_like(self.population.store),
            torch.tensor([plan.learning_rate for plan in plans]),
            config.clip,
            torch.from_numpy(frozen).to(device) if frozen.any() else None,
            momentum=torch.tensor([plan.momentum for plan in plans]),
            weight_decay=torch.tensor([plan.weight_decay for plan in plans]),
        )
        self.texts = {
            split: data.text([corpus.streams[split] for corpus in spec.corpora], config.streams, config.window, device)
            for split in (TRAIN, SELECT_ON)
        }
        self.stacked = self.population.store.is_cuda and len(plans) > 1
        self.step = StreamStep(self.population, self.optimiser, config.streams, stacked=self.stacked)
        self._call: Any = self.step
        self.history = History(self.population.names, (SELECT_ON,), config.epochs, ("loss",), ("train_loss",))

    def prepare(self) -> None:
        if self.stacked:
            from partwise.training.cuda_graph import Graphed

            with fast_products():
                self._call = Graphed(self.step, [next(iter(self.texts[TRAIN])).long()], self.step.touched)

    def train_epoch(self, epoch: int, report: Report) -> None:
        text = self.texts[TRAIN]
        self.step.begin()
        self.step.total.zero_()
        told = time.monotonic()
        with fast_products():
            for number, piece in enumerate(text):
                self._call(piece)
                if time.monotonic() - told > 1.0:
                    report(epoch - 1 + number / text.windows)
                    told = time.monotonic()
        self.history.arrays["train_loss"][epoch] = (self.step.total / text.windows).cpu().numpy()

    def evaluate(self, epoch: int) -> None:
        self.history.arrays["loss"][epoch, 0] = self._loss(self.population)

    def selected(self, until: int) -> Int64[np.ndarray, " member"]:
        return self.history.selected(SELECT_ON, until)

    def final(self, selected: Population) -> xr.Dataset:
        losses = np.stack([self._loss(population) for population in (self.population, selected)])
        coords = {"weights": ["last", "selected"], "member": list(self.population.names)}
        return xr.Dataset({"loss": (("weights", "member"), losses)}, coords)

    def _loss(self, population: Population) -> np.ndarray:
        dead = ~self.optimiser.alive.cpu().numpy()
        return np.where(dead, np.nan, text_loss(population, self.texts[SELECT_ON], stacked=self.stacked).cpu().numpy())
