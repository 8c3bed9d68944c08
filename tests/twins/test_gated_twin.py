"""A twin computes what its module computes, in every way the module can be called, and opens it to causal interventions."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import partwise as pw
from partwise.errors import InputError
from partwise.layers.precision import exact_products

MODULES: dict[str, Callable[[], nn.Module]] = {
    "lstm": lambda: nn.LSTM(5, 7),
    "lstm, 3 layers, batch first": lambda: nn.LSTM(5, 7, 3, batch_first=True),
    "lstm, both ways, projected": lambda: nn.LSTM(5, 7, 2, bidirectional=True, proj_size=3),
    "lstm, no bias": lambda: nn.LSTM(5, 7, 2, bias=False),
    "lstm, dropout, evaluated": lambda: nn.LSTM(5, 7, 2, dropout=0.5).eval(),
    "gru": lambda: nn.GRU(5, 7),
    "gru, both ways, batch first": lambda: nn.GRU(5, 7, 2, batch_first=True, bidirectional=True),
    "gru, no bias": lambda: nn.GRU(5, 7, bias=False),
    "lstm cell": lambda: nn.LSTMCell(5, 7),
    "gru cell, no bias": lambda: nn.GRUCell(5, 7, bias=False),
}
SEQUENCES = [name for name in MODULES if "cell" not in name]


def made(name: str) -> Any:
    torch.manual_seed(1)
    return MODULES[name]().double()


def flat(said: Any) -> list[Tensor]:
    return [said] if isinstance(said, Tensor) else [tensor for part in said for tensor in flat(part)]


@pytest.mark.parametrize("name", MODULES)
def test_the_certificate_is_small_and_the_module_is_left_alone(name: str) -> None:
    module = made(name)
    before, random, training = copy.deepcopy(module.state_dict()), torch.get_rng_state(), module.training
    twin = pw.gated_twin(module)
    assert twin.certificate["float64"] <= 1e-14
    assert twin.certificate["float32"] <= 1e-6
    assert all(torch.equal(value, before[key]) for key, value in module.state_dict().items())
    assert torch.equal(torch.get_rng_state(), random)
    assert module.training == training
    assert not module._forward_hooks
    assert not module._forward_pre_hooks
    assert {id(value) for value in twin.parameters.values()} == {id(value) for value in module.parameters()}


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_twin_is_called_like_its_module(name: str) -> None:
    module = made(name)
    twin = pw.gated_twin(module)
    x = torch.randn(4, 3, 5, dtype=torch.float64)
    lead = module.num_layers * (1 + module.bidirectional)
    rows = len(x) if module.batch_first else x.shape[1]
    hidden = torch.randn(lead, rows, module.proj_size or 7, dtype=torch.float64)
    state: Any = (hidden, torch.randn(lead, rows, 7, dtype=torch.float64)) if isinstance(module, nn.LSTM) else hidden
    for arguments in ((x,), (x, state), (x[:, 0],)):
        theirs, ours = module(*arguments), twin(*arguments)
        assert [one.shape for one in flat(ours)] == [one.shape for one in flat(theirs)]
        for one, other in zip(flat(ours), flat(theirs), strict=True):
            assert torch.allclose(one, other, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", SEQUENCES)
@pytest.mark.parametrize("lengths", [(4, 2, 1), (1, 4, 2)])
def test_packed_sentences(name: str, lengths: tuple[int, ...]) -> None:
    module = made(name)
    x = torch.randn(3, 4, 5, dtype=torch.float64)
    packed = pack_padded_sequence(x, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    (theirs, their_last), (ours, our_last) = module(packed), pw.gated_twin(module)(packed)
    assert torch.equal(ours.batch_sizes, theirs.batch_sizes)
    assert torch.allclose(pad_packed_sequence(ours)[0], pad_packed_sequence(theirs)[0], rtol=0, atol=1e-14)
    for one, other in zip(flat(our_last), flat(their_last), strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-14)


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("name", ["lstm cell", "gru cell, no bias"])
def test_cells(name: str, batched: bool) -> None:
    module = made(name)
    x, h, c = (torch.randn(*(3,) * batched, size, dtype=torch.float64) for size in (5, 7, 7))
    state = (h, c) if isinstance(module, nn.LSTMCell) else h
    for arguments in ((x,), (x, state)):
        for one, other in zip(flat(pw.gated_twin(module)(*arguments)), flat(module(*arguments)), strict=True):
            assert one.shape == other.shape
            assert torch.allclose(one, other, rtol=0, atol=1e-14)


def test_training_the_module_trains_the_twin() -> None:
    module = made("lstm")
    twin, x = pw.gated_twin(module), torch.randn(4, 3, 5, dtype=torch.float64)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(1.5)
    assert torch.allclose(twin(x)[0], module(x)[0], rtol=0, atol=1e-14)


@pytest.mark.parametrize("site", ["cell", "hidden", "input_gate", "forget_gate", "candidate", "output_gate"])
def test_replacing_a_unit_changes_everything_after_it_as_a_hand_loop_does(site: str) -> None:
    module = made("lstm")
    x = torch.randn(8, 2, 5, dtype=torch.float64)

    def zeroed(value: Tensor) -> Tensor:
        return torch.cat((value[..., :4], torch.zeros_like(value[..., 4:5]), value[..., 5:]), dim=-1)

    found, _ = pw.gated_twin(module)(x, tap=pw.Replace(f"layer0.{site}", zeroed, step=3))
    h, c, outputs = torch.zeros(2, 7).double(), torch.zeros(2, 7).double(), []
    for t, word in enumerate(x):
        sums = word @ module.weight_ih_l0.T + module.bias_ih_l0 + h @ module.weight_hh_l0.T + module.bias_hh_l0
        i, f, g, o = sums.split(7, dim=-1)
        values = {"input_gate": i.sigmoid(), "forget_gate": f.sigmoid(), "candidate": g.tanh(), "output_gate": o.sigmoid()}
        if t == 3 and site in values:
            values[site] = zeroed(values[site])
        c = values["forget_gate"] * c + values["input_gate"] * values["candidate"]
        c = zeroed(c) if t == 3 and site == "cell" else c
        h = values["output_gate"] * c.tanh()
        h = zeroed(h) if t == 3 and site == "hidden" else h
        outputs.append(h)
    untouched = module(x)[0]
    assert torch.allclose(found, torch.stack(outputs), rtol=0, atol=1e-14)
    assert torch.allclose(found[:3], untouched[:3], rtol=0, atol=1e-14)
    assert ((found - untouched).abs().amax(dim=(1, 2))[3:] > 1e-4).all()  # and it lasts: the change is carried on


def test_every_gate_of_every_step_can_be_recorded() -> None:
    twin = pw.gated_twin(made("gru, both ways, batch first"))
    recorder = pw.Recorder(["layer1.reverse.update_gate", "layer1.reverse.hidden"])
    output, _ = twin(torch.randn(3, 6, 5, dtype=torch.float64), tap=recorder)
    assert recorder["layer1.reverse.update_gate"].shape == (3, 6, 7)
    assert torch.equal(recorder["layer1.reverse.hidden"].flip(-2), output[..., 7:])  # recorded in the order of reading
    with pytest.raises(InputError, match=r"unknown site 'layer0.cell'.*layer0.candidate, layer0.hidden"):
        twin(torch.randn(3, 6, 5, dtype=torch.float64), tap=pw.Recorder(["layer0.cell"]))


class Scaled(nn.LSTM):
    def forward(self, *arguments: Any) -> Any:
        output, (hidden, cell) = super().forward(*arguments)
        return output, (hidden * (1 + 1e-9), cell)


class Failing(nn.LSTM):
    def forward(self, *arguments: Any) -> Any:
        raise TypeError("only padded sentences, please")


def test_what_cannot_be_twinned_is_refused_with_the_reason() -> None:
    broken = nn.GRU(3, 4)
    with torch.no_grad():
        broken.weight_hh_l0[0, 0] = torch.nan
    hooked = nn.GRU(3, 4)
    hooked.register_forward_hook(lambda _module, _given, said: (said[0], said[1] * 2))
    cases: list[tuple[Any, str]] = [
        (nn.RNN(3, 4), r"nn.RNN, which has no gates to open; allowed: nn.LSTM, nn.GRU, nn.LSTMCell, nn.GRUCell"),
        (nn.Linear(3, 4), r"recurrent is a torch.nn.modules.linear.Linear; allowed"),
        ("lstm", r"recurrent is a builtins.str; allowed"),
        (nn.LSTM(3, 4, 2, dropout=0.1), r"training mode with dropout 0.1, .* call .eval\(\) on it first"),
        (broken, r"weights that are not finite: weight_hh_l0; mend or retrain"),
        (Scaled(3, 4), r"its twin differs by .* relative in torch.float64, allowed 1e-12"),
        (Failing(3, 4), r"failed on packed random sentences, .*TypeError: only padded sentences, please"),
        (hooked, r"is its forward overridden, or are there hooks on it"),
    ]
    for module, message in cases:
        with pytest.raises(InputError, match=message):
            pw.gated_twin(module)


def test_precision_is_exact_within_and_restored_afterwards() -> None:
    matmul: Any = torch.backends.cuda.matmul
    before = matmul.fp32_precision
    try:
        matmul.fp32_precision = "tf32"
        within = []

        def fail() -> None:
            with exact_products():
                within.append(matmul.fp32_precision)
                raise RuntimeError("stop")

        with pytest.raises(RuntimeError, match="stop"):
            fail()
        assert within == ["ieee"]
        assert matmul.fp32_precision == "tf32"
    finally:
        matmul.fp32_precision = before
