"""Partwise tells you whether a neural network understands the whole through its parts: whether it
composes, where inside, since when, and it proves it by intervening.

The public names, one by one. They are loaded when first used, so that `import partwise` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from partwise.errors import DamagedFile, InputError
    from partwise.interventions.ablate import ablate
    from partwise.interventions.clamp import clamp
    from partwise.interventions.path_patching import patch_paths
    from partwise.interventions.phrase_replacement import phrase_replacement
    from partwise.interventions.prune import prune
    from partwise.interventions.transplant import transplant
    from partwise.layers.tap import Recorder, Replace
    from partwise.methods.activation_range import activation_range
    from partwise.methods.attention_map import attention_map
    from partwise.methods.connectivity import connectivity, gate_matrix
    from partwise.methods.contextual_decomposition import Variant, contextual_decomposition
    from partwise.methods.diagnostic_probe import diagnostic_probe
    from partwise.methods.functional_group import GroupRule, functional_group
    from partwise.methods.gate_saturation import gate_saturation
    from partwise.methods.gradient_flow import gradient_flow
    from partwise.methods.influence_paths import influence_paths
    from partwise.methods.influence_paths.quantity import log_probability
    from partwise.methods.influence_paths.walk import count_paths
    from partwise.methods.path_mass import path_mass
    from partwise.methods.path_sum import path_sum
    from partwise.methods.strongest_paths import strongest_paths
    from partwise.methods.unit_strength import unit_strength
    from partwise.methods.weight_map import weight_map
    from partwise.models.language_model import LanguageModel
    from partwise.models.seq2seq import Seq2Seq
    from partwise.population import Member, Population
    from partwise.reports.figures.path_diagram import path_diagram
    from partwise.training.checkpoint import load
    from partwise.training.config import MemberPlan, TrainingConfig
    from partwise.training.rows.spec import RunSpec
    from partwise.training.run import train
    from partwise.training.streams.spec import StreamConfig, StreamPlan, StreamSpec
    from partwise.twins.checked import gated_twin
    from partwise.twins.wrapped import wrap

_HOMES = {
    "DamagedFile": "errors",
    "GroupRule": "methods.functional_group",
    "InputError": "errors",
    "LanguageModel": "models.language_model",
    "Member": "population",
    "MemberPlan": "training.config",
    "Population": "population",
    "Recorder": "layers.tap",
    "Replace": "layers.tap",
    "RunSpec": "training.rows.spec",
    "Seq2Seq": "models.seq2seq",
    "StreamConfig": "training.streams.spec",
    "StreamPlan": "training.streams.spec",
    "StreamSpec": "training.streams.spec",
    "TrainingConfig": "training.config",
    "Variant": "methods.contextual_decomposition",
    "ablate": "interventions.ablate",
    "activation_range": "methods.activation_range",
    "attention_map": "methods.attention_map",
    "clamp": "interventions.clamp",
    "connectivity": "methods.connectivity",
    "contextual_decomposition": "methods.contextual_decomposition",
    "count_paths": "methods.influence_paths.walk",
    "diagnostic_probe": "methods.diagnostic_probe",
    "functional_group": "methods.functional_group",
    "gate_matrix": "methods.connectivity",
    "gate_saturation": "methods.gate_saturation",
    "gated_twin": "twins.checked",
    "gradient_flow": "methods.gradient_flow",
    "influence_paths": "methods.influence_paths",
    "load": "training.checkpoint",
    "log_probability": "methods.influence_paths.quantity",
    "patch_paths": "interventions.path_patching",
    "path_diagram": "reports.figures.path_diagram",
    "path_mass": "methods.path_mass",
    "path_sum": "methods.path_sum",
    "phrase_replacement": "interventions.phrase_replacement",
    "prune": "interventions.prune",
    "strongest_paths": "methods.strongest_paths",
    "train": "training.run",
    "transplant": "interventions.transplant",
    "unit_strength": "methods.unit_strength",
    "weight_map": "methods.weight_map",
    "wrap": "twins.wrapped",
}

__all__ = [
    "DamagedFile",
    "GroupRule",
    "InputError",
    "LanguageModel",
    "Member",
    "MemberPlan",
    "Population",
    "Recorder",
    "Replace",
    "RunSpec",
    "Seq2Seq",
    "StreamConfig",
    "StreamPlan",
    "StreamSpec",
    "TrainingConfig",
    "Variant",
    "ablate",
    "activation_range",
    "attention_map",
    "clamp",
    "connectivity",
    "contextual_decomposition",
    "count_paths",
    "diagnostic_probe",
    "functional_group",
    "gate_matrix",
    "gate_saturation",
    "gated_twin",
    "gradient_flow",
    "influence_paths",
    "load",
    "log_probability",
    "patch_paths",
    "path_diagram",
    "path_mass",
    "path_sum",
    "phrase_replacement",
    "prune",
    "strongest_paths",
    "train",
    "transplant",
    "unit_strength",
    "weight_map",
    "wrap",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'partwise' has no attribute {name!r}; it offers {', '.join(__all__)}")
    return getattr(importlib.import_module(f"partwise.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
