"""The words of the number-agreement tasks of Lakretz et al. (2019), and the templates that put them together."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SINGULAR, PLURAL = "singular", "plural"
NUMBERS = (SINGULAR, PLURAL)

NOUNS = [
    "athlete", "aunt", "boy", "carpenter", "doctor", "farmer", "father", "friend", "girl", "guy",
    "kid", "lawyer", "man", "mother", "poet", "singer", "teacher", "uncle", "victim", "woman",
]  # fmt: skip
VERBS = [
    "admire", "approve", "avoid", "confuse", "criticize", "discourage", "encourage",
    "engage", "greet", "inspire", "know", "observe", "remember", "stimulate", "understand",
]  # fmt: skip
PLACE_NOUNS = ["bike", "car", "cat", "chair", "desk", "dog", "table", "tree", "truck", "window"]
NAMES = ["Barbara", "Bill", "Bob", "Jim", "John", "Linda", "Mary", "Mike", "Pat", "Sue"]
PREPOSITIONS = ["behind", "beside", "near"]
NAME_PREPOSITIONS = ["above", "behind", "beside", "near", "under"]
ADVERBS = ["certainly", "definitely", "probably"]
ADVERBS_BEFORE = ["indeed", "most", "now", "quite"]
FIRST_ADVERBS = ["gently", "openly", "overtly"]
SECOND_ADVERBS = ["carefully", "deliberately", "knowingly"]
_IRREGULAR = {"man": "men", "woman": "women"}

The, the, and_ = ("The",), ("the",), ("and",)


def noun(lemma: str, number: str) -> str:
    return lemma if number == SINGULAR else _IRREGULAR.get(lemma, f"{lemma}s")


def verb(lemma: str, number: str) -> str:
    return f"{lemma}s" if number == SINGULAR else lemma


@dataclass(frozen=True)
class Slot:
    """One place of a template: words to choose from, inflected by a number if it is a noun's."""

    lemmas: Sequence[str]
    role: str | None = None


@dataclass(frozen=True)
class Template:
    """The slots before the verb; `published` is how many items a condition of the published task has."""

    slots: tuple[Slot, ...]
    published: int

    @property
    def roles(self) -> tuple[str, ...]:
        return tuple(slot.role for slot in self.slots if slot.role)

    def conditions(self) -> list[str]:
        """singular, plural; or singular_singular, ... where there is another noun."""
        return ["_".join(numbers) for numbers in itertools.product(NUMBERS, repeat=len(self.roles))]

    def size(self) -> int:
        """How many items there are in each condition."""
        total = len(VERBS)
        for slot in self.slots:
            total *= len(slot.lemmas)
        return total

    def item(self, number: int, condition: str) -> tuple[tuple[str, ...], str, dict[str, int]]:
        """Item `number` of a condition: (words before the verb, the verb's lemma, where the nouns stand)."""
        numbers = dict(zip(self.roles, condition.split("_"), strict=True))
        number, which = divmod(number, len(VERBS))
        words: list[str] = []
        for slot in reversed(self.slots):
            number, place = divmod(number, len(slot.lemmas))
            lemma = slot.lemmas[place]
            words.append(noun(lemma, numbers[slot.role]) if slot.role else lemma)
        positions = {slot.role: place for place, slot in enumerate(self.slots) if slot.role}
        return tuple(reversed(words)), VERBS[which], positions

    def items(self, condition: str) -> Iterator[tuple[tuple[str, ...], str, dict[str, int]]]:
        return (self.item(number, condition) for number in range(self.size()))


_SUBJECT, _NOUN = Slot(NOUNS, "subject"), Slot(PLACE_NOUNS, "noun")
TEMPLATES = {
    "simple": Template((Slot(The), _SUBJECT), 300),
    "adv": Template((Slot(The), _SUBJECT, Slot(ADVERBS)), 900),
    "adv_adv": Template((Slot(The), _SUBJECT, Slot(ADVERBS_BEFORE), Slot(ADVERBS)), 900),
    "adv_conjunction": Template((Slot(The), _SUBJECT, Slot(FIRST_ADVERBS), Slot(and_), Slot(SECOND_ADVERBS)), 600),
    "namepp": Template((Slot(The), _SUBJECT, Slot(NAME_PREPOSITIONS), Slot(NAMES)), 900),
    "nounpp": Template((Slot(The), _SUBJECT, Slot(PREPOSITIONS), Slot(the), _NOUN), 600),
    "nounpp_adv": Template((Slot(The), _SUBJECT, Slot(PREPOSITIONS), Slot(the), _NOUN, Slot(ADVERBS)), 600),
}
