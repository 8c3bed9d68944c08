"""Partwise tells you whether a neural network understands the whole through its parts: whether it
composes, where inside, since when, and it proves it by intervening.

The public names, one by one. They are loaded when first used, so that `import partwise` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from partwise.errors import DamagedFile, InputError
    from partwise.layers.tap import Recorder, Replace
    from partwise.methods.attention_map import attention_map
    from partwise.models.seq2seq import Seq2Seq
    from partwise.population import Member, Population
    from partwise.training.checkpoint import load
    from partwise.training.config import MemberPlan, TrainingConfig
    from partwise.training.run import train
    from partwise.training.spec import RunSpec

_HOMES = {
    "DamagedFile": "errors",
    "InputError": "errors",
    "Member": "population",
    "MemberPlan": "training.config",
    "Population": "population",
    "Recorder": "layers.tap",
    "Replace": "layers.tap",
    "RunSpec": "training.spec",
    "Seq2Seq": "models.seq2seq",
    "TrainingConfig": "training.config",
    "attention_map": "methods.attention_map",
    "load": "training.checkpoint",
    "train": "training.run",
}

__all__ = [
    "DamagedFile",
    "InputError",
    "Member",
    "MemberPlan",
    "Population",
    "Recorder",
    "Replace",
    "RunSpec",
    "Seq2Seq",
    "TrainingConfig",
    "attention_map",
    "load",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'partwise' has no attribute {name!r}; it offers {', '.join(__all__)}")
    return getattr(importlib.import_module(f"partwise.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
