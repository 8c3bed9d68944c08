"""The tap: the one function a forward pass hands each site's value to. It may record the value, or replace it.

A site is a named place in a model where a value flows (`encoder.hidden`, `decoder.update_gate`); together with the
time step it addresses one value. A pass without a tap pays nothing; there are no hooks and nothing to clean up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

Tap = Callable[[str, int, Tensor], Tensor]


def untouched(site: str, step: int, value: Tensor) -> Tensor:
    """The tap that does nothing: the default everywhere."""
    return value


class Recorder:
    """A tap that keeps the values of some sites: `recorder["encoder.hidden"]` has dims (..., time, unit)."""

    def __init__(self, sites: Iterable[str]) -> None:
        self._values: dict[str, list[Tensor]] = {site: [] for site in sites}

    def __call__(self, site: str, step: int, value: Tensor) -> Tensor:
        if site in self._values:
            self._values[site].append(value)
        return value

    def __getitem__(self, site: str) -> Tensor:
        return torch.stack(self._values[site], dim=-2)


class Replace:
    """A tap that replaces the value of one site at one step, or at every step (`step=None`)."""

    def __init__(self, site: str, change: Callable[[Tensor], Tensor], step: int | None = None) -> None:
        self.site, self.change, self.step = site, change, step

    def __call__(self, site: str, step: int, value: Tensor) -> Tensor:
        hit = site == self.site and self.step in (None, step)
        return self.change(value) if hit else value
