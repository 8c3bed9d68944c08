"""A member trained in a population is the same member trained alone, whatever the route: float64, because in float32
greedy feedback turns a last bit into another symbol."""

from __future__ import annotations

import pytest
import torch

from benchmarks import plain_seq2seq
from partwise.models.seq2seq import Seq2Seq
from partwise.population import Member, Population
from partwise.tasks import lookup_tables
from partwise.training.adam import MemberAdam
from partwise.training.rows import data
from partwise.training.rows.step import TrainingStep
from tests.plain import plain_copy, plain_parameters

MEMBERS = 10
GUIDANCE = [float(i % 2) for i in range(MEMBERS)]
CLOSE = {"rtol": 1e-9, "atol": 1e-11}
AFTER_ADAM = {"rtol": 1e-6, "atol": 1e-8}  # Adam divides by the size of the gradient, rounding included: one step is 1e-3
WITHOUT_GRADIENT = "energy.bias"  # softmax does not see it: its gradient is rounding alone, which Adam blows up to full steps


def population(members: range, cell: str = "gru", scheme: str = "pytorch", **sizes: object) -> Population:
    architecture = Seq2Seq(source_words=19, target_words=12, encoder_embedding=5, hidden=12, cell=cell, **sizes)
    made = Population.initial(architecture, [Member(f"m{i}", i) for i in members], [scheme] * len(members))
    return made.to(dtype=torch.float64)


def trained(
    models: Population, steps: int, batch_size: int, forcing: float = 0.0, frozen: torch.Tensor | None = None
) -> Population:
    """Some steps, each member on its own order of its own split."""
    seeds = [member.seed for member in models.members]
    rows = data.stack([TASKS[seed] for seed in seeds], "train")
    optimiser = MemberAdam(models.store, torch.zeros_like(models.store), 0.001, 5.0, frozen)
    guidance = torch.tensor([GUIDANCE[seed] for seed in seeds], dtype=torch.float64)
    step = TrainingStep(models, rows, guidance, optimiser)
    order = torch.from_numpy(data.order(seeds, rows.source.shape[1], batch_size, 1))
    forced = torch.from_numpy(data.forcing(seeds, [forcing] * len(seeds), len(order), 1))
    for number in range(steps):
        step(order[number % len(order)], forced[number % len(order)])
    return models


TASKS = {seed: lookup_tables.generate(seed=seed) for seed in range(MEMBERS)}


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize(("batch_size", "forcing"), [(1, 0.0), (7, 0.5)])
def test_a_member_among_ten_equals_the_member_alone(cell: str, batch_size: int, forcing: float) -> None:
    together = trained(population(range(MEMBERS), cell), 40, batch_size, forcing)
    for i in (0, 3, 8):
        alone = trained(population(range(i, i + 1), cell), 40, batch_size, forcing)
        for name, values in together.parameters.items():
            if not name.endswith(WITHOUT_GRADIENT):
                torch.testing.assert_close(values[i], alone.parameters[name][0], msg=name, **AFTER_ADAM)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("scheme", ["pytorch", "uniform"])
def test_a_member_equals_fused_modules_under_autograd(cell: str, scheme: str) -> None:
    """The independent model: nn.GRU / nn.LSTM, cross_entropy, clip_grad_norm_, torch's own Adam, one row at a time."""
    start = population(range(MEMBERS), cell, scheme)
    plain = {i: plain_copy(start, f"m{i}") for i in (2, 5)}
    together = trained(start, 40, 1)
    for i, model in plain.items():
        optimiser = torch.optim.Adam(model.parameters(), lr=0.001)
        rows = data.stack([TASKS[i]], "train")
        for (index,) in data.order([i], 232, 1, 1)[:40, 0]:
            source = rows.source[0, index, : rows.source_length[0, index]]
            target = rows.target[0, index, : rows.target_length[0, index]]
            plain_seq2seq.step(model, optimiser, source[None], target[None], GUIDANCE[i])
        for name, values in plain_parameters(together, f"m{i}").items():
            if name != WITHOUT_GRADIENT:
                torch.testing.assert_close(model.state_dict()[name], values, msg=name, **AFTER_ADAM)


@pytest.mark.parametrize("sizes", [{}, {"full_focus": False}, {"full_focus": False, "attention": "post-rnn"}, {"cell": "lstm"}])
def test_postponed_gradients_equal_vmap_of_autograd(sizes: dict[str, object]) -> None:
    """Route against route: one backward with collected weight gradients, and vmap(grad) of the open single model."""
    from partwise.layers.weights import PlainWeights, PostponedWeights
    from partwise.training.rows.objectives import guidance_loss, task_loss

    models = population(range(4), **sizes)
    rows = data.stack([TASKS[i] for i in range(4)], "train").take(torch.arange(20).view(4, 5))
    forced = torch.tensor([True, False, True, False])
    guidance = torch.tensor([0.0, 1.0, 0.3, 2.0], dtype=torch.float64)

    def loss_of(weights, rows, guidance, forced):  # type: ignore[no-untyped-def]
        out = models.architecture.forward(
            weights, rows.source, rows.source_length, rows.steps, rows.target, forced.unsqueeze(-1)
        )
        guided = guidance_loss(out.attention, rows.alignment, rows.counts)
        return task_loss(out.logits, rows.target, rows.counts) + guidance * guided

    gradients = torch.full_like(models.store, torch.nan)
    weights = PostponedWeights(models.parameters, models.layout.views(gradients))
    loss_of(weights, rows, guidance, forced).sum().backward()
    weights.collect()
    collected = models.layout.views(gradients)

    fields = {name: getattr(rows, name) for name in rows.__dataclass_fields__}

    def loss_of_one(parameters, fields, guidance, forced):  # type: ignore[no-untyped-def]
        return loss_of(PlainWeights(parameters), type(rows)(**fields), guidance, forced)

    single = {name: values.clone() for name, values in models.parameters.items()}
    wanted = torch.func.vmap(torch.func.grad(loss_of_one))(single, fields, guidance, forced)
    for name, gradient in wanted.items():
        torch.testing.assert_close(collected[name], gradient, msg=name, **CLOSE)


def test_no_step_leaves_its_graph_behind() -> None:
    """A leak of one graph a step once filled the memory of a long run."""
    import gc

    trained(population(range(2)), 5, 1)
    gc.collect()
    left = [thing for thing in gc.get_objects() if type(thing).__name__ in ("_PostponedLinearBackward", "_FastGruBackward")]
    assert left == []
