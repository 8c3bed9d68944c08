"""Ctrl-C and kill -9 on the real command: a clear word, no process left behind, a folder that can be gone on with."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for left-over processes under /proc")


def start(out: Path) -> subprocess.Popen:
    """The quick preset with one seed in two worker processes, a session of its own, once both have begun."""
    command = [sys.executable, "-m", "partwise", "study", "attentive-guidance", "--seeds", "1", "--jobs", "2"]
    process = subprocess.Popen(
        [*command, "--device", "cpu", "--out", str(out)], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 120
    while len(list(out.glob("runs/*/checkpoints/last"))) < 2:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return process


def session_is_empty(session: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        alive = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                alive.append(stat.parent.name)
        if not alive:
            return True
        time.sleep(0.1)
    return False


def test_ctrl_c_says_how_to_go_on_and_leaves_nothing_running(tmp_path: Path) -> None:
    process = start(tmp_path / "out")
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "stopped; run the same command with --resume to go on from the last epoch" in said
    assert "Traceback" not in said
    assert session_is_empty(process.pid, 20)


def test_workers_do_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    process = start(tmp_path / "out")
    process.kill()
    process.communicate(timeout=60)
    assert session_is_empty(process.pid, 20)


def test_a_killed_worker_is_reported_in_one_line(tmp_path: Path) -> None:
    process = start(tmp_path / "out")
    locks = {str(path.resolve()) for path in (tmp_path / "out").glob("runs/*/lock")}
    victim = next(
        int(link.parent.parent.name) for link in Path("/proc").glob("[0-9]*/fd/*") if link.is_symlink() and reads(link) in locks
    )
    os.kill(victim, signal.SIGKILL)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 1
    assert (
        "a worker process was killed from outside (is the machine out of memory?); run the same command with --resume" in said
    )
    assert "Traceback" not in said
    assert session_is_empty(process.pid, 20)


def reads(link: Path) -> str | None:
    try:
        return str(link.readlink())
    except OSError:
        return None
