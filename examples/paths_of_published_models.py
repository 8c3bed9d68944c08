"""Influence paths of models that nobody here trained: a character LSTM, and the GRU that turns letters into sounds.

Run it with `python examples/paths_of_published_models.py CHARACTER_LSTM_FOLDER [G2P_CHECKPOINT]`. The folder is one of
ml5-data-and-models/models/lstm (with manifest.json), the checkpoint g2p_en/checkpoint20.npz of the package g2p-en 2.1.0.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import partwise as pw
from partwise.published.character_lstm import character_lstm
from partwise.published.letters_to_sounds import letters_to_sounds


def characters(folder: Path) -> None:
    """Does `q` carry on to the vowel after it? All paths from it, three characters later."""
    known = character_lstm(folder)
    text = "the q"
    ids = known.ids(text)
    contrast = known.characters.index("u"), known.characters.index("a")
    found = pw.influence_paths(known.model, ids, len(text) - 1, contrast, points=50)
    print(f"{text!r}: {found.labels.size} paths from the last character to 'u' over 'a', in all {found.total.item():.2f}")
    print(f"paths sum to the influence up to {found.certificate.conservation:.0e}, it is the change up to "
          f"{found.certificate.completeness:.0e}")  # fmt: skip
    print(found.top(3).to_string(index=False))
    early = pw.strongest_paths(known.model, ids, 0, contrast, k=3)
    label, influence, proved = early.label.values[0, 0], early.influence.values[0, 0], bool(early.proven[0])
    print(f"from the first character, five steps back: strongest {label} ({influence:+.3f}), proved: {proved}")


def sounds(checkpoint: Path) -> None:
    """Why does `c` sound like K in cat and like S in city? Through which gates of the reading GRU the second letter decides."""
    known = letters_to_sounds(checkpoint)
    for word in ("cat", "city"):
        quantity = known.first_sound("K", "S")
        found = pw.strongest_paths(known.reader, known.ids(word), 1, quantity, k=2)
        label, influence = found.label.values[0, 0], found.influence.values[0, 0]
        print(f"{word} says {' '.join(known.say(word))}; {word[1]!r} speaks for K over S by {found.total.item():+.2f}, "
              f"most of all by {label} ({influence:+.2f})")  # fmt: skip


if __name__ == "__main__":
    warnings.filterwarnings("ignore", message="completeness")
    characters(Path(sys.argv[1]))
    if len(sys.argv) > 2:
        sounds(Path(sys.argv[2]))
