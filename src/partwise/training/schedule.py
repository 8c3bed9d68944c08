"""Many runs, as many at a time as there are processor cores, with one progress bar over all of them.

Each run is a process of its own with one thread (measured: two such processes run at full speed each, two threads in
one process do not). A worker that loses its parent ends, so that nothing trains on unseen. On a GPU the runs follow
one another in this process.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from partwise import files
from partwise.errors import WorkerLost
from partwise.progress import Progress
from partwise.training._contract import Spec
from partwise.training.memory import keep_freed
from partwise.training.run import is_done, train

Item = TypeVar("Item")


def split_evenly(items: Sequence[Item], parts: int) -> list[tuple[Item, ...]]:
    """Deal items out to at most `parts` groups, one after the other: item i goes to group i mod parts."""
    parts = max(1, min(parts, len(items)))
    return [tuple(items[start::parts]) for start in range(parts)]


def train_all(specs: Mapping[Path, Spec], jobs: int, label: str) -> None:
    """Bring every run to its end. Runs that are done cost nothing; interrupted ones go on from their last epoch."""
    total = float(sum(spec.config.epochs * len(spec.plans) for spec in specs.values()))
    for folder in filter(is_done, specs):
        train(specs[folder], folder)  # nothing to train; but it must be the run that is meant
    waiting = {folder: spec for folder, spec in specs.items() if not is_done(folder)}
    with Progress(label, total, lambda: _done(specs)):
        if jobs == 1 or len(waiting) <= 1 or any(spec.device != "cpu" for spec in waiting.values()):
            for folder, spec in waiting.items():
                _train(spec, folder)
        else:
            _train_in_workers(waiting, jobs)


def _train_in_workers(waiting: Mapping[Path, Spec], jobs: int) -> None:
    import joblib
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    calls = (joblib.delayed(_train_in_worker)(spec, folder, os.getpid()) for folder, spec in waiting.items())
    try:
        with joblib.parallel_config(backend="loky", n_jobs=min(jobs, len(waiting)), inner_max_num_threads=1):
            joblib.Parallel(batch_size=1)(calls)
    except TerminatedWorkerError:
        raise WorkerLost("a worker process was killed from outside (is the machine out of memory?)") from None


def _train(spec: Spec, folder: Path) -> None:
    """One thread, wherever it runs: the number of threads decides the last bits of a product."""
    import torch

    keep_freed()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        train(spec, folder, lambda epochs: files.write_text(folder / "progress", f"{epochs:.3f}"))
    finally:
        torch.set_num_threads(threads)


def _train_in_worker(spec: Spec, folder: Path, parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the parent, which ends its workers
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _train(spec, folder)


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)


def _done(specs: Mapping[Path, Spec]) -> float:
    """Member-epochs finished, read from what the runs write beside their checkpoints."""
    total = 0.0
    for folder, spec in specs.items():
        try:
            epochs = float((folder / "progress").read_text())
        except (OSError, ValueError):  # not begun; it is only what the bar shows
            epochs = 0.0
        total += (spec.config.epochs if is_done(folder) else epochs) * len(spec.plans)
    return total
