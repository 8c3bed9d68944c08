"""Random numbers without state: what is drawn depends on a seed and on what it is for, never on what was drawn before.

So a resumed run, a member trained alone and a member trained among others draw the same numbers, and nothing
has to be saved. Philox gives the same stream on every platform.
"""

from __future__ import annotations

import zlib

import numpy as np


def generator(seed: int, *purpose: str | int) -> np.random.Generator:
    """The generator for one purpose, for example `generator(seed, "data order", epoch)`."""
    words = [word if isinstance(word, int) else zlib.crc32(word.encode()) for word in purpose]
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, *words])))
