"""The one error for wrong input: what was given, what was found, what is allowed, and the next step."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """The caller gave something that cannot be used. The shell prints the message and exits with status 2."""

    @classmethod
    def of(cls, faults: Iterable[str]) -> InputError:
        """One error for all faults found, so that a reader mends them in one go."""
        return cls("; ".join(faults))


class DamagedFile(InputError):
    """A file that we wrote no longer holds what we wrote."""


class WorkerLost(RuntimeError):
    """A process that worked for us was killed from outside; what it had finished is on disk."""


def unknown(kind: str, given: str, allowed: Iterable[str]) -> InputError:
    """The error for a name that does not exist, with the nearest one and the whole list."""
    names = sorted(allowed)
    close = difflib.get_close_matches(given, names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return InputError(f"unknown {kind} {given!r}.{hint} Allowed: {', '.join(names) or 'none yet'}.")
