"""Peers, run in a virtual environment of their own, in processes of their own. The scripts here know nothing of partwise.

`run(script, case)` gives what a script measured: seconds of every round, and the peak memory of its process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ENVIRONMENT = HERE.parents[1] / ".venv-peers"
REQUIREMENTS = HERE / "requirements.txt"


def python() -> Path:
    """The interpreter of the peers' environment, which is made when it is first asked for (torch and its like: minutes)."""
    mark, binary = ENVIRONMENT / ".complete", ENVIRONMENT / "bin" / "python"
    if not mark.is_file() or mark.read_text() != REQUIREMENTS.read_text():
        print("installing the peers into .venv-peers ...", file=sys.stderr, flush=True)
        venv.create(ENVIRONMENT, with_pip=True, clear=True)
        environment = {key: value for key, value in os.environ.items() if key != "PIP_CONSTRAINT"}
        # their own requirements name what they do not need to run (and versions that no longer install)
        install = [str(binary), "-m", "pip", "install", "--quiet", "--no-deps", "--requirement", str(REQUIREMENTS)]
        subprocess.run(install, check=True, env=environment)
        mark.write_text(REQUIREMENTS.read_text())
    return binary


def run(script: str, case: Path, *words: str, ours: bool = False) -> dict[str, Any]:
    """Run one script on one case, on one thread; `ours` runs it in this environment."""
    binary = Path(sys.executable) if ours else python()
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    command = [str(binary), str(HERE / f"{script}.py"), str(case), *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise RuntimeError(f"{script} failed:\n{done.stderr[-2000:]}")
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured
