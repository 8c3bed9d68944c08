"""The claims of section 4.1 (Figures 1 and 2), and two of its remarks in passing, with their rules."""

from __future__ import annotations

import xarray as xr

from partwise.studies._claims import Claim, Rule, above, at_most, near
from partwise.studies._contract import Results
from partwise.studies.long_range_rules.claims._values import cell, numbers, paired, shown

LENGTHS = (2, 4, 8)
_LOW, _FLAT, _CONVENTION = 0.01, 0.3, 0.05


def _learned(results: Results, conduit: int, by: str) -> xr.DataArray:
    """How much of the grid is learned: P(close) on unseen conduits, averaged over the numbers of rules; one number a seed."""
    found = shown(cell(results["frequency"], conduit=conduit))
    values = (found.true_probability if by == "true" else found.probability.sel(phrase="open")).sel(windows="unseen")
    return values.groupby("seed").mean() if values.size else values


def _longer_needs_more(short: int, long: int, by: str) -> Claim:
    says = "the model's own probability" if by == "true" else "decomposition"
    return Claim(
        f"longer-needs-more-{short}-{long}" + ("-true" if by == "true" else ""),
        f"a rule over {long} words needs more examples than one over {short} (P(close) by {says}, averaged over the numbers of "
        "rules tried, is lower)",
        None, "direction", "frequency", above(0.0),
        lambda results: paired(_learned(results, short, by), _learned(results, long, by)),
    )  # fmt: skip


def _phrase(results: Results, conduit: int, occurrences: int, phrase: str, log: bool = False) -> xr.DataArray:
    found = shown(cell(results["frequency"], conduit=conduit, occurrences=occurrences))
    values = found.log_probability if log else found.probability
    return values.sel(windows="unseen", phrase=phrase, drop=True)


def _most(results: Results) -> int:
    return int(results["frequency"].occurrences.values.max())


def _open_above_conduit(conduit: int) -> Claim:
    return Claim(
        f"open-above-conduit-{conduit}",
        f"over {conduit} words, the open symbol alone makes the close symbol more probable than the conduit alone does "
        "(where rules are most frequent)",
        None, "direction", "frequency", above(0.0),
        lambda results: paired(
            *(_phrase(results, conduit, _most(results), phrase) for phrase in ("open", "conduit"))
        ),
    )  # fmt: skip


def _conduit_low(conduit: int) -> Claim:
    def highest(results: Results) -> list[float]:
        found = shown(cell(results["frequency"], conduit=conduit))
        values = found.probability.sel(windows="unseen", phrase="conduit", drop=True)
        return numbers(values.groupby("seed").max()) if values.sizes["member"] else []

    return Claim(
        f"conduit-low-{conduit}",
        f"the conduit of {conduit} words alone gives the close symbol an extremely low probability, however frequent the rule "
        f"(at most {_LOW})",
        None, "size", "frequency", at_most(_LOW), highest,
    )  # fmt: skip


def _interaction(occurrences: int, scale: str) -> Claim:
    def rise(results: Results) -> list[float]:
        found = cell(results["prefixes"], occurrences=occurrences)[scale].sel(windows="unseen")
        return numbers(found.isel(prefix=-1) - found.isel(prefix=0))

    says = {"probability": "probability", "log_odds": "log odds"}[scale]
    return Claim(
        f"interaction-raises-{occurrences}" + ("" if scale == "probability" else "-log-odds"),
        f"the conduit interacts with the open symbol to raise the {says} of the close symbol (by both, less by the open symbol "
        f"alone; longest conduit, {occurrences:,} rules; Figure 2)",
        None, "direction", "interaction", above(0.0), rise,
    )  # fmt: skip


def _rare_flat(results: Results) -> list[float]:
    return paired(*(_phrase(results, conduit, 10, "open", log=True) for conduit in (8, 2)))


def _chance(conduit: int) -> Claim:
    rule = at_most(0.05)

    def repeated(results: Results) -> list[float]:
        found = results["frequency-corpora"]
        return numbers(cell(found, conduit=conduit, occurrences=1000).repeated_conduits)

    return Claim(
        f"conduits-do-not-repeat-{conduit}",
        f"of 1,000 random conduits of {conduit} words, few appear elsewhere by chance (at most 1 of 20)",
        None, "size", "frequency", rule, repeated,
    )  # fmt: skip


def _error(part: str) -> Claim:
    return Claim(
        f"error-small-{part}",
        f"decomposition has an approximation error below 1e-5 in float32 (largest over checkpoints; models of part {part})",
        1e-5, "direction", part, Rule(high=1e-5),
        lambda results: numbers(results[part].error.max("epoch")),
    )  # fmt: skip


CLAIMS = (
    *(_longer_needs_more(short, long, by) for by in ("decomposition", "true") for short, long in ((2, 4), (4, 8), (2, 8))),
    *(_open_above_conduit(conduit) for conduit in LENGTHS),
    *(_conduit_low(conduit) for conduit in LENGTHS),
    Claim(
        "rare-open-low",
        f"where the rule is extremely rare, the open symbol gives the close symbol a low probability (10 rules; <= {_LOW})",
        None, "size", "frequency", at_most(_LOW),
        lambda results: numbers(_phrase(results, max(LENGTHS), 10, "open")),
    ),
    Claim(
        "rare-open-flat",
        "where the rule is extremely rare, the probability by the open symbol is the same for conduits of 8 and of 2 words "
        f"(up to a factor of {10**_FLAT:.0f})",
        None, "size", "frequency", near(0.0, _FLAT), _rare_flat,
    ),
    Claim(
        "rare-conduit-declines",
        "where the rule is extremely rare, the probability by the conduit declines with its length (8 words against 2)",
        None, "direction", "frequency", above(0.0),
        lambda results: paired(*(_phrase(results, conduit, 10, "conduit", log=True) for conduit in (2, 8))),
    ),
    *(_interaction(occurrences, scale) for scale in ("probability", "log_odds") for occurrences in (1000, 10_000)),
    *(_chance(conduit) for conduit in LENGTHS),
    *(_error(part) for part in ("frequency", "predictability")),
    Claim(
        "convention-of-bias-products",
        "whether the product of two biases is the phrase's at its last word changes P(close) by the open symbol little "
        f"(up to {_CONVENTION}; 1,000 rules, longest conduit)",
        None, "size", "frequency", near(0.0, _CONVENTION),
        lambda results: _exclusive(results),
    ),
)  # fmt: skip


def _exclusive(results: Results) -> list[float]:
    found = shown(cell(results["frequency"], conduit=max(LENGTHS), occurrences=1000)).sel(windows="unseen")
    return numbers(found.probability.sel(phrase="open") - found.exclusive)
