"""Published recurrent models, read as data: the same numbers as equations written out here give, and clear refusals."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from partwise.errors import InputError
from partwise.published.character_lstm import character_lstm
from partwise.published.letters_to_sounds import LETTERS, PHONEMES, letters_to_sounds

ROOT = Path(__file__).parents[2]
HIDDEN, WORDS = 5, 4


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tiny model in the published format."""
    random = np.random.Generator(np.random.Philox(0))
    arrays: dict[str, Any] = {
        "embedding": random.standard_normal((WORDS, HIDDEN)),
        "rnnlm/softmax_w": random.standard_normal((HIDDEN, WORDS)),
        "rnnlm/softmax_b": random.standard_normal(WORDS),
    }
    for layer in range(2):
        stem = f"rnnlm/multi_rnn_cell/cell_{layer}/basic_lstm_cell"
        arrays[f"{stem}/kernel"] = random.standard_normal((2 * HIDDEN, 4 * HIDDEN))
        arrays[f"{stem}/bias"] = random.standard_normal(4 * HIDDEN)
    manifest = {name: {"filename": name.replace("/", "_"), "shape": list(values.shape)} for name, values in arrays.items()}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest | {"Variable": {"filename": "Variable", "shape": []}}))
    (tmp_path / "vocab.json").write_text(json.dumps({"b": 1, "a": 0, " ": 3, "c": 2}))
    for name, values in arrays.items():
        values.astype("<f4").tofile(tmp_path / name.replace("/", "_"))
    return tmp_path


def by_tensorflow(folder: Path, ids: list[int]) -> np.ndarray:
    """BasicLSTMCell: sums = [x, h] kernel + bias, split into i, j, f, o; c = c sigma(f + 1) + sigma(i) tanh(j)."""

    def array(name: str, *shape: int) -> np.ndarray:
        return np.fromfile(folder / name, "<f4").reshape(shape).astype(float)

    xs = list(array("embedding", WORDS, HIDDEN)[ids])
    for layer in range(2):
        stem = f"rnnlm_multi_rnn_cell_cell_{layer}_basic_lstm_cell"
        kernel, bias = array(f"{stem}_kernel", 2 * HIDDEN, 4 * HIDDEN), array(f"{stem}_bias", 4 * HIDDEN)
        h, c, outputs = np.zeros(HIDDEN), np.zeros(HIDDEN), []
        for x in xs:
            i, j, f, o = np.split(np.concatenate((x, h)) @ kernel + bias, 4)
            c = c * sigmoid(f + 1) + sigmoid(i) * np.tanh(j)
            h = np.tanh(c) * sigmoid(o)
            outputs.append(h)
        xs = outputs
    return np.stack(xs) @ array("rnnlm_softmax_w", HIDDEN, WORDS) + array("rnnlm_softmax_b", WORDS)


def test_a_character_lstm_computes_what_tensorflow_does(folder: Path) -> None:
    known = character_lstm(folder)
    assert known.characters == ("a", "b", "c", " ")
    ids = known.ids("ab cab")
    assert known.model(ids)[0].detach().numpy() == pytest.approx(by_tensorflow(folder, ids[0].tolist()), abs=1e-5)


def test_real_character_lstms_know_english(data_dir: Path) -> None:
    """Under two and a half or three bits a character; the same letters shuffled cost them much more."""
    for name, bits in (("shakespeare", 2.5), ("charlotte_bronte", 3.0)):
        folder = data_dir / "rnn" / "charrnn" / name
        if not folder.is_dir():
            pytest.skip("published data not found: rnn/charrnn")
        known = character_lstm(folder)
        text = "the king is dead and all the people of the town are here to see him.\n"
        shuffled = "".join(np.random.Generator(np.random.Philox(0)).permutation(list(text)))
        costs = []
        for words in (text, shuffled):
            ids = known.ids(words)
            with torch.no_grad():
                said = known.model(ids)[0, :-1].log_softmax(-1)
            costs.append(-said.gather(1, ids[0, 1:, None]).mean().item() / np.log(2))
        assert costs[0] < bits
        assert costs[1] > costs[0] + 2


def test_the_example_runs_on_published_models(data_dir: Path) -> None:
    folder = data_dir / "rnn" / "charrnn" / "charlotte_bronte"
    if not folder.is_dir():
        pytest.skip("published data not found: rnn/charrnn")
    command = [sys.executable, "examples/paths_of_published_models.py", str(folder)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "'the q': 16 paths from the last character to 'u' over 'a', in all 9." in said
    assert "proved: True" in said


def checkpoint(path: Path) -> dict[str, np.ndarray]:
    random = np.random.Generator(np.random.Philox(1))
    shapes = {"fc_w": (74, HIDDEN), "fc_b": (74,)}
    for side, words in (("enc", len(LETTERS)), ("dec", len(PHONEMES))):
        shapes |= {f"{side}_emb": (words, HIDDEN), f"{side}_b_ih": (3 * HIDDEN,), f"{side}_b_hh": (3 * HIDDEN,)}
        shapes |= {f"{side}_w_ih": (3 * HIDDEN, HIDDEN), f"{side}_w_hh": (3 * HIDDEN, HIDDEN)}
    arrays = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return arrays


def test_letters_to_sounds_says_what_its_equations_say(tmp_path: Path) -> None:
    arrays = checkpoint(tmp_path / "checkpoint20.npz")

    def step(side: str, x: np.ndarray, h: np.ndarray) -> np.ndarray:
        from_x = x @ arrays[f"{side}_w_ih"].T + arrays[f"{side}_b_ih"]
        from_h = h @ arrays[f"{side}_w_hh"].T + arrays[f"{side}_b_hh"]
        r, z = np.split(sigmoid(from_x[: 2 * HIDDEN] + from_h[: 2 * HIDDEN]), 2)
        n = np.tanh(from_x[2 * HIDDEN :] + r * from_h[2 * HIDDEN :])
        return (1 - z) * n + z * h

    known = letters_to_sounds(tmp_path / "checkpoint20.npz")
    for word in ("cat", "zebra", "q"):
        h = np.zeros(HIDDEN)
        for letter in [*word, "</s>"]:
            h = step("enc", arrays["enc_emb"][LETTERS.index(letter)], h)
        read, expected, last = h, [], 2
        for _ in range(20):
            h = step("dec", arrays["dec_emb"][last], h)
            last = int((arrays["fc_w"] @ h + arrays["fc_b"]).argmax())
            if last == 3:
                break
            expected.append(PHONEMES[last])
        assert known.say(word) == expected
        quantity = known.first_sound("K", "S")(torch.from_numpy(read).float().view(1, 1, -1))
        first = arrays["fc_w"] @ step("dec", arrays["dec_emb"][2], read) + arrays["fc_b"]
        assert quantity.item() == pytest.approx(first[PHONEMES.index("K")] - first[PHONEMES.index("S")], abs=1e-4)
    assert len(PHONEMES) == 74


def test_what_cannot_be_read_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the model does not know the characters 'x' 'y'"):
        character_lstm(folder).ids("axby")
    with pytest.raises(InputError, match=r"manifest.json: no such file"):
        character_lstm(tmp_path / "nowhere")
    broken = tmp_path / "broken"
    shutil.copytree(folder, broken)
    (broken / "embedding").write_bytes((broken / "embedding").read_bytes()[:-4])
    with pytest.raises(InputError, match=r"embedding: holds 19 numbers, the manifest says 4 x 5"):
        character_lstm(broken)
    (broken / "embedding").unlink()
    with pytest.raises(InputError, match=r"embedding: missing; the manifest names it for embedding"):
        character_lstm(broken)
    (broken / "manifest.json").write_text("{")
    with pytest.raises(InputError, match=r"manifest.json: is no JSON"):
        character_lstm(broken)
    with pytest.raises(InputError, match=r"no such file; g2p-en 2.1.0 has it as g2p_en/checkpoint20.npz"):
        letters_to_sounds(tmp_path / "nothing.npz")
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(InputError, match=r"other.npz: is not the checkpoint of g2p-en 2.1.0"):
        letters_to_sounds(tmp_path / "other.npz")
    np.savez(tmp_path / "pickled.npz", enc_w_ih=np.array([{"code": 1}], dtype=object))
    with pytest.raises(InputError, match=r"pickled.npz: is not the checkpoint"):
        letters_to_sounds(tmp_path / "pickled.npz")
    checkpoint(tmp_path / "good.npz")
    with pytest.raises(InputError, match="word is 'Cat'; give lower-case letters a to z"):
        letters_to_sounds(tmp_path / "good.npz").say("Cat")
