"""The open equations against PyTorch's fused modules: outputs and gradients, with padding and packed lengths."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from partwise.errors import InputError
from partwise.layers import recurrence
from partwise.layers.tap import Recorder, Replace, untouched
from partwise.layers.weights import PlainWeights
from partwise.models.seq2seq import Seq2Seq

LENGTHS = torch.tensor([6, 1, 4, 6])
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5}
NEEDS_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
FUSED = {"gru": nn.GRU, "lstm": nn.LSTM}


@torch.no_grad()
def relative_error(ours: Tensor, theirs: Tensor) -> float:
    return ((ours - theirs).norm() / theirs.norm().clamp_min(1e-30)).item()


def fused(cell: str, dtype: torch.dtype) -> tuple[nn.Module, Tensor]:
    torch.manual_seed(0)
    module = FUSED[cell](5, 7, batch_first=True).to(dtype)
    for parameter in module.parameters():
        nn.init.normal_(parameter)  # well into saturation
    return module, torch.randn(4, 6, 5, dtype=dtype)


def own_weights(module: nn.Module) -> PlainWeights:
    names = {"input": "ih", "recurrent": "hh"}
    parameters = {
        f"encoder.{ours}.{kind}": module.get_parameter(f"{kind}_{theirs}_l0")
        for ours, theirs in names.items()
        for kind in ("weight", "bias")
    }
    return PlainWeights(parameters)


def encode(cell: str, weights: PlainWeights, x: Tensor, lengths: Tensor, tap=untouched) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The model's own encoder, fed with vectors instead of words."""

    class Vectors(PlainWeights):
        def embedding(self, name: str, ids: Tensor) -> Tensor:
            return x

    model = Seq2Seq(source_words=1, target_words=5, encoder_embedding=5, hidden=7, cell=cell)
    readable = torch.arange(x.shape[1]) < lengths[:, None]
    return model._encode(Vectors(weights.parameters), torch.zeros(x.shape[:2], dtype=torch.int64), readable, tap)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("cell", FUSED)
def test_open_path_equals_the_fused_module_on_packed_sequences(cell: str, dtype: torch.dtype) -> None:
    module, x = fused(cell, dtype)
    packed = pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False)
    theirs, last = module(packed)
    theirs, _ = pad_packed_sequence(theirs, batch_first=True)
    states = [state[0] for state in (last if cell == "lstm" else (last,))]
    probe = torch.randn_like(theirs)

    ours, own_states = encode(cell, own_weights(module), x, LENGTHS)

    wanted = torch.autograd.grad((theirs * probe).sum() + sum(s.sum() for s in states), list(module.parameters()))
    found = torch.autograd.grad((ours * probe).sum() + sum(s.sum() for s in own_states), list(module.parameters()))
    pairs = [(ours, theirs), *zip(own_states, states, strict=True), *zip(found, wanted, strict=True)]
    for own, other in pairs:
        assert relative_error(own, other) <= TOLERANCE[dtype]


@pytest.mark.parametrize("cell", FUSED)
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=NEEDS_CUDA)])
def test_fast_step_equals_the_open_step(cell: str, device: str) -> None:
    torch.manual_seed(1)
    gates, double = recurrence.GATES[cell], {"dtype": torch.float64, "device": device, "requires_grad": True}
    inputs = [torch.randn(3, 4, 2 * gates * 6, **double)[..., ::2] for _ in range(2)]  # a slice, as the encoder gives
    state = torch.randn(3, 4, 6, **double)
    if cell == "gru":
        open_out, fast_out = (recurrence.gru_step(*inputs, state, "x", 0),), (recurrence.gru_step_fast(*inputs, state),)
    else:
        open_out, fast_out = recurrence.lstm_step(*inputs, state, "x", 0), recurrence.lstm_step_fast(*inputs, state)
    probes = [torch.randn_like(value) for value in open_out]
    for ours, theirs in zip(fast_out, open_out, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-13, atol=1e-14)
    gradients = [
        torch.autograd.grad(sum((v * p).sum() for v, p in zip(out, probes, strict=True)), [*inputs, state])
        for out in (fast_out, open_out)
    ]
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-14)


def test_replacing_a_gate_changes_everything_after_it_as_a_hand_written_loop_does() -> None:
    module, x = fused("gru", torch.float64)
    lengths = torch.full((4,), 6)
    closed = Replace("encoder.update_gate", torch.ones_like, step=3)  # 1 keeps the old state, in PyTorch's convention
    tapped, _ = encode("gru", own_weights(module), x, lengths, closed)

    hidden = torch.zeros(4, 7, dtype=torch.float64)
    expected = []
    for t in range(6):
        from_input = x[:, t] @ module.weight_ih_l0.T + module.bias_ih_l0
        from_state = hidden @ module.weight_hh_l0.T + module.bias_hh_l0
        r = torch.sigmoid(from_input[:, :7] + from_state[:, :7])
        z = torch.sigmoid(from_input[:, 7:14] + from_state[:, 7:14])
        n = torch.tanh(from_input[:, 14:] + r * from_state[:, 14:])
        hidden = hidden if t == 3 else (1 - z) * n + z * hidden
        expected.append(hidden)
    torch.testing.assert_close(tapped, torch.stack(expected, 1), rtol=1e-12, atol=1e-14)
    untapped, _ = encode("gru", own_weights(module), x, lengths)
    assert (tapped[:, :3] == untapped[:, :3]).all()
    assert ((tapped[:, 3:] - untapped[:, 3:]).abs().amax((0, 2)) > 1e-3).all()


def test_a_recorder_sees_every_gate_of_every_step() -> None:
    module, x = fused("lstm", torch.float64)
    recorder = Recorder([f"encoder.{site}" for site in recurrence.SITES["lstm"]])
    hidden, _ = encode("lstm", own_weights(module), x, torch.full((4,), 6), recorder)
    torch.testing.assert_close(recorder["encoder.hidden"], hidden)
    cell, output = recorder["encoder.cell"], recorder["encoder.output_gate"]
    torch.testing.assert_close(output * torch.tanh(cell), hidden)
    before = torch.cat((torch.zeros_like(cell[:, :1]), cell[:, :-1]), dim=1)
    made = recorder["encoder.forget_gate"] * before + recorder["encoder.input_gate"] * recorder["encoder.candidate"]
    torch.testing.assert_close(made, cell)


def test_a_tap_on_a_site_that_is_not_there_is_refused_and_a_recorder_starts_anew() -> None:
    model = Seq2Seq(source_words=5, target_words=6, hidden=4)
    weights = PlainWeights({name: torch.zeros(parameter.shape) for name, parameter in model.parameters().items()})
    source, length = torch.tensor([[2, 3]]), torch.tensor([2])
    for tap in (Recorder(["decoder.updat_gate"]), Replace("decoder.updat_gate", torch.ones_like)):
        with pytest.raises(InputError, match=r"unknown site 'decoder.updat_gate'. Did you mean 'decoder.update_gate'\?"):
            model.forward(weights, source, length, 2, tap=tap)
    recorder = Recorder(["decoder.hidden"])
    with pytest.raises(InputError, match=r"nothing was recorded at 'decoder.hidden'"):
        _ = recorder["decoder.hidden"]
    for _ in range(2):
        model.forward(weights, source, length, 2, tap=recorder)
    assert recorder["decoder.hidden"].shape == (1, 2, 4)
