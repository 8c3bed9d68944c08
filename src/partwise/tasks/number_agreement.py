"""Number agreement (Lakretz et al. 2019): the verb after `The boy near the cars` is `greets`, not `greet`.

Seven tasks, each a template (`_agreement_lexicon`); every item is a beginning of a sentence with the right and the wrong
form of one verb. Generated from a seed with the published sizes (where a task has no more items than were published, all
of them), or read from the published files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from partwise.errors import InputError, unknown
from partwise.randomness import generator
from partwise.tasks._agreement_files import read_task
from partwise.tasks._agreement_lexicon import NUMBERS, TEMPLATES, Template, verb
from partwise.tasks._contract import MinimalPair, MinimalPairs


@dataclass(frozen=True, kw_only=True)
class Options:
    """`tasks` to generate; `items` a condition (default: as many as were published)."""

    tasks: tuple[str, ...] = tuple(TEMPLATES)
    items: int | None = None

    def __post_init__(self) -> None:
        faults = list(self._faults())
        if faults:
            raise InputError.of(faults)

    def _faults(self) -> Iterable[str]:
        yield from (str(unknown("number-agreement task", task, TEMPLATES)) for task in self.tasks if task not in TEMPLATES)
        if not self.tasks:
            yield f"tasks is empty; allowed: {', '.join(TEMPLATES)}"
        if self.items is not None and self.items < 1:
            yield f"items is {self.items}; it must be 1 or more"


def generate(options: Options | None = None, seed: int = 0) -> MinimalPairs:
    """Items drawn without repetition, in the order of the template."""
    options = options or Options()
    splits = {task: list(_of_task(task, TEMPLATES[task], options.items, seed)) for task in options.tasks}
    return MinimalPairs("number-agreement", splits, f"generated, seed {seed}")


def read(folder: Path) -> MinimalPairs:
    """The published files of a folder, `simple.txt` to `nounpp_adv.txt`: those that are there."""
    found: Mapping[str, Path] = {task: folder / f"{task}.txt" for task in TEMPLATES if (folder / f"{task}.txt").is_file()}
    if not found:
        raise InputError(f"{folder}: has none of the files {', '.join(f'{task}.txt' for task in TEMPLATES)}")
    splits = {task: read_task(path, TEMPLATES[task]) for task, path in found.items()}
    return MinimalPairs("number-agreement", splits, f"read from {folder.name}")


def _of_task(task: str, template: Template, items: int | None, seed: int) -> Iterable[MinimalPair]:
    count = min(items or template.published, template.size())
    for condition in template.conditions():
        drawn = generator(seed, "number agreement", task, condition).permutation(template.size())[:count]
        for number in sorted(drawn.tolist()):
            words, lemma, positions = template.item(number, condition)
            own, other = NUMBERS if condition.startswith(NUMBERS[0]) else NUMBERS[::-1]
            yield MinimalPair(words, verb(lemma, own), verb(lemma, other), condition, positions)
