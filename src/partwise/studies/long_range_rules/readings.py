"""What a population makes of a rule: how probable the close symbol is by the open symbol, by the conduit, and in truth.

Everything is read one word before the close symbol, where the model predicts it. (The public code of the paper reads one word
later, where the model predicts what comes after.) Seen and unseen conduits are read apart.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import xarray as xr
from jaxtyping import Int
from torch import Tensor

from partwise.interventions.phrase_replacement import agreement, phrase_replacement
from partwise.methods.contextual_decomposition import contextual_decomposition
from partwise.methods.gradient_flow import gradient_flow
from partwise.population import Population
from partwise.progress import Progress
from partwise.randomness import generator
from partwise.studies._trained import Trained, label
from partwise.studies.long_range_rules.recipe import Recipe

KINDS = ("unseen", "seen")
BUDGET = "2GB"
_LEAST = 1e-30


def over_epochs(
    recipe: Recipe,
    trained: Trained,
    read: Callable[[Recipe, Population], xr.Dataset],
    what: str,
    epochs: list[int] | None = None,
) -> xr.Dataset:
    """Something read off the models of every checkpoint; dims gain `epoch`."""
    epochs = trained.epochs() if epochs is None else epochs
    found: list[xr.Dataset] = []
    with Progress(f"reading {what} at {len(epochs)} checkpoints", float(len(epochs)), lambda: float(len(found))):
        found.extend(of_lengths(recipe, trained.population(f"epoch-{epoch:04d}"), read) for epoch in epochs)
    return xr.concat(found, xr.Variable("epoch", epochs)).assign_attrs(shown_epoch=recipe.preset.shown_epoch)


def of_lengths(recipe: Recipe, population: Population, read: Callable[[Recipe, Population], xr.Dataset]) -> xr.Dataset:
    """Members with conduits of one length are read together; the result is put together again."""
    parts = []
    for conduit in sorted({int(member.labels["conduit"]) for member in population.members}):
        names = [member.name for member in population.members if member.labels["conduit"] == conduit]
        few = population.select(names)
        parts.append(label(read(recipe, few), few))
    return xr.concat(parts, "member").sel(member=list(population.names))


def close_probability(recipe: Recipe, population: Population) -> xr.Dataset:
    """P(close) by contextual decomposition of the open symbol and of the conduit, and by the model itself.

    dims (member, windows, phrase): means over windows of the probability, and of its logarithm to base 10. `exclusive` is the
    probability by the open symbol where the product of two biases is not the phrase's at its last word.
    """
    ids, conduit, close = _windows(recipe, population)
    rows, open_at = ids.shape[1], ids.shape[2] - conduit - 1
    bounds = (
        torch.tensor([open_at, open_at + 1]).repeat_interleave(rows),
        torch.tensor([open_at + 1, ids.shape[2]]).repeat_interleave(rows),
    )
    twice = ids.repeat(1, 2, 1)
    found = contextual_decomposition(population, twice, bounds, budget=BUDGET)
    by_phrase = found.probability(close).values.reshape(len(population), 2, len(KINDS), -1).transpose(0, 2, 1, 3)
    exclusive = contextual_decomposition(
        population, ids, (open_at, open_at + 1), variant="murdoch2018-exclusive", budget=BUDGET
    )
    alone = exclusive.probability(close).values.reshape(len(population), len(KINDS), -1)
    true = exclusive.model_probability(close).values.reshape(len(population), len(KINDS), -1)
    return xr.Dataset(
        {
            "probability": (("member", "windows", "phrase"), by_phrase.mean(-1)),
            "log_probability": (("member", "windows", "phrase"), _log(by_phrase).mean(-1)),
            "exclusive": (("member", "windows"), alone.mean(-1)),
            "true_probability": (("member", "windows"), true.mean(-1)),
            "true_log_probability": (("member", "windows"), _log(true).mean(-1)),
            "error": ("member", found.data.error.values),
        },
        {"member": list(population.names), "windows": list(KINDS), "phrase": ["open", "conduit"]},
    )


def prefixes(recipe: Recipe, population: Population) -> xr.Dataset:
    """P(close) by the open symbol and the first i words of the conduit; dims (member, windows, prefix)."""
    ids, conduit, close = _windows(recipe, population)
    open_at, steps = ids.shape[2] - conduit - 1, range(conduit + 1)
    values = []
    for i in steps:
        found = contextual_decomposition(population, ids, (open_at, open_at + 1 + i), budget=BUDGET)
        values.append(found.probability(close).values.reshape(len(population), len(KINDS), -1))
    stacked = np.stack(values, axis=-1)
    odds = np.log(np.clip(stacked, _LEAST, None)) - np.log(np.clip(1 - stacked, 1e-7, None))
    return xr.Dataset(
        {
            "probability": (("member", "windows", "prefix"), stacked.mean(2)),
            "log_odds": (("member", "windows", "prefix"), odds.mean(2)),
        },
        {"member": list(population.names), "windows": list(KINDS), "prefix": list(steps)},
    )


def flow(recipe: Recipe, population: Population) -> xr.Dataset:
    """How large a gradient comes back from before the close symbol to the open symbol: means of logarithms over windows."""
    ids, conduit, close = _windows(recipe, population, at_most=50)
    found = gradient_flow(population, ids, ids.shape[2] - conduit - 1, ids.shape[2] - 1, close, budget=BUDGET)
    values = {name: np.log10(found[name].values.reshape(len(population), len(KINDS), -1)) for name in found}
    arrays = {name: (("member", "windows"), value.mean(-1)) for name, value in values.items()}
    return xr.Dataset(arrays, {"member": list(population.names), "windows": list(KINDS)})


def meaning(recipe: Recipe, population: Population) -> xr.Dataset:
    """Is what decomposition says of a word what happens when the word is exchanged? Every word of the rule in turn, five draws
    each; one correlation a member over (window, word) of the close symbol's relevant score and its change.
    """
    ids, conduit, close = _windows(recipe, population, at_most=20)
    first, draws = ids.shape[2] - conduit - 1, 5
    random = generator(recipe.settings.seed, "alternatives", conduit)
    places = torch.arange(first, ids.shape[2]).repeat(ids.shape[1])
    each = ids.repeat_interleave(conduit + 1, dim=1)
    others = torch.from_numpy(random.integers(recipe.preset.types, size=(draws, *each.shape[1:])))
    said = contextual_decomposition(population, each, (places, places + 1), budget=BUDGET).logits()
    relevant = (said.relevant.isel(token=close) - said.relevant.mean("token")).values
    change = phrase_replacement(population, each, (places, places + 1), others.to(ids.device), close).change.values
    inner = (places > first).numpy()
    return xr.Dataset(
        {
            "correlation": ("member", agreement(relevant, change)),
            "within_conduit": ("member", agreement(relevant[:, inner], change[:, inner])),
        },
        {"member": list(population.names)},
    )


def corpora(recipe: Recipe, population: Population) -> xr.Dataset:
    """What was counted in every member's corpus."""
    facts = [recipe.corpus_of(member).facts for member in population.members]
    arrays = {name: ("member", np.array([float(one[name]) for one in facts])) for name in facts[0]}
    return label(xr.Dataset(arrays, {"member": list(population.names)}), population)


def _windows(
    recipe: Recipe, population: Population, at_most: int | None = None
) -> tuple[Int[Tensor, "member row time"], int, int]:
    """Every member's windows up to the word before the close symbol, unseen ones first; the conduit's length; the close id."""
    each = []
    for member in population.members:
        windows = recipe.corpus_of(member).windows
        each.append(np.concatenate([windows[kind][:at_most, :-1] for kind in KINDS]))
    ids = torch.from_numpy(np.stack(each)).long().to(population.store.device)
    return ids, int(population.members[0].labels["conduit"]), recipe.preset.types + 1


def _log(values: np.ndarray) -> np.ndarray:
    return np.log10(np.clip(values, _LEAST, None))
