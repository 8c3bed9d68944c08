"""A folder is a registry: its members are found, described and loaded; a typo is answered with the nearest name."""

from __future__ import annotations

import pytest

from partwise import registry
from partwise.errors import InputError
from partwise.methods.attention_map import attention_map
from partwise.models._contract import Architecture
from partwise.studies._contract import Study
from partwise.tasks import lookup_tables
from partwise.tasks._contract import Corpus, MinimalPairs, Task
from partwise.training import checkpoint

EVERY = [(kind, key) for kind in registry.KINDS for key in registry.keys(kind)]


@pytest.mark.parametrize(("kind", "key"), EVERY)
def test_every_member_says_what_it_is(kind: str, key: str) -> None:
    assert len(registry.summary(kind, key)) > 20
    assert registry.load(kind, key).__doc__


def test_the_first_members_are_there() -> None:
    assert {
        ("task", "lookup-tables"),
        ("model", "seq2seq"),
        ("method", "attention-map"),
        ("study", "attentive-guidance"),
    } <= set(EVERY)


def test_a_typo_gets_the_nearest_name() -> None:
    with pytest.raises(
        InputError,
        match=r"unknown task 'lookup-table'. Did you mean 'lookup-tables'\? Allowed: long-range-rules, lookup-tables, number",
    ):
        registry.load("task", "lookup-table")
    with pytest.raises(InputError, match="unknown kind 'tusk'"):
        registry.keys("tusk")


@pytest.mark.parametrize("key", registry.keys("task"))
def test_tasks_offer_generate(key: str) -> None:
    module = registry.load("task", key)
    one, same, other = (module.generate(module.Options(), seed) for seed in (5, 5, 6))
    assert isinstance(one, Task | Corpus | MinimalPairs)
    assert one.fingerprint() == same.fingerprint() != other.fingerprint()


@pytest.mark.parametrize("key", registry.keys("model"))
def test_models_offer_an_architecture_that_json_can_hold(key: str) -> None:
    words = {"seq2seq": {"source_words": 5, "target_words": 6}, "language-model": {"words": 5}}
    architecture = registry.load("model", key).ARCHITECTURE(hidden=4, **words[key])
    assert isinstance(architecture, Architecture)
    assert checkpoint.build(checkpoint.describe(architecture)) == architecture
    assert len(set(architecture.sites())) == len(architecture.sites()) > 0


@pytest.mark.parametrize("key", registry.keys("study"))
def test_studies_offer_claims_with_rules(key: str) -> None:
    study = registry.load("study", key).STUDY
    assert isinstance(study, Study)
    assert study.name == key
    assert {"quick", "paper"} <= set(study.presets)
    ids = [claim.id for claim in study.claims]
    assert len(set(ids)) == len(ids)
    parts = {part.name for part in study.parts}
    assert all(claim.part in parts and claim.kind in ("direction", "size") for claim in study.claims)


def test_methods_leave_model_and_randomness_as_they_found_them() -> None:
    import torch

    from partwise.models.seq2seq import Seq2Seq
    from partwise.population import Member, Population
    from partwise.tasks._encoding import Vocabulary

    task = lookup_tables.generate()
    words = {"source": Vocabulary.source(task).words, "target": Vocabulary.target(task).words}
    architecture = Seq2Seq(source_words=19, target_words=12, hidden=8)
    population = Population.initial(architecture, [Member("a", 0), Member("b", 1)], ["pytorch"] * 2, words)
    before, random = population.store.clone(), torch.get_rng_state()
    rows = task.splits["new_compositions"][:2] + task.splits["longer_compositions_new"][:1]
    result = attention_map(population, rows)
    assert torch.equal(population.store, before)
    assert torch.equal(torch.get_rng_state(), random)
    assert dict(result.sizes) == {"member": 2, "sentence": 3, "target_time": 5, "source_time": 5}
    assert result.attention.sum("source_time").isel(sentence=2).values == pytest.approx(1.0)
    assert result.attention.isel(sentence=0).isnull().sum() == 2 * 9  # the shorter sentence: one step and one position less
    alone = attention_map(population.select(["b"]), rows[:1])
    assert alone.attention.values[0, 0] == pytest.approx(result.attention.values[1, 0, :4, :4])
