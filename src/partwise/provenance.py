"""Which code, versions, machine and data made an artefact: on everything that we write."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any

_LIBRARIES = ("torch", "numpy", "scipy", "xarray", "safetensors")


def collect(**more: Any) -> dict[str, Any]:
    """Provenance of something made now; `more` holds what only the caller knows (seed, device, data hashes)."""
    return {
        "partwise": importlib.metadata.version("partwise"),
        "commit": commit(),
        "python": platform.python_version(),
        **{library: importlib.metadata.version(library) for library in _LIBRARIES},
        "platform": platform.platform(),
        "processor": _processor(),
        "made": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        **more,
    }


def device(name: str) -> str:
    """A device with what it is: `cuda (NVIDIA H200, CUDA 13.0)`."""
    if name != "cuda":
        return name
    import torch

    return f"cuda ({torch.cuda.get_device_name()}, CUDA {torch.version.cuda})"


@lru_cache
def commit() -> str | None:
    """The commit of a source checkout, marked `dirty` where files were changed; None for an installed package.

    A copy without its history (a container, a cluster node) is told by the variable PARTWISE_COMMIT.
    """
    if told := os.environ.get("PARTWISE_COMMIT"):
        return told
    here = Path(__file__).resolve().parent
    if here.parent.name != "src":
        return None
    head = _git("rev-parse", "HEAD")
    return head and head + (" dirty" if _git("status", "--porcelain") else "")


def _git(*words: str) -> str | None:
    try:
        done = subprocess.run(("git", *words), cwd=Path(__file__).parent, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
