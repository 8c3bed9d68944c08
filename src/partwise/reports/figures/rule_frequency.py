"""P(close) against the number of rules, a line for each length of conduit (Saphra and Lopez, Figure 1), and along prefixes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from partwise.intervals import t_interval
from partwise.reports.figures._figure import Figure, Panel, drawing, panel
from partwise.reports.figures.arm_curves import STYLES


def rule_frequency(found: xr.Dataset) -> Figure:
    """`found` has probability (member, windows, phrase) and true_probability (member, windows), at one epoch."""
    unseen = found.sel(windows="unseen")
    panels = [
        _against_rules(unseen.probability.sel(phrase="open"), "open", "by the open symbol"),
        _against_rules(unseen.probability.sel(phrase="conduit"), "conduit", "by the conduit"),
        _against_rules(unseen.true_probability, "true", "by the model itself"),
    ]
    return Figure(
        "rule-frequency",
        "How many examples a rule needs",
        "P(close symbol) one word before it, on conduits that the corpus did not have, by contextual decomposition of the open "
        f"symbol alone and of the conduit alone, and by the model itself, after {found.attrs['shown_epoch']} epochs. Dots are "
        "models, lines their means (of logarithms), bands 95 % intervals over models.",
        panels,
        found.to_dataframe().reset_index(),
    )


def _against_rules(values: xr.DataArray, name: str, title: str) -> Panel:
    words = []
    with drawing(3.5, 2.8) as axes:
        for conduit, (colour, line, mark) in zip(np.unique(values.conduit.values), STYLES, strict=False):
            own = values.isel(member=np.flatnonzero(values.conduit.values == conduit))
            rules = np.unique(own.occurrences.values)
            logs = [np.log10(np.clip(own.values[own.occurrences.values == n], 1e-12, None)) for n in rules]
            mean = np.array([np.mean(some) for some in logs])
            low, high = np.array([t_interval(some.tolist()) or (np.nan, np.nan) for some in logs]).T
            axes.plot(own.occurrences, np.clip(own.values, 1e-12, None), mark, color=colour, markersize=3, alpha=0.5)
            axes.plot(rules, 10**mean, color=colour, linestyle=line, linewidth=1.8, label=f"conduit of {conduit}")
            axes.fill_between(rules, 10**low, np.minimum(10**high, 1), color=colour, alpha=0.15, linewidth=0)
            words.append(f"conduit of {conduit}: " + ", ".join(f"{10**m:.2g} at {n}" for n, m in zip(rules, mean, strict=True)))
        axes.set(title=title, xlabel="rules in the corpus", ylabel="P(close)", xscale="log", yscale="log", ylim=(None, 2))
        axes.legend(fontsize=8, handlelength=3)
        return panel(axes, f"rule-frequency-{name}", f"P(close) {title} against the number of rules. {'; '.join(words)}.")


def rule_prefixes(found: xr.Dataset) -> Figure:
    """`found` has probability (member, windows, prefix), on models of one length of conduit."""
    return Figure(
        "rule-prefixes",
        "The open symbol with more and more of the conduit",
        "P(close symbol) by contextual decomposition of the open symbol and the first words of the conduit taken as one "
        "phrase, on the finished models of the longest conduit. Bands are 95 % intervals over models.",
        [_along(found.probability.sel(windows=kind), str(kind)) for kind in found.windows.values],
        found.to_dataframe().reset_index(),
    )


def _along(values: xr.DataArray, kind: str) -> Panel:
    words: list[str] = []
    rules: Sequence[int] = [int(n) for n in np.unique(values.occurrences.values)]
    with drawing(3.5, 2.6) as axes:
        for n, (colour, line, mark) in zip(rules, STYLES, strict=False):
            own = values.isel(member=np.flatnonzero(values.occurrences.values == n)).transpose("prefix", "member")
            mean = own.values.mean(axis=1)
            low, high = np.array([t_interval(row.tolist()) or (np.nan, np.nan) for row in own.values]).T
            axes.plot(own.prefix, mean, color=colour, linestyle=line, marker=mark, markersize=3, label=f"{n:,} rules")
            axes.fill_between(own.prefix, low.clip(0, 1), high.clip(0, 1), color=colour, alpha=0.15, linewidth=0)
            words.append(f"{n} rules: {mean[0]:.2g} to {mean[-1]:.2g}")
        axes.set(title=f"{kind} conduits", xlabel="words of the conduit in the phrase", ylabel="P(close)", ylim=(-0.03, 1.03))
        axes.legend(fontsize=8, handlelength=3)
        says = f"P(close) by the open symbol and the first words of {kind} conduits. {'; '.join(words)}."
        return panel(axes, f"rule-prefixes-{kind}", says)
