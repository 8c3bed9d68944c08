"""The chapter on attentive guidance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from partwise.reports.chapters._contract import Table
from partwise.reports.figures._figure import Figure
from partwise.reports.figures.ablations import pruning, substitution
from partwise.reports.figures.accuracy_dots import accuracy_dots
from partwise.reports.figures.activation_boxes import activation_boxes
from partwise.reports.figures.attention_maps import attention_maps
from partwise.reports.figures.emergence_curves import emergence_curves
from partwise.reports.figures.functional_groups import functional_groups, group_rules
from partwise.reports.figures.heat_map import heat_map
from partwise.reports.figures.learning_curves import learning_curves
from partwise.reports.figures.network import network
from partwise.reports.figures.saturation_scatter import saturation_scatter
from partwise.reports.figures.sensitivity_grid import FACTORS, cell_name, sensitivity_grid
from partwise.studies.attentive_guidance.claims.ablation import TABLE_4
from partwise.studies.attentive_guidance.claims.behaviour import PUBLISHED, SPLITS, accuracy
from partwise.studies.attentive_guidance.claims.groups import PUBLISHED as PUBLISHED_GROUPS

NAMES = {key: name[0].upper() + name[1:] for key, name in SPLITS.values()}
_PUBLISHED = {arm: {SPLITS[short][0]: values for short, values in rows.items()} for arm, rows in PUBLISHED.items()}

_PUBLISHED_SIZES = {target: {arm: float(row[2]) for arm, row in arms.items()} for target, arms in PUBLISHED_GROUPS.items()}
_HEAT_MAP = (
    "The decoder's embedding",
    "Weights of the decoder's embedding in one model of each arm, on one colour scale; a row is a word. The download has the "
    "row norms of all models.",
)


def figures(results: Mapping[str, xr.Dataset]) -> list[Figure]:
    made = []
    if "behaviour" in results:
        made += [
            accuracy_dots(results["behaviour"], NAMES, _PUBLISHED),
            learning_curves(results["history"], NAMES),
            attention_maps(results["attention"], NAMES),
        ]
    if "embedding" in results:
        made.append(heat_map(results["embedding-map"].weight, results["embedding"], *_HEAT_MAP))
        made.append(network(results["edges"], results["connectivity"]))
    if "ranges" in results:
        made += [activation_boxes(results["ranges"]), saturation_scatter(results["saturation"])]
    if "groups" in results:
        made.append(functional_groups(results["groups"], results["untrained-groups"], _PUBLISHED_SIZES))
    if "group-rules" in results:
        made.append(group_rules(results["group-rules"]))
    if "substitution" in results:
        made.append(substitution(results["substitution"], results["behaviour"], TABLE_4))
    if "pruning" in results:
        made.append(pruning(results["pruning"], results["small"], results["behaviour"]))
    if "emergence" in results:
        made.append(emergence_curves(results["emergence"], results["history"]))
    if "sensitivity" in results:
        made.append(sensitivity_grid(results["sensitivity"], NAMES))
    return made


def tables(results: Mapping[str, xr.Dataset]) -> list[Table]:
    made = []
    if "behaviour" in results:
        made.append(_all_splits(results["behaviour"]))
    if "spread" in results:
        made.append(_spread(results["spread"]))
    return made


def remarks(results: Mapping[str, xr.Dataset], claims: Sequence[Mapping[str, Any]]) -> list[str]:
    """Where guided models stay below the paper, and which way of training lifts them."""
    low = [
        short
        for short in SPLITS
        for claim in claims
        if claim["id"] == f"table-6-{short}"
        and claim["verdict"] in ("not replicated", "inconclusive")
        and claim["measured"] < claim["published"]
    ]
    if not low:
        return []
    names = " and ".join(SPLITS[short][1] for short in low)
    if "sensitivity" not in results:
        return [f"Guided models stay below the paper on {names}. The part `sensitivity` of this study shows what moves them."]
    grid = results["sensitivity"]
    return [f"Guided models stay below the paper on {names}.", *(_best_cell(grid, short) for short in low)]


def _best_cell(grid: xr.Dataset, short: str) -> str:
    table = grid.accuracy.sel(weights="selected", split=SPLITS[short][0]).to_dataframe().reset_index()
    means = table[table.arm == "guided"].groupby(list(FACTORS)).accuracy.mean()
    best = means.idxmax()
    return (
        f"In the sensitivity grid they do best on {SPLITS[short][1]} with {cell_name(best)} (mean {means[best]:.2f}, "
        f"published recipe {means[('yes', 'uniform', 0.0)]:.2f})."
    )


def _all_splits(final: xr.Dataset) -> Table:
    rows = []
    for split in final.split.values:
        row: dict[str, str] = {"split": str(split).replace("_", " ")}
        for arm in ("baseline", "guided"):
            for weights in ("selected", "last"):
                values = final.accuracy.sel(split=split, weights=weights).values[final.arm.values == arm]
                row[f"{arm}, {weights} epoch"] = _mean_and_spread(values)
        rows.append(row)
    return Table(
        "Every split, selected and last epoch",
        "Mean sequence accuracy over models, with the standard deviation over models (seed and split vary together). The "
        "longer compositions have three tables; their rule is ours, the published one is not known.",
        pd.DataFrame(rows).set_index("split"),
    )


def _spread(star: xr.Dataset) -> Table:
    first_seed, first_split = int(star.seed.min()), int(star.split_seed.min())
    rows = []
    for arm in ("baseline", "guided"):
        for short, (_, name) in SPLITS.items():
            seeds = accuracy(star, short, arm=arm, split_seed=first_split)
            splits = accuracy(star, short, arm=arm, seed=first_seed)
            rows.append(
                {
                    "models": arm,
                    "split": name,
                    "seeds, one split": _mean_and_spread(seeds),
                    "splits, one seed": _mean_and_spread(splits),
                }
            )
    return Table(
        "Spread due to the seed, and due to the split",
        f"Mean and standard deviation over models: seeds varied on one split of the data (n {len(seeds)}), and splits "
        f"varied under one seed (n {len(splits)}).",
        pd.DataFrame(rows).set_index(["models", "split"]),
    )


def _mean_and_spread(values: np.ndarray) -> str:
    known = np.asarray(values, float)[np.isfinite(values)]
    if len(known) == 0:
        return "none"
    return f"{known.mean():.2f} ± {known.std(ddof=1):.2f}" if len(known) > 1 else f"{known[0]:.2f}"
