"""The claims about component substitution and pruning (section 5, Table 4), with their rules.

A row of Table 4 is replicated if our mean is the published one up to .10. Intervals are clustered by donor: a donor's mean
over its hosts is one value. What the paper concludes (which parts matter) is tested as differences to the same models before
substitution. Where two ways of pruning are compared, a pair of models that both get nothing right is left out: it cannot tell
which is better.
"""

from __future__ import annotations

import numpy as np

from partwise.studies._claims import Claim, Rule, above, at_most, near
from partwise.studies._contract import Results
from partwise.studies.attentive_guidance.claims.behaviour import MARGIN, accuracy
from partwise.studies.attentive_guidance.parts.substitution import FINER
from partwise.studies.attentive_guidance.recipe import COMPONENTS

TABLE_4 = {
    "encoder": 0.17,
    "encoder embedding": 0.75,
    "encoder input": 0.89,
    "encoder recurrent": 0.79,
    "decoder": 0.12,
    "decoder embedding": 0.31,
    "decoder input": 0.60,
    "decoder recurrent": 0.91,
}
_BASELINE_HOSTS = {"encoder": 0.02, "decoder": 0.02}  # the other rows were left out: none increased performance
_LITTLE = 0.1


def _retrained(results: Results, component: str, arm: str, *, change: bool, name: str = "substitution") -> list[float]:
    """One value a donor: accuracy on new compositions, or its change against the host before substitution."""
    data = results[name]
    chosen = data.isel(member=np.flatnonzero((data.component.values == component) & (data.arm.values == arm)))
    values = chosen.accuracy.sel(weights="selected", split="new_compositions").values.astype(float)
    if change:
        before = results["behaviour"]
        seeds = [int(seed) for seed in np.sort(np.unique(before.seed.values))]
        known = dict(zip(seeds, accuracy(before, "nc", arm=arm), strict=True))
        values = values - np.array([known[int(host)] for host in chosen.host.values])
    donors = chosen.donor.values
    return [float(np.nanmean(values[donors == donor])) for donor in np.unique(donors)]


def _row(component: str) -> Claim:
    published = TABLE_4[component]
    return Claim(
        f"table-4-guided-{component.replace(' ', '-')}",
        f"guided models with a frozen baseline {component}, trained on, reach {published:g} on new compositions",
        published, "size", "substitution", near(published, MARGIN),
        lambda results: _retrained(results, component, "guided", change=False),
    )  # fmt: skip


def _change(id: str, text: str, component: str, rule: Rule, kind: str = "direction", sign: float = 1.0) -> Claim:
    return Claim(
        id, text, None, kind, "substitution", rule,
        lambda results: [sign * value for value in _retrained(results, component, "guided", change=True)],
    )  # fmt: skip


def _no_gain(component: str) -> Claim:
    published = _BASELINE_HOSTS.get(component)
    return Claim(
        f"table-4-baseline-{component.replace(' ', '-')}",
        f"baselines with a frozen guided {component}, trained on unguided, gain at most {_LITTLE:g} on new compositions",
        published, "size", "substitution", at_most(_LITTLE),
        lambda results: _retrained(results, component, "baseline", change=True),
    )  # fmt: skip


def _finer(component: str) -> Claim:
    def cost(results: Results) -> list[float]:
        return [-value for value in _retrained(results, component, "guided", change=True, name="substitution-finer")]

    text = f"a frozen baseline {component} costs guided models more than .1 on new compositions"
    return Claim(f"finer-{component.replace(' ', '-')}", text, None, "size", "finer", above(0.1), cost)


def _pruned(results: Results, kind: str, when: str) -> np.ndarray:
    """New compositions, one value a guided model, before or after training on."""
    data = results["small" if kind == "small" else "pruning"]
    chosen = data.isel(member=np.flatnonzero(data.kind.values == kind)).sortby("of").sel(split="new_compositions")
    values = chosen.before if when == "before" else chosen.accuracy.sel(weights="selected")
    return np.asarray(values.values, float)


def _better(results: Results, kind: str, than: str, when: str) -> list[float]:
    one, other = _pruned(results, kind, when), _pruned(results, than, when)
    return list(np.where((one == 0) & (other == 0), np.nan, one - other))


def _full(results: Results) -> np.ndarray:
    return accuracy(results["behaviour"], "nc", arm="guided")


SUBSTITUTION = (
    *(_row(component) for component in COMPONENTS),
    *(_no_gain(component) for component in COMPONENTS),
    *(
        _change(
            f"{component.replace(' ', '-')}-matters",
            f"a frozen baseline {component} costs guided models more than .1 on new compositions",
            component, above(0.1), sign=-1.0,
        )
        for component in ("encoder", "decoder", "decoder embedding", "decoder input")
    ),
    *(
        _change(
            f"{component.replace(' ', '-')}-does-not-matter",
            f"a frozen baseline {component} costs guided models less than .1 on new compositions",
            component, at_most(0.1), kind="size", sign=-1.0,
        )
        for component in ("encoder embedding", "encoder recurrent")
    ),
    *(
        _change(
            f"{component.replace(' ', '-')}-helps",
            f"a frozen baseline {component} raises guided models' accuracy on new compositions",
            component, above(0.0), kind="size",
        )
        for component in ("encoder input", "decoder recurrent")
    ),
    *(_finer(component) for component in FINER),
)  # fmt: skip

PRUNING = (
    Claim(
        "pruned-before",
        "guided models with their strongest 5 % of units reach .124 on new compositions before training on",
        0.124, "size", "pruning", near(0.124, MARGIN),
        lambda results: list(_pruned(results, "strongest", "before")),
    ),
    Claim(
        "pruned-after",
        "and .925 after training on for 20 epochs",
        0.925, "size", "pruning", near(0.925, MARGIN),
        lambda results: list(_pruned(results, "strongest", "after")),
    ),
    Claim(
        "pruned-restored",
        "training on restores the full models' accuracy on new compositions (no more than .1 below)",
        0.102, "direction", "pruning", above(-0.1),
        lambda results: list(_pruned(results, "strongest", "after") - _full(results)),
    ),
    Claim(
        "pruned-better-than-full",
        "the strongest 5 %, trained on, do better than the full models",
        0.102, "direction", "pruning", above(0.0),
        lambda results: list(_pruned(results, "strongest", "after") - _full(results)),
    ),
    Claim(
        "strongest-above-random-before",
        "before training on, the strongest units keep more than as many random units",
        None, "direction", "pruning", above(0.0),
        lambda results: _better(results, "strongest", "random", "before"),
    ),
    Claim(
        "strongest-above-random-after",
        "after training on, the strongest units do better than as many random units",
        None, "direction", "pruning", above(0.0),
        lambda results: _better(results, "strongest", "random", "after"),
    ),
    Claim(
        "strongest-above-small",
        "the strongest units, trained on, do better than models of that width trained from scratch",
        None, "direction", "pruning", above(0.0),
        lambda results: _better(results, "strongest", "small", "after"),
    ),
)  # fmt: skip

CLAIMS = (*SUBSTITUTION, *PRUNING)
