"""Verdicts and intervals by hand."""

from __future__ import annotations

import pytest

from partwise.intervals import t_interval
from partwise.studies._claims import Claim, above, at_most, near


def test_t_interval_by_hand() -> None:
    """n 5, mean .3, standard deviation sqrt(.025), t(.975, 4) = 2.7764 (from printed tables)."""
    low, high = t_interval([0.1, 0.2, 0.3, 0.4, 0.5])
    reach = 2.7764 * (0.025**0.5) / 5**0.5
    assert (low, high) == pytest.approx((0.3 - reach, 0.3 + reach), abs=1e-4)
    assert t_interval([1.0]) is None
    assert t_interval([1.0, 1.0]) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("rule", "interval", "verdict"),
    [
        (above(0.0), (0.1, 0.3), "replicated"),
        (above(0.0), (-0.1, 0.3), "inconclusive"),
        (above(0.0), (0.0, 0.3), "inconclusive"),  # the bound itself is not above it
        (above(0.0), (-0.3, 0.0), "not replicated"),
        (above(0.3), (0.1, 0.3), "not replicated"),
        (at_most(0.5), (0.1, 0.5), "replicated"),
        (at_most(0.5), (0.4, 0.6), "inconclusive"),
        (at_most(0.5), (0.51, 0.6), "not replicated"),
        (near(0.9, 0.1), (0.81, 0.99), "replicated"),
        (near(0.9, 0.1), (0.7, 0.95), "inconclusive"),
        (near(0.9, 0.1), (0.5, 0.79), "not replicated"),
        (near(1.0, 0.1), (1.0, 1.0), "replicated"),
        (near(0.9, 0.1), (0.8, 1.0), "replicated"),  # both ends belong to "within"
        (near(0.9, 0.1), (0.7, 0.8), "inconclusive"),
    ],
)
def test_verdicts(rule: object, interval: tuple[float, float], verdict: str) -> None:
    assert rule.verdict(interval) == verdict


def claim(kind: str, values: list[float]) -> Claim:
    return Claim("id", "text", 0.5, kind, "part", above(0.0), lambda _: values)


SURE = [0.4, 0.5, 0.6, 0.5, 0.5]


@pytest.mark.parametrize(
    ("preset", "kind", "values", "verdict", "n"),
    [
        ("paper", "direction", SURE, "replicated", 5),
        ("paper", "direction", SURE[:4], "inconclusive", 4),  # four models never replicate in preset paper
        ("quick", "direction", SURE[:3], "replicated", 3),
        ("quick", "size", SURE, "not run", 0),
        ("paper", "size", [-x for x in SURE], "not replicated", 5),
        ("paper", "direction", [*SURE, float("nan")], "replicated", 5),  # a member that diverged has no value
        ("quick", "direction", [0.5], "inconclusive", 1),
        ("quick", "direction", [0.5, 0.5], "inconclusive", 2),  # two equal values have an interval of no width
        ("quick", "direction", [float("nan")] * 3, "inconclusive", 0),  # every member diverged
        ("quick", "direction", [], "not run", 0),  # the preset leaves out what the claim is about
    ],
)
def test_judgements(preset: str, kind: str, values: list[float], verdict: str, n: int) -> None:
    row = claim(kind, values).judge("study", preset, {})
    assert (row["verdict"], row["n"]) == (verdict, n)
    assert {"id", "study", "text", "published", "measured", "interval", "n", "preset", "rule", "verdict"} <= set(row)


def test_a_part_that_was_not_run_has_claims_not_run() -> None:
    row = claim("direction", SURE).judge("study", "paper", None)
    assert (row["verdict"], row["measured"], row["interval"]) == ("not run", None, None)
