"""Progress on long work: a bar with the time left in a terminal, a line now and then where the output is a file."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType

_LOOK_EVERY = 0.5
_LINE_EVERY = 15.0


class Progress:
    """Shows `done()` of `total` while the block runs; `done` is asked from a thread of its own."""

    def __init__(self, label: str, total: float, done: Callable[[], float]) -> None:
        self._label, self._total, self._ask = label, total, done
        self._over = threading.Event()
        show = self._bar if sys.stderr.isatty() else self._lines
        self._thread = threading.Thread(target=show, daemon=True)

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def _bar(self) -> None:
        from rich import progress
        from rich.console import Console

        columns = (
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.TaskProgressColumn(),
            progress.TimeElapsedColumn(),
            progress.TextColumn("left"),
            progress.TimeRemainingColumn(compact=True),
        )
        with progress.Progress(*columns, console=Console(stderr=True), speed_estimate_period=120) as bar:
            task = bar.add_task(self._label, total=self._total, completed=int(self._ask()))
            while not self._over.wait(_LOOK_EVERY):
                bar.update(task, completed=self._ask())
            bar.update(task, completed=self._ask())

    def _lines(self) -> None:
        start, first = time.monotonic(), self._ask()
        while not self._over.wait(_LINE_EVERY):
            spent, done = time.monotonic() - start, self._ask()
            left = (self._total - done) * spent / (done - first) if done > first else float("nan")
            known = f", about {left:.0f} s left" if left == left else ""
            print(f"{self._label}: {100 * done / self._total:.0f} % after {spent:.0f} s{known}", file=sys.stderr, flush=True)
