"""The number-agreement tasks: published sizes, published sentences, and clear words about files that are no tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from partwise.errors import InputError
from partwise.tasks._agreement_lexicon import TEMPLATES
from partwise.tasks.number_agreement import Options, generate, read

SIZES = {  # conditions, items a condition, all that there are a condition
    "simple": (2, 300, 300), "adv": (2, 900, 900), "adv_adv": (2, 900, 3600), "adv_conjunction": (2, 600, 2700),
    "namepp": (2, 900, 15_000), "nounpp": (4, 600, 9000), "nounpp_adv": (4, 600, 27_000),
}  # fmt: skip


def test_sizes_are_the_published_ones() -> None:
    pairs = generate()
    assert set(pairs.splits) == set(SIZES)
    for task, (conditions, items, space) in SIZES.items():
        found = pairs.splits[task]
        names = TEMPLATES[task].conditions()
        per_condition = {name: [pair for pair in found if pair.condition == name] for name in names}
        assert len(names) == conditions
        for some in per_condition.values():
            assert len(some) == items == len({(pair.words, pair.right) for pair in some})
        every = [(words, lemma) for words, lemma, _ in TEMPLATES[task].items(TEMPLATES[task].conditions()[0])]
        assert TEMPLATES[task].size() == space == len(set(every))


def test_sentences_are_what_the_templates_say() -> None:
    pairs = generate(Options(tasks=("nounpp", "adv_conjunction")))
    by_words = {" ".join((*pair.words, pair.right)): pair for split in pairs.splits.values() for pair in split}
    every = {" ".join((*words, lemma)) for words, lemma, _ in TEMPLATES["nounpp"].items("plural_singular")}
    assert "The women beside the truck understand" in every
    for sentence, pair in by_words.items():
        subject = pair.words[pair.positions["subject"]]
        plural = pair.condition.startswith("plural")
        assert (subject in ("men", "women") or subject.endswith("s")) == plural, sentence
        assert pair.wrong == (f"{pair.right}s" if plural else pair.right.removesuffix("s"))
        if "noun" in pair.positions:
            assert pair.words[pair.positions["noun"]].endswith("s") == pair.condition.endswith("plural")
    assert generate(seed=3).fingerprint() == generate(seed=3).fingerprint() != generate(seed=4).fingerprint()


def test_every_published_sentence_can_be_made(data_dir: Path) -> None:
    folder = data_dir / "na_tasks"
    if not folder.is_dir():
        pytest.skip("published data not found: na_tasks")
    published = read(folder)
    prefixes = {
        "simple": 20,
        "adv": 60,
        "adv_adv": 237,
        "adv_conjunction": 177,
        "namepp": 607,
        "nounpp": 390,
        "nounpp_adv": 529,
    }
    for task, (conditions, items, _) in SIZES.items():
        assert len(published.splits[task]) == conditions * items
        for condition in TEMPLATES[task].conditions():
            own = [pair for pair in published.splits[task] if pair.condition == condition]
            possible = {(words, lemma) for words, lemma, _ in TEMPLATES[task].items(condition)}
            assert {(pair.words, min(pair.right, pair.wrong, key=len)) for pair in own} <= possible
            assert prefixes[task] - 25 <= len({pair.words for pair in own}) <= prefixes[task]
    generated = generate(Options(tasks=("simple", "adv")))
    for task in ("simple", "adv"):
        assert {(p.words, p.right, p.wrong, p.condition) for p in generated.splits[task]} == {
            (p.words, p.right, p.wrong, p.condition) for p in published.splits[task]
        }


GOOD = "The boy greets\tsingular\tcorrect\tid1\nThe boy greet\tsingular\twrong\tid1\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD.split("\n")[0] + "\n", "simple.txt: has 1 lines; each item needs two"),
        (GOOD.replace("wrong\tid1", "wrong\tid2"), "lines 1 and 2: are no pair; found correct id1, then wrong id2"),
        ("\n".join(GOOD.strip().split("\n")[::-1]), "are no pair; found wrong id1, then correct id1"),
        (
            GOOD.replace("boy greet\t", "boys greet\t"),
            "must differ in the last word and in nothing else; found 'The boy greets'",
        ),
        (GOOD.replace("\tid1\nThe", "\nThe"), "line 1: has 3 columns, expected 4: sentence, number, correct or wrong, item"),
        (GOOD.replace("The boy", "The nice boy"), "have 4 words, this task has 3"),
        (GOOD.replace("singular", "dual"), "number is 'dual'; allowed: singular, plural"),
        ("", "simple.txt: has 0 lines"),
    ],
)
def test_files_that_are_no_task_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "simple.txt").write_text(text)
    with pytest.raises(InputError, match=message):
        read(tmp_path)


def test_other_wrong_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has none of the files simple.txt, adv.txt"):
        read(tmp_path)
    (tmp_path / "simple.txt").write_bytes(b"The boy \xff")
    with pytest.raises(InputError, match=r"simple.txt: is not UTF-8 \(invalid start byte at byte 8\)"):
        read(tmp_path)
    (tmp_path / "simple.txt").write_text(GOOD)
    assert [pair.right for pair in read(tmp_path).splits["simple"]] == ["greets"]
    cases: list[tuple[dict[str, Any], str]] = [
        ({"tasks": ("nounp",)}, "unknown number-agreement task 'nounp'. Did you mean 'nounpp'"),
        ({"tasks": ()}, "tasks is empty"),
        ({"items": 0}, "items is 0; it must be 1 or more"),
    ]
    for options, message in cases:
        with pytest.raises(InputError, match=message):
            Options(**options)
