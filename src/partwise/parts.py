"""Parts of a model by name: a map (`encoder.input`), all below a name (`encoder`), or one gate of a recurrent cell's map.

`encoder.recurrent.update_gate` names the rows of the update gate in the encoder's recurrent map, bias included. A part
says what to freeze, to transplant or to look at, and is the same for every member of a population.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool

from partwise.errors import unknown
from partwise.layers import recurrence
from partwise.models._contract import Architecture
from partwise.population import Layout

Numbers = Bool[np.ndarray, " parameter"]


def mask_of(architecture: Architecture, parts: Sequence[str]) -> Numbers:
    """True at every number of a member's row that belongs to one of `parts`; an unknown part gets the nearest name."""
    layout = Layout(architecture.parameters())
    chosen = np.zeros(layout.width, bool)
    for part in parts:
        map_name, _, gate = part.rpartition(".")
        if gate in gates_of(architecture) and map_name.rpartition(".")[2] in ("input", "recurrent"):
            chosen |= _rows_of_gate(architecture, layout, map_name, gate)
        else:
            chosen |= layout.select([part])
    return chosen


def gates_of(architecture: Architecture) -> tuple[str, ...]:
    """The gates of the model's recurrent cells, in the order of their rows; none for a model without such cells."""
    cell = getattr(architecture, "cell", None)
    return recurrence.SITES[cell][: recurrence.GATES[cell]] if cell in recurrence.GATES else ()


def _rows_of_gate(architecture: Architecture, layout: Layout, map_name: str, gate: str) -> Numbers:
    names = [name for name in layout.places if name.rpartition(".")[0] == map_name]
    if not names:
        raise unknown("part of the model", map_name, {name.rpartition(".")[0] for name in layout.places})
    gates = gates_of(architecture)
    chosen = np.zeros(layout.width, bool)
    for name in names:
        rows = np.zeros(layout.shapes[name], bool)
        width = len(rows) // len(gates)
        start = gates.index(gate) * width
        rows[start : start + width] = True
        chosen[layout.places[name]] = rows.reshape(-1)
    return chosen
