"""The chapter on long-range rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from partwise.reports.chapters._contract import Table
from partwise.reports.figures._figure import Figure
from partwise.reports.figures.arm_curves import Arms, arm_curves
from partwise.reports.figures.rule_frequency import rule_frequency, rule_prefixes
from partwise.studies.long_range_rules.claims._values import cell, shown
from partwise.studies.long_range_rules.readings import KINDS

Results = Mapping[str, xr.Dataset]
PROBABILITY = (0.0, 1.0)


def figures(results: Results) -> list[Figure]:
    made = []
    if "frequency" in results:
        made.append(rule_frequency(shown(results["frequency"])))
    if "prefixes" in results:
        made.append(rule_prefixes(results["prefixes"]))
    if "predictability" in results:
        made.append(_predictability(results["predictability"]))
    if "fault" in results and "predictability" in results:
        made.append(_fault(results))
    if "flow" in results:
        made.append(_flow(results["flow"]))
    if "optimiser" in results:
        made.append(_optimiser(results))
    return made


def tables(results: Results) -> list[Table]:
    made = []
    parts = [name for name in ("frequency-corpora", "predictability-corpora", "fault-corpora") if name in results]
    if parts:
        made.append(_corpora([results[name] for name in parts]))
    meanings = [results[name] for name in ("meaning-frequency", "meaning-predictability") if name in results]
    if meanings:
        made.append(_meaning(meanings))
    return made


def remarks(results: Results, claims: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a reader must know before believing a verdict: decomposition against the model itself, and the share of filler."""
    said = []
    if "predictability" in results:
        last = results["predictability"].isel(epoch=-1).sel(windows="unseen")
        copied = last.isel(member=np.flatnonzero(last.copies.values > 0))
        by_open, true = float(copied.probability.sel(phrase="open").mean()), float(copied.true_probability.mean())
        said.append(
            f"After an unseen conduit, models with predictable conduits give the close symbol {by_open:.2f} by the open symbol "
            f"alone, but {true:.2f} in truth: decomposition leaves out what the conduit contributes, and the model does not."
        )
        filler = results["predictability-corpora"]
        plain, full = (float(filler.filler_share.values[filler.copies.values == m].mean()) for m in _ends(filler))
        said.append(
            f"Arms differ in more than predictability: {plain:.0%} of the words are filler where conduits are not copied, "
            f"{full:.0%} where they are copied most often. What copies do and what less filler does cannot be told apart "
            "between these arms; within an arm, seen against unseen conduits is free of it."
        )
    return said


def _ends(found: xr.Dataset) -> tuple[int, int]:
    return int(found.copies.min()), int(found.copies.max())


def _arms(found: xr.Dataset, conduit: int) -> dict[str, xr.Dataset]:
    own = cell(found, conduit=conduit)
    names = {m: "unpredictable" if m == 0 else f"predictable, m = {m}" for m in sorted({int(m) for m in own.copies.values})}
    return {name: cell(own, copies=m) for m, name in names.items()}


def _predictability(found: xr.Dataset) -> Figure:
    panels = []
    for conduit in sorted({int(k) for k in found.conduit.values}, reverse=True):
        arms = _arms(found, conduit)
        for kind in KINDS:
            by_open: Arms = {name: one.probability.sel(phrase="open", windows=kind) for name, one in arms.items()}
            true: Arms = {name: one.true_probability.sel(windows=kind) for name, one in arms.items()}
            title = f"{conduit} words, {kind}"
            panels.append(arm_curves(by_open, f"predictability-{conduit}-{kind}", title, "P(close | open)", span=PROBABILITY))
            panels.append(
                arm_curves(true, f"predictability-{conduit}-{kind}-true", f"{title}: the model", "P(close)", span=PROBABILITY)
            )
    return Figure(
        "predictability",
        "Familiar conduits",
        "P(close symbol) over training by the open symbol alone (contextual decomposition) and by the model itself, where "
        "conduits stand in rules only, or are copied m times elsewhere. Thin lines are models, bands 95 % intervals over them.",
        panels,
        found.to_dataframe().reset_index(),
    )


def _fault(results: Results) -> Figure:
    spoiled = results["fault"]
    conduit = int(spoiled.conduit[0])
    arms = _arms(results["predictability"], conduit)
    panels = []
    for kind in KINDS:
        values = {name: one.probability.sel(phrase="open", windows=kind) for name, one in arms.items()}
        values["reported fault"] = spoiled.probability.sel(phrase="open", windows=kind)
        panels.append(arm_curves(values, f"fault-{kind}", f"{conduit} words, {kind}", "P(close | open)", span=PROBABILITY))
    kept = results["fault-corpora"]
    return Figure(
        "fault",
        "The reported fault of the public generator",
        "The same, with an arm whose corpora are written as the public generator writes them, so that only "
        f"{float(kept.rules.mean()):.0f} of the rules asked for are whole.",
        panels,
        spoiled.to_dataframe().reset_index(),
    )


def _flow(found: xr.Dataset) -> Figure:
    conduit = int(found.conduit.max())
    own = cell(found, conduit=conduit)
    says = {"hidden": "hidden state alone", "state": "hidden state and cell", "message": "gradient of the loss"}
    panels = []
    for name, title in says.items():
        for kind in KINDS:
            arms = {arm: one[name].sel(windows=kind) for arm, one in _arms(own, conduit).items()}
            panels.append(arm_curves(arms, f"flow-{name}-{kind}", f"{title}, {kind}", "log10 of the norm"))
    return Figure(
        "flow",
        "What comes back through the conduit",
        f"From before the close symbol back to the open symbol over {conduit} words: the norm of the product of Jacobians of "
        "the hidden state with cells held fixed, of hidden state and cell together (the identity has 1), and of the gradient "
        "of -log P(close). Means of logarithms over windows; thin lines are models, bands 95 % intervals over them.",
        panels,
        found.to_dataframe().reset_index(),
    )


def _optimiser(results: Results) -> Figure:
    found = results["optimiser"]
    plain = cell(results["frequency"], conduit=int(found.conduit[0]), occurrences=int(found.occurrences[0]))
    arms = {
        "plain": plain,
        "momentum": found.isel(member=np.flatnonzero(found.momentum.values > 0)),
        "weight decay": found.isel(member=np.flatnonzero(found.weight_decay.values > 0)),
    }
    values = {name: one.probability.sel(phrase="open", windows="unseen") for name, one in arms.items()}
    title = f"{int(found.conduit[0])} words, {int(found.occurrences[0]):,} rules"
    return Figure(
        "optimiser",
        "Momentum and weight decay",
        "P(close symbol) by the open symbol alone over training, on unseen conduits.",
        [arm_curves(values, "optimiser", title, "P(close | open)", span=PROBABILITY, width=6.2)],
        found.to_dataframe().reset_index(),
    )


_COUNTED = {
    "rules": ("rules", "{:,.0f}"),
    "copies_mean": ("copies of a conduit", "{:,.1f}"),
    "chance_copies": ("of these by chance, in all", "{:,.0f}"),
    "repeated_conduits": ("conduits with a copy", "{:.0%}"),
    "spacing_mean": ("words from rule to rule", "{:,.0f}"),
    "filler_share": ("filler", "{:.0%}"),
}


def _corpora(found: Sequence[xr.Dataset]) -> Table:
    frame = pd.concat([one.to_dataframe().reset_index() for one in found])
    means = frame.groupby(["conduit", "occurrences", "setting", "copies"])[list(_COUNTED)].mean()
    shown_as = {title: means[name].map(form.format) for name, (title, form) in _COUNTED.items()}
    return Table(
        "What the corpora hold",
        "Counted in the finished corpora, means over seeds: conduit is the number of words between the symbols, occurrences "
        "and copies are what was asked for. Copies are counted outside rules.",
        pd.DataFrame(shown_as).replace("nan", "–"),
    )


def _meaning(found: Sequence[xr.Dataset]) -> Table:
    frame = pd.concat([one.to_dataframe().reset_index() for one in found])
    grouped = frame.groupby(["conduit", "setting", "copies", "occurrences"])
    rows = {
        "every word of the rule": grouped.correlation.mean(),
        "words of the conduit only": grouped.within_conduit.mean(),
    }
    return Table(
        "Decomposition tried out",
        "Correlation over (window, word) of a word's relevant score for the close symbol with the change of that score when "
        "the word is exchanged for random others; means over finished models.",
        pd.DataFrame(rows).round(2),
    )
