"""The strongest paths against the enumeration of all; and the bound they are found by."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import partwise as pw
from partwise.errors import InputError
from partwise.methods.influence_paths import moments
from partwise.methods.influence_paths.halves import Tangents
from partwise.methods.influence_paths.moments import Rest
from partwise.methods.influence_paths.walk import forwards
from partwise.methods.strongest_paths import _Beginnings
from partwise.models.language_model import LanguageModel
from partwise.population import Member, Population
from tests.methods.test_influence_paths import WORDS, model

pytestmark = pytest.mark.filterwarnings("ignore:completeness")


@pytest.mark.parametrize(("cell", "steps", "dtype"), [
    ("lstm", 4, torch.float64), ("gru", 5, torch.float64), ("lstm", 1, torch.float64), ("lstm", 5, torch.float32),
])  # fmt: skip
def test_they_are_the_strongest_of_all(cell: str, steps: int, dtype: torch.dtype) -> None:
    wrapped, ids = model(cell, dtype=dtype), torch.randint(WORDS, (3, steps), generator=torch.Generator().manual_seed(1))
    every = pw.influence_paths(wrapped, ids, 0, (2, 5), points=4, rule="gauss-legendre")
    k = min(15, int((np.abs(every.influence) > 0).sum(axis=1).min()))  # a path without influence is not named
    found = pw.strongest_paths(wrapped, ids, 0, (2, 5), points=4, k=k)
    assert found.proven.all()
    assert (found.error < 1e-5).all()
    scale = float(np.abs(every.influence).max())
    close = 1e-9 if dtype == torch.float64 else 1e-5
    for row in range(3):
        sizes = np.sort(np.abs(every.influence[row]))[::-1][:k]
        one = found.isel(sentence=row)
        assert np.abs(one.influence.values) == pytest.approx(sizes, abs=close * scale)
        named = every.data.influence.sel(sentence=row, path=one.label.values).values
        assert one.influence.values == pytest.approx(named, abs=close * scale)
        assert len(set(one.label.values)) == k


@pytest.mark.parametrize("most_rows", [0, 3, 128])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_energy_is_the_sum_of_squares_of_all_that_begin_alike(
    cell: str, most_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At one point, exactly; over points, no path exceeds the bound."""
    monkeypatch.setattr(moments, "_MOST_ROWS", most_rows)  # kept as rows, as a matrix, or as rows first
    wrapped, ids = model(cell), torch.tensor([[3, 0, 6]])
    for points in (1, 4):
        every = pw.influence_paths(wrapped, ids, 0, (2, 5), points=points)
        case = every.cases[0]
        with torch.no_grad():
            traced = case.trace()
            rest = Rest(traced, case.gradient(traced)[0])
            states = next(iter(forwards(case.graph, traced.tangent.unsqueeze(0), Tangents(traced))))
        by_label = every.data.influence.isel(sentence=0).to_series()
        for state, tangents in states.items():
            energies, bounds = rest.energy(state, tangents), rest.bound(state, tangents)
            for number, start in enumerate(_labels(every, state)):
                begun = by_label[[label for label in by_label.index if label.startswith(start + ">")]].values
                if points == 1:
                    assert energies[number].item() == pytest.approx((begun**2).sum(), rel=1e-9)
                assert np.abs(begun).max() <= bounds[number].item() * (1 + 1e-12)
                assert bounds[number].item() ** 2 < 10 * len(begun) * (begun**2).max() + 1e-12


def _labels(every: Any, state: Any) -> list[str]:
    from partwise.methods.influence_paths.graph import SOURCE
    from partwise.methods.influence_paths.labels import Begin

    return next(iter(forwards(every.graph, [SOURCE], Begin(every.graph))))[state]


def test_long_contexts_are_searched_without_being_enumerated() -> None:
    wrapped, ids = model("lstm"), torch.randint(WORDS, (1, 14), generator=torch.Generator().manual_seed(3))
    found = pw.strongest_paths(wrapped, ids, 0, (2, 5), points=3, k=5, dtype=torch.float64)
    assert found.proven.item()
    assert found.extended.item() < 20_000 < pw.count_paths(steps=14, layers=2)
    more = pw.strongest_paths(wrapped, ids, 0, (2, 5), points=3, k=10, dtype=torch.float64)
    assert more.influence.values[0, :5] == pytest.approx(found.influence.values[0], abs=1e-15)


def test_a_search_that_is_cut_short_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    wrapped, ids = model("lstm"), torch.randint(WORDS, (1, 5), generator=torch.Generator().manual_seed(1))
    every = np.abs(pw.influence_paths(wrapped, ids, 0, (2, 5), points=3, rule="gauss-legendre").influence[0])
    monkeypatch.setattr(_Beginnings, "pop", _few)
    found = pw.strongest_paths(wrapped, ids, 0, (2, 5), points=3, k=300, budget=36_000)
    assert not found.proven.item()
    left_out = np.sort(every)[::-1][int((~np.isnan(found.influence.values)).sum()) :]
    assert left_out.max() <= found.bound.item()


_right_pop = _Beginnings.pop


def _few(self: Any) -> Any:
    import partwise.methods.strongest_paths as room

    room._AT_ONCE, kept = 4, room._AT_ONCE
    try:
        return _right_pop(self)
    finally:
        room._AT_ONCE = kept


def test_members_and_wrong_input() -> None:
    models = Population.initial(
        LanguageModel(words=WORDS, embedding=5, hidden=6), [Member("a", 0), Member("b", 1)], ["pytorch"] * 2
    )
    found = pw.strongest_paths(models, torch.randint(WORDS, (2, 4)), 0, (2, 5), k=3)
    assert found.influence.dims == ("member", "sentence", "rank")
    wrapped, ids = model("lstm"), torch.zeros(1, 4, dtype=torch.int64)
    with pytest.raises(InputError, match="k is 0"):
        pw.strongest_paths(wrapped, ids, 0, (2, 5), k=0)
    with pytest.raises(
        InputError, match=r"too small for one sentence of 4 steps at 10 points; the smallest that would do is ([\d,]+)"
    ):
        pw.strongest_paths(wrapped, ids, 0, (2, 5), budget=1000)
    negative = (torch.zeros(1, 2, 3), torch.zeros(1, 3), [2.0, -1.0])
    with pytest.raises(InputError, match="inputs has negative weights, for which there is no bound"):
        pw.strongest_paths(wrapped, ids, 0, (2, 5), inputs=negative)


def faint(words: int, scale: float = 1.0) -> tuple[Any, torch.Tensor]:
    """A model as PyTorch draws it, whose influences over many words are far below what a square can hold in float32."""
    torch.manual_seed(0)
    embedding, lstm, head = torch.nn.Embedding(20, 8), torch.nn.LSTM(8, 8, 2), torch.nn.Linear(8, 20)
    with torch.no_grad():
        head.weight.mul_(scale)
    return pw.wrap(embedding=embedding, recurrent=lstm, head=head), torch.randint(20, (1, words))


@pytest.mark.parametrize(("words", "scale"), [(80, 1.0), (5, 1e-18), (5, 1e18)])
def test_influences_whose_squares_no_float_holds(words: int, scale: float) -> None:
    wrapped, ids = faint(words, scale)
    single, double = (pw.strongest_paths(wrapped, ids, 0, (2, 5), k=3, dtype=dtype) for dtype in (torch.float32, torch.float64))
    assert double.proven.item()
    assert single.proven.item()
    assert single.influence.values == pytest.approx(double.influence.values, rel=1e-3)
    assert np.abs(double.influence.values).max() not in (0.0, np.inf)
    masses = [pw.path_mass(wrapped, ids, 0, (2, 5), draws=400, dtype=dtype) for dtype in (torch.float32, torch.float64)]
    assert masses[0].absolute.item() == pytest.approx(masses[1].absolute.item(), rel=0.5)  # other draws, for rounding's sake


def test_influences_too_large_for_their_type_are_refused() -> None:
    wrapped = model("lstm", dtype=torch.float32)
    with torch.no_grad():
        wrapped.head.weight[2], wrapped.head.weight[5] = 3e38, -3e38
    with pytest.raises(InputError, match=r"the influences are too large for their type; pass dtype=torch.float64"):
        pw.strongest_paths(wrapped, torch.randint(WORDS, (1, 4)), 0, (2, 5))
