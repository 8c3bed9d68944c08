"""A folder is a registry: the name of a file is the key of what it offers.

Modules whose name starts with an underscore are helpers, not members. Nothing is imported until it is asked for.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import pkgutil
from pathlib import Path
from types import ModuleType

from partwise.errors import unknown

KINDS = ("task", "model", "method", "intervention", "study")
_FOLDERS = {kind: f"partwise.{kind[:-1]}ies" if kind == "study" else f"partwise.{kind}s" for kind in KINDS}


def keys(kind: str) -> list[str]:
    """The members of a folder, as the shell spells them (dashes for underscores)."""
    return sorted(_modules(kind))


def load(kind: str, key: str) -> ModuleType:
    """Import one member. A typo raises an `InputError` that names the nearest member."""
    modules = _modules(kind)
    if key not in modules:
        raise unknown(kind, key, modules)
    return importlib.import_module(modules[key])


def summary(kind: str, key: str) -> str:
    """The first line of a member's docstring, read without importing it (a list must not load torch)."""
    spec = importlib.util.find_spec(_modules(kind)[key])
    if spec is None or spec.origin is None:
        return ""
    text = ast.get_docstring(ast.parse(Path(spec.origin).read_text("utf-8"))) or ""
    return text.split("\n", 1)[0]


def _modules(kind: str) -> dict[str, str]:
    if kind not in _FOLDERS:
        raise unknown("kind", kind, KINDS)
    try:
        folder = importlib.import_module(_FOLDERS[kind])
    except ModuleNotFoundError:  # a folder that the house does not have yet
        return {}
    names = [module.name for module in pkgutil.iter_modules(folder.__path__) if not module.name.startswith("_")]
    return {name.replace("_", "-"): f"{folder.__name__}.{name}" for name in names}
