"""Checkpoints: safetensors and sealed JSON, so that nothing is ever unpickled and damage is always noticed.

A checkpoint is a folder: `population.json` (architecture, members, vocabularies, hashes of the tensor files) and
`weights.safetensors` (every parameter by name, with the leading axis member). A run adds what it needs to go on.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from partwise import files, registry
from partwise.errors import DamagedFile, InputError
from partwise.population import Layout, Member, Population

FORMAT = 1
WEIGHTS = "weights"


def save(folder: Path, population: Population, more: Mapping[str, Mapping[str, Tensor]] | None = None, **facts: Any) -> None:
    """Write a checkpoint in one step: the folder is there complete, or not at all. `more` adds tensor files by name."""
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    groups = {WEIGHTS: population.own_parameters, **(more or {})}
    for name, tensors in groups.items():
        save_file({key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()}, part / f"{name}.safetensors")
    files.write_sealed(
        part / "population.json",
        {
            "format": FORMAT,
            "architecture": describe(population.architecture),
            "members": [dataclasses.asdict(member) for member in population.members],
            "words": population.words,
            "files": {name: files.sha256(part / f"{name}.safetensors") for name in groups},
            **facts,
        },
    )
    old = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    part.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def load(path: str | Path) -> Population:
    """A population from a checkpoint folder, for example `runs/x/checkpoints/last`. Every file is checked against its hash."""
    folder = Path(path)
    facts = read_facts(folder)
    architecture = build(facts["architecture"])
    members = [Member(**member) for member in facts["members"]]
    layout = Layout(architecture.parameters())
    tensors = read_tensors(folder, WEIGHTS, facts)
    if set(tensors) != set(layout.shapes):
        raise InputError(f"{folder}: parameters differ from the architecture's: {sorted(set(tensors) ^ set(layout.shapes))}")
    store = torch.zeros(len(members), layout.width, dtype=next(iter(tensors.values())).dtype)
    for name, view in layout.views(store).items():
        if tensors[name].shape != view.shape:
            raise InputError(f"{folder}: {name} has shape {tuple(tensors[name].shape)}, expected {tuple(view.shape)}")
        view.copy_(tensors[name])
    return Population(architecture, members, store, facts["words"])


def read_tensors(folder: Path, name: str, facts: Mapping[str, Any] | None = None) -> dict[str, Tensor]:
    """One tensor file of a checkpoint, checked against its hash before it is parsed."""
    facts = facts or read_facts(folder)
    path = folder / f"{name}.safetensors"
    if name not in facts["files"]:
        raise InputError(f"{folder}: holds no {name}; it has {', '.join(facts['files'])}")
    files.verify(path, facts["files"][name])
    try:
        return load_file(path)
    except SafetensorError as error:
        raise DamagedFile(f"{path}: cannot be read ({error})") from None


def read_facts(folder: Path) -> dict[str, Any]:
    """What a checkpoint says of itself, its seal checked."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such checkpoint; give a folder like runs/x/checkpoints/last")
    facts = files.read_sealed(folder / "population.json")
    if facts.get("format") != FORMAT:
        raise InputError(f"{folder}: checkpoint format {facts.get('format')}; this version reads format {FORMAT}")
    return facts


def describe(architecture: Any) -> dict[str, Any]:
    """An architecture as JSON: the key of its module, and its sizes."""
    key = type(architecture).__module__.rsplit(".", 1)[1].replace("_", "-")
    return {"model": key, **dataclasses.asdict(architecture)}


def build(described: Mapping[str, Any]) -> Any:
    """The architecture that `describe` described."""
    sizes = dict(described)
    module = registry.load("model", sizes.pop("model"))
    known = {field.name for field in dataclasses.fields(module.ARCHITECTURE)}
    if set(sizes) != known:
        raise InputError(f"architecture {described.get('model')}: fields differ: {sorted(set(sizes) ^ known)}")
    return module.ARCHITECTURE(**sizes)


def keep_weights_only(folder: Path) -> None:
    """Drop what only a running run needs from a checkpoint that stays for learning dynamics."""
    facts = read_facts(folder)
    extra = [name for name in facts["files"] if name != WEIGHTS]
    if not extra:
        return
    facts["files"] = {WEIGHTS: facts["files"][WEIGHTS]}
    files.write_sealed(folder / "population.json", facts)
    for name in extra:
        (folder / f"{name}.safetensors").unlink(missing_ok=True)
