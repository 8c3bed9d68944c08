"""The claims about functional groups (section 4.1, Tables 2 and 3), with their rules.

Accuracies must agree with the published ones up to .05, group sizes up to a quarter (and at least one unit). That guided groups
are smaller is tested under the main rule, and under every other rule that the paper leaves open.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from partwise.studies._claims import Claim, above, near
from partwise.studies._contract import Results
from partwise.studies.attentive_guidance.claims._values import guided_less_baseline, of_arm
from partwise.studies.attentive_guidance.parts.groups import RULES, TARGETS

PUBLISHED: dict[
    str, dict[str, tuple[float, float, float]]
] = {  # target: arm: accuracy of the group, accuracy of all units, size of the group
    "encoder hidden, table": {"baseline": (0.93, 0.98, 35), "guided": (0.98, 1.0, 2)},
    "decoder update gate, table": {"baseline": (0.51, 0.53, 52), "guided": (0.96, 1.0, 22.2)},
    "decoder reset gate, table": {"baseline": (0.50, 0.52, 44), "guided": (0.96, 1.0, 20.8)},
    "encoder hidden, time step": {"baseline": (0.95, 0.98, 40), "guided": (1.0, 1.0, 2)},
}
COLUMNS = {
    "group_accuracy": "accuracy of the group's units",
    "full_accuracy": "accuracy of all units",
    "size": "units in the group",
}
FIRST = "encoder hidden, table"
_MARGIN, _SIZE_MARGIN = 0.05, 0.25


def _row(target: str, arm: str, column: str) -> Claim:
    published = float(PUBLISHED[target][arm][list(COLUMNS).index(column)])
    margin = max(1.0, _SIZE_MARGIN * published) if column == "size" else _MARGIN
    table = "table-3" if target.endswith("time step") else "table-2"
    return Claim(
        f"{table}-{_key(target)}-{arm}-{column.replace('_', '-')}",
        f"{target}, {arm} models: {COLUMNS[column]} {published:g}",
        published, "size", "groups", near(published, margin),
        lambda results: list(of_arm(results["groups"][column].sel(target=target), arm)),
    )  # fmt: skip


def _key(target: str) -> str:
    return target.replace(",", "").replace(" ", "-")


def _smaller(target: str) -> Claim:
    return Claim(
        f"guided-group-smaller-{_key(target)}",
        f"guided models need fewer units than baselines ({target})",
        float(PUBLISHED[target]["baseline"][2] - PUBLISHED[target]["guided"][2]), "direction", "groups", above(0.0),
        lambda results: _less(results["groups"]["size"].sel(target=target)),
    )  # fmt: skip


def _less(sizes: xr.DataArray) -> list[float]:
    return [-value for value in guided_less_baseline(sizes)]


def _by_rule(rule: str) -> Claim:
    return Claim(
        f"guided-group-smaller-{rule.replace(', ', '-')}",
        f"guided models need fewer units for the table in the encoder's state, under the rule: {rule}",
        None, "direction", "group-rules", above(0.0),
        lambda results: _less(results["group-rules"]["size"].sel(target=FIRST, rule=rule)),
    )  # fmt: skip


def _than_untrained(arm: str) -> Claim:
    def fewer(results: Results) -> list[float]:
        trained, untrained = (results[name]["size"].sel(target=FIRST) for name in ("groups", "untrained-groups"))
        return list(of_arm(untrained, arm) - of_arm(trained, arm))

    text = f"{arm} models need fewer units for the table than the same models before training"
    return Claim(f"{arm}-group-smaller-than-untrained", text, None, "direction", "groups", above(0.0), fewer)


def _guided(results: Results, column: str) -> list[float]:
    return list(of_arm(results["groups"][column].sel(target=FIRST), "guided"))


CLAIMS = (
    *(_smaller(target) for target in TARGETS),
    *(_row(target, arm, column) for target in TARGETS for arm in ("baseline", "guided") for column in COLUMNS),
    *(_than_untrained(arm) for arm in ("guided", "baseline")),
    Claim(
        "group-better-than-random-units",
        "guided groups predict the table better than as many random units",
        None, "direction", "groups", above(0.0),
        lambda results: list(np.subtract(_guided(results, "group_accuracy"), _guided(results, "random_accuracy"))),
    ),
    Claim(
        "group-among-strongest",
        "units of guided groups are among the 5 % strongest units (encoder's state, table)",
        0.93, "size", "groups", near(0.93, 0.07),
        lambda results: _guided(results, "among_strongest"),
    ),
    Claim(
        "group-among-strongest-above-chance",
        "units of guided groups are among the 5 % strongest units more often than chance (.05)",
        0.93, "direction", "groups", above(0.05),
        lambda results: _guided(results, "among_strongest"),
    ),
    Claim(
        "group-found-by-shap",
        "more than half of a guided group is found again by SHAP values (footnote 5)",
        None, "direction", "groups", above(0.5),
        lambda results: _guided(results, "found_by_shap"),
    ),
    *(_by_rule(rule) for rule in RULES),
)  # fmt: skip
