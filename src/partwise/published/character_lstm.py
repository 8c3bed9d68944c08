"""Character language models of ml5-data-and-models (MIT): two layers of TensorFlow's BasicLSTMCell, as raw numbers and a
manifest.

A cell's kernel is [x; h] by gates, the gates in the order i, j (the candidate), f, o, and 1 is added to the forget gate's
sum. As PyTorch has it: rows i, f, g, o, and the 1 in the bias.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from partwise.errors import InputError
from partwise.twins.wrapped import Wrapped, wrap

_FORGET_BIAS = 1.0
_ORDER = (0, 2, 1, 3)  # i, f, g, o among i, j, f, o
_LAYERS = 2


@dataclass(frozen=True)
class CharacterModel:
    """The wrapped model, and its characters by id."""

    model: Wrapped
    characters: tuple[str, ...]

    def ids(self, text: str) -> Int64[Tensor, "1 time"]:
        """One sentence; a character that the model does not know is an error."""
        known = {character: number for number, character in enumerate(self.characters)}
        strange = sorted(set(text) - set(known))
        if strange:
            raise InputError(f"the model does not know the characters {' '.join(map(repr, strange))}")
        return torch.tensor([[known[character] for character in text]])


def character_lstm(folder: str | Path) -> CharacterModel:
    """Read a folder with `manifest.json`, `vocab.json` and one file of little-endian float32 for every array."""
    path = Path(folder)
    manifest, vocabulary = _json(path / "manifest.json"), _json(path / "vocab.json")
    arrays = {name: _array(path, name, facts) for name, facts in manifest.items() if name != "Variable"}
    table = _find(arrays, "embedding", "")
    lstm = nn.LSTM(table.shape[1], _find(arrays, "cell_0", "kernel", "weights").shape[1] // 4, _LAYERS)
    with torch.no_grad():
        for layer in range(_LAYERS):
            _fill(
                lstm, layer, *(_find(arrays, f"cell_{layer}", *names) for names in (("kernel", "weights"), ("bias", "biases")))
            )
    weight = _find(arrays, "softmax_w", "")
    head = nn.Linear(*weight.shape)
    head.load_state_dict(
        {"weight": torch.from_numpy(weight.T.copy()), "bias": torch.from_numpy(_find(arrays, "softmax_b", ""))}
    )
    places = sorted((number, character) for character, number in vocabulary.items())
    if [number for number, _ in places] != list(range(len(table))):
        raise InputError(f"{path / 'vocab.json'}: {len(places)} characters for an embedding of {len(table)} rows")
    model = wrap(embedding=nn.Embedding.from_pretrained(torch.from_numpy(table)), recurrent=lstm, head=head)
    return CharacterModel(model, tuple(character for _, character in places))


def _fill(lstm: nn.LSTM, layer: int, kernel: Float[np.ndarray, "in gates"], bias: Float[np.ndarray, " gates"]) -> None:
    hidden = lstm.hidden_size
    width = len(kernel) - hidden
    blocks = [torch.from_numpy(kernel[:, gate * hidden : (gate + 1) * hidden].T.copy()) for gate in _ORDER]
    rows = torch.cat(blocks)
    sums = torch.cat([torch.from_numpy(bias[gate * hidden : (gate + 1) * hidden].copy()) for gate in _ORDER])
    sums[hidden : 2 * hidden] += _FORGET_BIAS
    getattr(lstm, f"weight_ih_l{layer}").copy_(rows[:, :width])
    getattr(lstm, f"weight_hh_l{layer}").copy_(rows[:, width:])
    getattr(lstm, f"bias_ih_l{layer}").copy_(sums)
    getattr(lstm, f"bias_hh_l{layer}").zero_()


def _json(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; give a folder of ml5's character LSTMs") from None
    except ValueError as error:
        raise InputError(f"{path}: is no JSON ({error})") from None
    return content


def _array(folder: Path, name: str, facts: dict[str, Any]) -> Float[np.ndarray, ...]:
    path, shape = folder / Path(str(facts["filename"])).name, [int(size) for size in facts["shape"]]
    if not path.is_file():
        raise InputError(f"{path}: missing; the manifest names it for {name}")
    values = np.fromfile(path, "<f4")
    if values.size != int(np.prod(shape)):
        raise InputError(f"{path}: holds {values.size} numbers, the manifest says {' x '.join(map(str, shape))}")
    return values.reshape(*shape).astype(np.float32)


def _find(arrays: dict[str, np.ndarray], part: str, *endings: str) -> Float[np.ndarray, ...]:
    """The array of a part; TensorFlow changed the names of kernels and biases once."""
    for name, values in arrays.items():
        if part in name and any(name.endswith(ending) for ending in endings):
            return values
    raise InputError(f"the manifest has no {part} {' or '.join(endings)}; it has {', '.join(arrays)}".replace("  ", " "))
