"""Put a part of one trained model into another (Baan et al. 2019, section 5.1).

Member k of the hosts gets the part from member k of the donors. Hosts and donors share an architecture, so a part fits where it
comes from; nothing else moves. Train the result with the part `frozen` to see whether the rest can live with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from partwise.errors import InputError
from partwise.parts import mask_of
from partwise.population import Population


def transplant(hosts: Population, donors: Population, parts: Sequence[str] | Sequence[Sequence[str]]) -> Population:
    """New members: each host with `parts` of its donor. `parts` is one list for all members, or one list a member."""
    if hosts.architecture != donors.architecture:
        raise InputError(
            f"donors are {donors.architecture}, hosts {hosts.architecture}; a part fits only where sizes are equal"
        )
    if hosts.words != donors.words:
        raise InputError("donors and hosts read different vocabularies, so their embeddings and outputs do not fit each other")
    if len(hosts) != len(donors):
        raise InputError(
            f"{len(donors)} donors for {len(hosts)} hosts; give one donor a host (a member may stand in several places)"
        )
    if not parts:
        raise InputError("parts is empty; name at least one part to move, for example encoder.recurrent")
    lists = [[part for part in parts if isinstance(part, str)]] * len(hosts) if isinstance(parts[0], str) else list(parts)
    if len(lists) != len(hosts):
        raise InputError(f"{len(lists)} lists of parts for {len(hosts)} hosts; give one list for all, or one a host")
    moved = torch.from_numpy(np.stack([mask_of(hosts.architecture, one) for one in lists])).to(hosts.store.device)
    store = torch.where(moved, donors.store.to(hosts.store), hosts.store)
    return Population(hosts.architecture, hosts.members, store, hosts.words)
