"""The result: every path's influence on every sentence, with its certificate, its statistics, and refinements to units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
import xarray as xr
from jaxtyping import Float, Int

from partwise.errors import InputError
from partwise.intervals import cluster_interval
from partwise.layers.precision import exact_products
from partwise.methods.influence_paths import follow
from partwise.methods.influence_paths.case import Case
from partwise.methods.influence_paths.certificate import Certificate
from partwise.methods.influence_paths.graph import Graph
from partwise.methods.influence_paths.labels import labels

Influence = Float[np.ndarray, "*member sentence path"]


@dataclass(frozen=True)
class Paths:
    """`data.influence` has dims (sentence, path), `total` is the influence of the source (as integrated gradients have it);
    for a population both have a dimension `member`."""

    graph: Graph
    cut: int
    influence: Influence
    totals: Float[np.ndarray, "*member sentence"]
    certificate: Certificate
    members: tuple[str, ...] | None
    cases: Sequence[Case]
    cluster: Int[np.ndarray, " sentence"]
    memory: int

    def __repr__(self) -> str:
        sentences, paths = self.influence.shape[-2:]
        return f"Paths({paths:,} paths on {sentences} sentences, {self.certificate})"

    @cached_property
    def labels(self) -> np.ndarray:
        """Every path's name, in order."""
        return np.array(list(labels(self.graph, self.cut)), dtype=object)

    @cached_property
    def data(self) -> xr.Dataset:
        coords: dict[str, Any] = {"path": self.labels} | self._member_coords
        conservation, completeness = self.certificate.conservation, self.certificate.completeness
        attributes = {"conservation": conservation, "completeness": float("nan") if completeness is None else completeness}
        return xr.Dataset({"influence": ((*self._lead, "sentence", "path"), self.influence)}, coords, attributes)

    @property
    def total(self) -> xr.DataArray:
        return xr.DataArray(self.totals, self._member_coords, (*self._lead, "sentence"), "total")

    def top(self, count: int = 10) -> pd.DataFrame:
        """The paths whose mean influence over sentences is largest in size; for a population, of each member."""
        found = []
        for row, influence in enumerate(self._of_members):
            mean = influence.mean(axis=0)
            chosen = np.argsort(-np.abs(mean), kind="stable")[:count]
            positive, negative = _same_sign_sums(influence)
            share = np.where(influence[:, chosen] >= 0, influence[:, chosen] / positive, influence[:, chosen] / negative)
            columns = {
                "path": self.labels[chosen],
                "influence": mean[chosen],
                "share": share.mean(axis=0),
                "positive": (influence[:, chosen] > 0).mean(axis=0),
            }
            found.append(pd.DataFrame(columns if self.members is None else {"member": self.members[row], **columns}))
        return pd.concat(found, ignore_index=True)

    def statistics(self, label: str) -> xr.Dataset:
        """How a path stands among all (Lu et al. 2020, section 4.2), with 95 % intervals over clusters of sentences.

        `t`: the chance that it has more influence than another path, drawn evenly, on the same sentence (half of a tie counts);
        `share`: its part in all influence of its own sign; `rank`: how many paths have more influence on average;
        `positive_total`: the share of sentences on which the source's total influence is positive (P+).
        """
        place = self._place(label)
        rows = []
        for influence, total in zip(self._of_members, np.atleast_2d(self.totals), strict=True):
            own = influence[:, place]
            positive, negative = (sums[:, 0] for sums in _same_sign_sums(influence))
            others = influence.shape[1] - 1
            ties = (influence == own[:, None]).sum(axis=1) - 1
            rows.append(
                {
                    "t": ((influence < own[:, None]).sum(axis=1) + ties / 2) / others if others else np.full(len(own), np.nan),
                    "share": np.where(own >= 0, own / positive, own / negative),
                    "positive_total": (total > 0).astype(float),
                    "rank": float((influence.mean(axis=0) > own.mean()).sum()),
                }
            )
        found: dict[str, Any] = {"rank": (self._lead, _led([row["rank"] for row in rows], self.members))}
        for name in ("t", "share", "positive_total"):
            values = [np.asarray(row[name], float) for row in rows]
            spans = [cluster_interval(one, self.cluster) or (np.nan, np.nan) for one in values]
            found[name] = (self._lead, _led([one.mean() for one in values], self.members))
            found[f"{name}_interval"] = ((*self._lead, "end"), _led([list(span) for span in spans], self.members))
        clusters = len(np.unique(self.cluster))
        return xr.Dataset(found, self._member_coords | {"end": ["low", "high"]}, {"path": label, "clusters": clusters})

    def neurons(self, label: str, at: str | None = None) -> xr.DataArray:
        """One path's influence shared out over the units of one of its states, dims (sentence, unit). By default that is
        where its longest run of unit-by-unit hops ends, all along which the shares are the same."""
        path = follow.moves(self.graph, label)
        states = [str(move.to) for move in path]
        if at is not None and at not in states:
            raise InputError(f"at is {at!r}; the states of this path are {', '.join(states)}")
        place = follow.longest_stretch(path) if at is None else states.index(at)
        found = []
        with torch.no_grad(), exact_products():
            for case in self.cases:
                units = torch.zeros(len(case.rows), case.model.hidden, dtype=case.model.dtype, device=case.model.device)
                for part in case.chunks(2 * len(path) + 2, self.memory):
                    traced = part.trace()
                    carried = follow.tangents(traced, path)[place]
                    rest = follow.adjoints(traced, path, part.gradient(traced).flatten(0, 1))[place]
                    shares = (carried * rest).view(len(part.rows), part.points, -1)
                    units[part.rows] += torch.einsum("spu,p->su", shares, part.inputs.weights)
                found.append(units.cpu().numpy())
        values = found[0] if self.members is None else np.stack(found)
        attributes = {"path": label, "at": states[place]}
        return xr.DataArray(values, self._member_coords, (*self._lead, "sentence", "unit"), "influence", attributes)

    @property
    def _lead(self) -> tuple[str, ...]:
        return () if self.members is None else ("member",)

    @property
    def _member_coords(self) -> dict[str, Any]:
        return {} if self.members is None else {"member": list(self.members)}

    @property
    def _of_members(self) -> Influence:
        return self.influence if self.members is not None else self.influence[None]

    def _place(self, label: str) -> int:
        follow.moves(self.graph, label)
        return int(np.flatnonzero(self.labels == label)[0])


def _same_sign_sums(influence: Float[np.ndarray, "sentence path"]) -> tuple[np.ndarray, np.ndarray]:
    """All positive and all negative influence of each sentence, as columns; never zero."""
    least = np.finfo(influence.dtype).tiny
    positive = np.maximum(np.where(influence > 0, influence, 0).sum(axis=1), least)
    negative = np.minimum(np.where(influence < 0, influence, 0).sum(axis=1), -least)
    return positive[:, None], negative[:, None]


def _led(values: list[Any], members: tuple[str, ...] | None) -> np.ndarray:
    return np.array(values[0] if members is None else values)
