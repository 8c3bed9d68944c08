"""Imports point only backwards along the data flow; heavy libraries are not loaded by what only lists or parses."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import partwise

HOME = Path(partwise.__file__).parent
ORDER = (  # a room may import from rooms before it, and from its own
    "errors", "registry", "randomness", "intervals", "progress", "files", "provenance",
    "tasks", "layers", "models", "population", "parts", "training", "twins", "published",
    "methods", "interventions", "studies", "reports", "cli",
)  # fmt: skip


def room(path: Path) -> str:
    return path.relative_to(HOME).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [f"{node.module}.{alias.name}" if node.module == "partwise" else str(node.module) for alias in node.names]
        rooms |= {name.split(".")[1] for name in names if name.startswith("partwise.")}
    return rooms - {"__doc__"}


MODULES = sorted(path for path in HOME.rglob("*.py") if path.parent != HOME or path.name not in ("__init__.py", "__main__.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(HOME)))
def test_imports_point_backwards(path: Path) -> None:
    assert room(path) in ORDER, f"{path}: a room that the order of the house does not know"
    later = {name for name in imported_rooms(path) if ORDER.index(name) > ORDER.index(room(path))}
    assert not later, f"{path} imports from {later}, which come after it"


@pytest.mark.parametrize("command", ["import partwise", "from partwise import cli; cli.main(['list'])"])
def test_heavy_libraries_are_not_loaded_early(command: str) -> None:
    check = "; import sys; print([name for name in ('torch', 'xarray', 'matplotlib', 'joblib') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", command + check], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_table_of_contents_is_true() -> None:
    assert set(partwise.__all__) == set(partwise._HOMES)
    for name in partwise.__all__:
        assert getattr(partwise, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'nothing'; it offers DamagedFile, GroupRule, InputError"):
        _ = partwise.nothing
