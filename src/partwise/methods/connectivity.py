"""Units as nodes, strong weights as edges (Baan et al. 2019, section 3.2, Figure 2), with the numbers the paper only eyeballs.

1. Keep the edges above a threshold: a value, or the strongest share of all weights of each member.
2. Per unit, sending and receiving: how many edges (degree) and how much weight (strength).
3. Per member: how unequal strength is (Gini), how many units are polar (mean weight of one sign, beyond what chance
   gives a unit of that many weights), and how modular the graph is (Louvain communities; from a fixed seed).

A matrix is read as PyTorch keeps it: row = the unit that receives, column = the unit that sends; a gate is a block of rows.
"""

from __future__ import annotations

import networkx as nx
import numpy as np
import xarray as xr
from jaxtyping import Bool, Float

from partwise.errors import InputError, unknown
from partwise.methods.weight_map import weight_map
from partwise.parts import gates_of
from partwise.population import Population

POLAR_SIGMAS = 3.0  # standard errors that a unit's mean weight must lie from zero to be called polar
Matrices = Float[np.ndarray, "member receiver sender"]


def gate_matrix(population: Population, part: str, gate: str) -> Matrices:
    """The rows of one gate in an input or recurrent matrix: `gate_matrix(p, "encoder.recurrent", "update_gate")` is W_hz."""
    gates = gates_of(population.architecture)
    if not gates:
        raise InputError("gates are known for architectures with a GRU or LSTM cell")
    if gate not in gates:
        raise unknown("gate", gate, gates)
    weights = weight_map(population, f"{part}.weight").weight.values
    width = weights.shape[1] // len(gates)
    if part.split(".")[-1] not in ("input", "recurrent"):
        raise InputError(f"{part} has no gates; give an input or recurrent matrix, for example encoder.recurrent")
    start = gates.index(gate) * width
    return weights[:, start : start + width]


def connectivity(weights: Matrices, members: list[str], *, threshold: float | None = None, share: float = 0.01) -> xr.Dataset:
    """Degrees, strengths, polarity, Gini and modularity of each member's strong edges, on dims (member, sender/receiver)."""
    if threshold is not None and threshold <= 0:
        raise InputError(f"threshold is {threshold}; it must be above 0 (or left out, for the strongest {share:.0%})")
    if not 0 < share <= 1:
        raise InputError(f"share is {share}; it is the share of weights to keep, above 0 and at most 1")
    edges = strong_edges(weights, threshold, share)
    kept = np.where(edges, np.abs(weights), 0.0)
    sent, received = kept.sum(axis=1), kept.sum(axis=2)
    return xr.Dataset(
        {
            "out_degree": (("member", "sender"), edges.sum(axis=1)),
            "in_degree": (("member", "receiver"), edges.sum(axis=2)),
            "out_strength": (("member", "sender"), sent),
            "in_strength": (("member", "receiver"), received),
            "polar_senders": ("member", polar_share(weights.swapaxes(1, 2))),
            "polar_receivers": ("member", polar_share(weights)),
            "gini_out": ("member", [gini(row) for row in sent]),
            "gini_in": ("member", [gini(row) for row in received]),
            "modularity": ("member", [modularity(one) for one in kept]),
        },
        {"member": members},
        {
            "threshold": threshold if threshold is not None else f"strongest {share:g}",
            "polar": f"mean beyond {POLAR_SIGMAS} errors",
        },
    )


def strong_edges(weights: Matrices, threshold: float | None, share: float) -> Bool[np.ndarray, "member receiver sender"]:
    if threshold is not None:
        return np.abs(weights) > threshold
    keep = max(1, round(share * weights[0].size))
    size = np.abs(weights).reshape(len(weights), -1)
    least = np.partition(size, -keep, axis=1)[:, -keep]
    return np.abs(weights) >= least[:, None, None]


def polar_share(weights: Float[np.ndarray, "member unit weight"]) -> Float[np.ndarray, " member"]:
    """Share of units whose mean weight lies further from zero than noise of their own spread would put it."""
    error = weights.std(axis=2, ddof=1) / weights.shape[2] ** 0.5
    return (np.abs(weights.mean(axis=2)) > POLAR_SIGMAS * error).mean(axis=1)


def gini(values: Float[np.ndarray, " unit"]) -> float:
    """0 where all units are equally strong, towards 1 where one has everything; NaN without any edge."""
    ordered, n = np.sort(values.astype(np.float64)), len(values)
    if ordered.sum() == 0:
        return float("nan")
    return float(2 * (np.arange(1, n + 1) * ordered).sum() / (n * ordered.sum()) - (n + 1) / n)


def modularity(kept: Float[np.ndarray, "receiver sender"]) -> float:
    """Of Louvain communities in the bipartite graph of senders and receivers; NaN without any edge."""
    receivers, senders = np.nonzero(kept)
    if len(receivers) == 0:
        return float("nan")
    graph = nx.Graph()
    graph.add_weighted_edges_from((f"s{s}", f"r{r}", float(kept[r, s])) for r, s in zip(receivers, senders, strict=True))
    return float(nx.community.modularity(graph, nx.community.louvain_communities(graph, seed=0)))
