"""Language models trained on running text: two routes, one meaning; a member among others is the member alone."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr
from torch import nn

import partwise as pw
from partwise.errors import InputError
from partwise.layers.weights import PlainWeights
from partwise.models.language_model import LanguageModel
from partwise.population import Member, Population
from partwise.tasks import long_range_rules
from partwise.training import run
from partwise.training.sgd import MemberSgd
from partwise.training.streams import data
from partwise.training.streams.evaluate import text_loss
from partwise.training.streams.spec import StreamConfig, StreamPlan, StreamSpec
from partwise.training.streams.step import StreamStep
from tests import tiny_text

ROOT = Path(__file__).parents[3]
SIZES = [{}, {"cell": "gru"}, {"layers": 2}, {"layers": 2, "tied": True}, {"tied": True, "cell": "gru"}]


def population(members: range, **sizes: object) -> Population:
    architecture = LanguageModel(words=11, embedding=6, hidden=6, **sizes)  # type: ignore[arg-type]
    made = Population.initial(architecture, [Member(f"m{i}", i) for i in members], ["pytorch"] * len(members))
    return made.to(dtype=torch.float64)


def words(seed: int, count: int = 83) -> np.ndarray:
    return np.random.Generator(np.random.Philox(seed)).integers(11, size=count)


def trained(models: Population, *, stacked: bool, steps: int = 6, **optimiser: torch.Tensor) -> tuple[Population, torch.Tensor]:
    text = data.text([words(member.seed) for member in models.members], streams=3, window=5)
    rates = torch.tensor([0.5 + member.seed for member in models.members])
    sgd = MemberSgd(models.store, torch.zeros_like(models.store), rates, 0.25, **optimiser)
    step = StreamStep(models, sgd, 3, stacked=stacked)
    step.begin()
    for piece in list(text)[:steps]:
        step(piece)
    return models, step.total


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_both_routes_are_the_same_training(sizes: dict) -> None:
    settings = {"momentum": torch.tensor([0.0, 0.9, 0.5]), "weight_decay": torch.tensor([0.0, 0.0, 0.01])}
    (one, loss), (other, same_loss) = (
        trained(population(range(3), **sizes), stacked=stacked, **settings) for stacked in (True, False)
    )
    assert torch.allclose(one.store, other.store, rtol=0, atol=1e-12)
    assert torch.allclose(loss, same_loss, rtol=0, atol=1e-12)


@pytest.mark.parametrize("stacked", [True, False])
def test_a_member_among_others_is_the_member_alone(stacked: bool) -> None:
    together, _ = trained(population(range(4)), stacked=stacked)
    alone, _ = trained(population(range(2, 3)), stacked=stacked)
    assert torch.allclose(together.store[2], alone.store[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("decay", [0.0, 0.01])
def test_training_is_what_a_pytorch_user_writes(decay: float) -> None:
    """nn.LSTM, clip_grad_norm_, torch.optim.SGD, a state carried on, the last window shorter than the others."""
    models = population(range(1), layers=2)
    embedding, lstm, head = nn.Embedding(11, 6), nn.LSTM(6, 6, 2, batch_first=True), nn.Linear(6, 11)
    parts = nn.ModuleList([embedding, lstm, head]).double()
    with torch.no_grad():
        own = {name: value[0] for name, value in models.parameters.items()}
        embedding.weight.copy_(own["embedding.weight"])
        head.weight.copy_(own["output.weight"])
        head.bias.copy_(own["output.bias"])
        for layer in range(2):
            for ours, theirs in (("input", "ih"), ("recurrent", "hh")):
                for kind in ("weight", "bias"):
                    getattr(lstm, f"{kind}_{theirs}_l{layer}").copy_(own[f"layer{layer}.{ours}.{kind}"])
    optimiser = torch.optim.SGD(parts.parameters(), lr=0.5, momentum=0.9, weight_decay=decay)
    streams = torch.from_numpy(words(0)[:81].reshape(3, 27))
    state, losses = None, []
    for start in range(0, 26, 5):
        x, y = streams[:, start : start + 5], streams[:, start + 1 : start + 6]
        x = x[:, : y.shape[1]]
        out, state = lstm(embedding(x), state)
        state = tuple(part.detach() for part in state)
        loss = nn.functional.cross_entropy(head(out).flatten(0, 1), y.flatten())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parts.parameters(), 0.25)
        optimiser.step()
        losses.append(loss.item())
    assert len(losses) == 6
    ours, total = trained(
        models,
        stacked=True,
        momentum=torch.tensor([0.9], dtype=torch.float64),
        weight_decay=torch.tensor([decay], dtype=torch.float64),
    )
    assert float(total) == pytest.approx(sum(losses), abs=1e-9)
    assert torch.allclose(ours.parameters["layer1.recurrent.weight"][0], lstm.weight_hh_l1, rtol=0, atol=1e-9)
    assert torch.allclose(ours.parameters["embedding.weight"][0], embedding.weight, rtol=0, atol=1e-9)
    assert torch.allclose(ours.parameters["output.bias"][0], head.bias, rtol=0, atol=1e-9)


def test_the_loss_of_a_text_is_the_mean_over_all_its_words() -> None:
    models = population(range(2))
    text = data.text([words(5), words(6)], streams=3, window=7)
    by_hand = []
    for row, seed in enumerate((5, 6)):
        streams = torch.from_numpy(words(seed)[:81].reshape(3, 27))
        own = PlainWeights({name: value[row] for name, value in models.parameters.items()})
        logits = models.architecture.forward(own, streams[:, :-1]).logits  # in one window
        by_hand.append(float(nn.functional.cross_entropy(logits.flatten(0, 1), streams[:, 1:].flatten())))
    for stacked in (True, False):
        assert text_loss(models, text, stacked=stacked).tolist() == pytest.approx(by_hand, abs=1e-6)


def test_text_is_cut_into_streams_and_windows() -> None:
    text = data.text([np.arange(23)], streams=2, window=4)
    pieces = [piece[0].tolist() for piece in text]
    assert text.windows == 3
    assert pieces[0] == [[0, 1, 2, 3, 4], [11, 12, 13, 14, 15]]
    assert pieces[1][0] == [4, 5, 6, 7, 8]
    assert pieces[2] == [[8, 9, 10, -1, -1], [19, 20, 21, -1, -1]]
    ids, wanted = data.split_window(torch.tensor(pieces[2]))
    assert ids[0].tolist() == [8, 9, 10, 0]
    assert wanted[0].tolist() == [9, 10, -1, -1]


def test_frozen_parts_and_stopped_members_do_not_move() -> None:
    models = population(range(3))
    frozen = torch.zeros_like(models.store, dtype=torch.bool)
    frozen[1] = torch.from_numpy(models.layout.select(["layer0.input"]))
    before = models.store.clone()
    sgd = MemberSgd(models.store, torch.zeros_like(models.store), torch.ones(3), 0.25, frozen,
                    momentum=torch.full((3,), 0.9), weight_decay=torch.full((3,), 0.1))  # fmt: skip
    step = StreamStep(models, sgd, 3, stacked=True)
    text = data.text([words(member.seed) for member in models.members], streams=3, window=5)
    for number, piece in enumerate(text):
        if number == 2:
            models.parameters["output.bias"][2, 0] = torch.nan
            stopped = models.store[2].clone()
        step(piece)
    assert torch.equal(models.store[1][frozen[1]], before[1][frozen[1]])
    assert not torch.equal(models.store[1][~frozen[1]], before[1][~frozen[1]])
    assert sgd.alive.tolist() == [True, True, False]
    assert torch.equal(models.store[2].nan_to_num(7), stopped.nan_to_num(7))
    assert torch.isfinite(models.store[:2]).all()


def test_killed_and_resumed_a_run_ends_with_the_same_bits(tmp_path: Path) -> None:
    whole, broken, epochs = tmp_path / "whole", tmp_path / "broken", 12
    run.train(tiny_text.spec(epochs=epochs), whole)
    kills = 0
    while not run.is_done(broken):
        process = subprocess.Popen([sys.executable, "-m", "tests.tiny_text", str(broken), str(epochs)], cwd=ROOT)
        last = broken / "checkpoints" / "last"
        while process.poll() is None and not (last.is_symlink() and int(last.readlink().name[-4:]) >= 2 + 5 * kills):
            time.sleep(0.002)
        if kills < 2 and process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        assert process.wait(timeout=120) in (0, -signal.SIGKILL)
    assert kills == 2
    for weights in ("last", "selected", "epoch-0003"):
        one, other = (pw.load(folder / "checkpoints" / weights) for folder in (whole, broken))
        assert torch.equal(one.store, other.store), weights
        assert one.words["text"] == tuple(tiny_text.CORPUS.words)
    for one, other in zip(run.results(whole), run.results(broken), strict=True):
        xr.testing.assert_identical(one, other)
    history, final = run.results(whole)
    assert (history.train_loss.isel(epoch=-1) < history.train_loss.isel(epoch=1)).all()
    best = history.loss.sel(split="validation").isel(epoch=slice(1, None)).min("epoch").values
    assert final.loss.sel(weights="selected").values == pytest.approx(best)


def test_wrong_specifications_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    spec = tiny_text.spec()
    short = long_range_rules.generate(long_range_rules.Options(**tiny_text.OPTIONS | {"tokens": 700}))
    other = long_range_rules.generate(long_range_rules.Options(**tiny_text.OPTIONS | {"types": 21}))
    cases = [
        ({"corpora": spec.corpora[:1]}, "1 corpora for 2 members"),
        ({"plans": (spec.plans[0],) * 2}, "members need names of their own; found twice: plain"),
        ({"corpora": (spec.corpora[0], other)}, "found several vocabularies; the model knows 22 words, a corpus has 23"),
        ({"corpora": (spec.corpora[0], short)}, r"texts of equal length; train has \[700, 800\] words"),
        ({"config": StreamConfig(epochs=1, streams=150)}, "validation has 210 words; 150 streams of 2 need 300"),
    ]
    for changes, message in cases:
        with pytest.raises(InputError, match=message):
            run.train(tiny_text.spec(**changes), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(InputError, match="streams is 0; it must be above 0; window is -1"):
        StreamConfig(epochs=1, streams=0, window=-1)
    with pytest.raises(InputError, match=r"member a: learning_rate is -1.0; it must be above 0; .* momentum is 1.0"):
        StreamPlan(member=Member("a", 0), learning_rate=-1.0, momentum=1.0)
    assert isinstance(spec, StreamSpec)
