"""Ways to decompose, by name. "Contextual decomposition" is a family: results carry the name of the member that made them.

Every member splits a gate's activation into what the phrase, the other words and the biases contribute, multiplies gates with
what they gate (their source: the candidate, or the old cell), and says which of the products count as the phrase's.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace

from partwise.errors import InputError, unknown

ACTIVATIONS = ("bias-first", "shapley", "shapley-zero")
BIAS_PRODUCTS = ("inside", "inside-but-last", "always", "never")
SIDES = ("irrelevant", "relevant")
INTERACTIONS = tuple(f"{gate}-{source}" for gate, source in itertools.product(("rel", "irrel", "b"), repeat=2))[:-1]


@dataclass(frozen=True)
class Variant:
    """One way to decompose.

    `activation`: how sigma(rel + irrel + b) is split. bias-first: the bias is added before anything else, the two orders of the
    other two averaged (Murdoch et al. 2018). shapley: all orders averaged, f(0) given to the bias. shapley-zero: the same
    with f(0) taken as 0, as the published code of generalised decomposition does: there a phrase that contributes
    nothing still gets a share of sigma(0) = .5.
    `interactions`: products gate-source that count as relevant, e.g. `rel-b`, a relevant gate times a source's bias part.
    `bias_product`: where the product of two bias parts counts as relevant.
    `output_gate`: whether the output gate is decomposed, too, or multiplies both sides whole (LSTM only).
    `initial_state`: the side of the state before the first word.
    """

    name: str
    activation: str = "bias-first"
    interactions: frozenset[str] = frozenset({"rel-rel", "rel-b", "b-rel"})
    bias_product: str = "inside"
    output_gate: bool = False
    initial_state: str = "irrelevant"

    def __post_init__(self) -> None:
        faults = list(self._faults())
        if faults:
            raise InputError.of(f"variant {self.name}: {fault}" for fault in faults)

    def _faults(self) -> Iterable[str]:
        choices = {"activation": ACTIVATIONS, "bias_product": BIAS_PRODUCTS, "initial_state": SIDES}
        for field, allowed in choices.items():
            if getattr(self, field) not in allowed:
                yield str(unknown(field, getattr(self, field), allowed))
        yield from (str(unknown("interaction", name, INTERACTIONS)) for name in self.interactions - {*INTERACTIONS})

    def with_(self, **changes: object) -> Variant:
        """The same variant with some fields changed; its name then says which."""
        named = ", ".join(f"{field}={_text(value)}" for field, value in changes.items())
        return replace(self, name=f"{self.name} ({named})", **changes)  # type: ignore[arg-type]


MURDOCH = Variant("murdoch2018")
VARIANTS = {
    variant.name: variant
    for variant in (
        MURDOCH,
        Variant("murdoch2018-exclusive", bias_product="inside-but-last"),
        Variant(
            "generalised",
            activation="shapley",
            interactions=frozenset({"rel-rel", "rel-b", "b-rel", "irrel-rel"}),
            output_gate=True,
        ),
        Variant(
            "generalised-published",
            activation="shapley-zero",
            interactions=frozenset({"rel-rel", "rel-b", "b-rel", "irrel-rel"}),
            output_gate=True,
        ),
    )
}


def variant_of(given: str | Variant) -> Variant:
    if isinstance(given, Variant):
        return given
    if given not in VARIANTS:
        raise unknown("variant", given, [*VARIANTS, "shapley"])
    return VARIANTS[given]


def _text(value: object) -> str:
    return "+".join(sorted(value)) if isinstance(value, frozenset) else str(value)
