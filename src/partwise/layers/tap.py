"""The tap: the one function a forward pass hands each site's value to. It may record the value, or replace it.

A site is a named place in a model where a value flows (`encoder.hidden`, `decoder.update_gate`); together with the
time step it addresses one value. A pass without a tap pays nothing; there are no hooks and nothing to clean up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import torch
from torch import Tensor

from partwise.errors import InputError, unknown

Tap = Callable[[str, int, Tensor], Tensor]


def untouched(site: str, step: int, value: Tensor) -> Tensor:
    """The tap that does nothing: the default everywhere."""
    return value


def begin(tap: Tap, sites: Collection[str]) -> None:
    """What a forward pass does first: a tap on a site that the model does not have is an error; a recorder starts anew."""
    for site in getattr(tap, "sites", ()):
        if site not in sites:
            raise unknown("site", site, sites)
    if isinstance(tap, Recorder):
        tap.clear()


class Recorder:
    """A tap that keeps the values of some sites in one pass: `recorder["encoder.hidden"]` has dims (..., time, unit)."""

    def __init__(self, sites: Iterable[str]) -> None:
        self.sites = tuple(sites)
        self.clear()

    def clear(self) -> None:
        self._values: dict[str, list[Tensor]] = {site: [] for site in self.sites}

    def __call__(self, site: str, step: int, value: Tensor) -> Tensor:
        if site in self._values:
            self._values[site].append(value)
        return value

    def __getitem__(self, site: str) -> Tensor:
        if not self._values.get(site):
            raise InputError(f"nothing was recorded at {site!r}; run a forward pass with this recorder on that site first")
        return torch.stack(self._values[site], dim=-2)


class Replace:
    """A tap that replaces the value of one site at one step, or at every step (`step=None`)."""

    def __init__(self, site: str, change: Callable[[Tensor], Tensor], step: int | None = None) -> None:
        self.sites, self.change, self.step = (site,), change, step

    def __call__(self, site: str, step: int, value: Tensor) -> Tensor:
        hit = site == self.sites[0] and self.step in (None, step)
        return self.change(value) if hit else value
