"""The study's parts: what is trained, and what is read off it."""

from __future__ import annotations

from pathlib import Path

from partwise.studies._contract import Results
from partwise.studies.long_range_rules import readings
from partwise.studies.long_range_rules.recipe import Recipe


def frequency(recipe: Recipe, out: Path) -> Results:
    """Figure 1: conduit lengths by numbers of rules; and what the corpora hold."""
    trained = recipe.train("frequency", out, recipe.grid())
    return {
        "frequency": readings.over_epochs(recipe, trained, readings.close_probability, "Figure 1"),
        "frequency-history": trained.history(),
        "frequency-corpora": readings.corpora(recipe, trained.population("last")),
    }


def interaction(recipe: Recipe, out: Path) -> Results:
    """Figure 2: the open symbol with more and more of the conduit, on the finished models of the longest conduit."""
    population = recipe.train("frequency", out, recipe.grid()).population("last")
    longest = max(recipe.preset.conduits_tried)
    few = population.select([member.name for member in population.members if member.labels["conduit"] == longest])
    return {"prefixes": readings.of_lengths(recipe, few, readings.prefixes)}


def predictability(recipe: Recipe, out: Path) -> Results:
    """Figure 3: the same rules through conduits that are seen elsewhere, or are not."""
    trained = recipe.train("predictability", out, recipe.predictability())
    return {
        "predictability": readings.over_epochs(recipe, trained, readings.close_probability, "Figure 3"),
        "predictability-history": trained.history(),
        "predictability-corpora": readings.corpora(recipe, trained.population("last")),
    }


def fault(recipe: Recipe, out: Path) -> Results:
    """The third arm: predictable conduits as the public generator writes them."""
    trained = recipe.train("fault", out, [recipe.fault()])
    return {
        "fault": readings.over_epochs(recipe, trained, readings.close_probability, "the reported fault"),
        "fault-corpora": readings.corpora(recipe, trained.population("last")),
    }


def flow(recipe: Recipe, out: Path) -> Results:
    """The gradient that comes back through seen and unseen conduits, over training."""
    trained = recipe.train("predictability", out, recipe.predictability())
    return {"flow": readings.over_epochs(recipe, trained, readings.flow, "gradient flow")}


def meaning(recipe: Recipe, out: Path) -> Results:
    """The decomposition of every finished model tried out by replacing words."""
    trained = {
        "frequency": recipe.train("frequency", out, recipe.grid()),
        "predictability": recipe.train("predictability", out, recipe.predictability()),
    }
    found = {
        f"meaning-{name}": readings.of_lengths(recipe, models.population("last"), readings.meaning)
        for name, models in trained.items()
    }
    return found


def optimiser(recipe: Recipe, out: Path) -> Results:
    """Momentum and weight decay, against the cell of the grid that has neither."""
    trained = recipe.train("optimiser", out, recipe.optimised())
    return {
        "optimiser": readings.over_epochs(recipe, trained, readings.close_probability, "momentum and decay"),
        "optimiser-history": trained.history(),
    }
