"""Checkpoints come back as they were, and damage of any kind is noticed before anything is used."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

import partwise as pw
from partwise.errors import DamagedFile, InputError
from partwise.models.seq2seq import Seq2Seq
from partwise.population import Member, Population
from partwise.training import checkpoint


@pytest.fixture
def population() -> Population:
    architecture = Seq2Seq(source_words=9, target_words=8, hidden=6, encoder_embedding=3)
    members = [Member("a", 0, {"arm": "guided"}), Member("b", 1, {"arm": "baseline"})]
    return Population.initial(architecture, members, ["uniform", "pytorch"], {"source": ("x", "y"), "target": ("z",)})


def test_load_gives_back_what_was_saved(population: Population, tmp_path: Path) -> None:
    checkpoint.save(tmp_path / "one", population)
    loaded = pw.load(tmp_path / "one")
    assert torch.equal(loaded.store, population.store)
    assert (loaded.architecture, loaded.members, loaded.words) == (
        population.architecture,
        population.members,
        population.words,
    )
    assert not list(tmp_path.glob(".*.part"))


@pytest.mark.parametrize("name", ["weights.safetensors", "population.json"])
def test_every_flipped_bit_is_noticed(population: Population, tmp_path: Path, name: str) -> None:
    checkpoint.save(tmp_path / "one", population)
    path = tmp_path / "one" / name
    whole = path.read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 60)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        if name.endswith(".json") and json_equal(whole, bytes(damaged)):
            continue  # white space
        with pytest.raises(InputError, match=r"damaged|holds no|format"):
            pw.load(tmp_path / "one")
    path.write_bytes(whole)
    pw.load(tmp_path / "one")


def json_equal(one: bytes, other: bytes) -> bool:
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:
        return False


@pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
def test_a_truncated_file_is_noticed(population: Population, tmp_path: Path, share: float) -> None:
    checkpoint.save(tmp_path / "one", population)
    path = tmp_path / "one" / "weights.safetensors"
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(DamagedFile, match=r"weights.safetensors: damaged \(cut short or changed"):
        pw.load(tmp_path / "one")


def test_a_missing_file_or_folder_is_named(population: Population, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such checkpoint; give a folder like"):
        pw.load(tmp_path / "none")
    checkpoint.save(tmp_path / "one", population)
    (tmp_path / "one" / "weights.safetensors").unlink()
    with pytest.raises(DamagedFile, match=r"weights.safetensors: missing"):
        pw.load(tmp_path / "one")
    shutil.rmtree(tmp_path / "one")
    (tmp_path / "one").mkdir()
    with pytest.raises(InputError, match="no such file"):
        pw.load(tmp_path / "one")
