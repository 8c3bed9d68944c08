"""Writing so that a kill at any moment leaves either the old file or the new one, and reading so that damage is noticed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from partwise.errors import DamagedFile, InputError

if TYPE_CHECKING:
    import xarray as xr

SEAL = "seal"
_PATIENCE = 2.0  # seconds: the workers of a process that was just killed take a moment to notice


def write_text(path: Path, text: str) -> None:
    """Write beside the target, then move it into place in one step."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, "utf-8")
    part.replace(path)


def write_json(path: Path, content: Any) -> None:
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def write_sealed(path: Path, content: dict[str, Any]) -> None:
    """JSON with a hash of itself, for files that we read back and must be able to trust."""
    write_json(path, content | {SEAL: _seal(content)})


def read_sealed(path: Path) -> dict[str, Any]:
    """Read what `write_sealed` wrote; anything else raises `DamagedFile`."""
    try:
        content = json.loads(path.read_text("utf-8"))
        seal = content.pop(SEAL)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; this is not a folder that partwise finished writing") from None
    except (ValueError, KeyError, AttributeError, TypeError):
        raise _damaged(path) from None
    if seal != _seal(content):
        raise _damaged(path)
    return dict(content)


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify(path: Path, expected: str) -> None:
    """Raise `DamagedFile` unless the file holds what it held when its hash was taken."""
    if not path.is_file():
        raise DamagedFile(f"{path}: missing; restore the folder from a copy, or start again in a new --out")
    if sha256(path) != expected:
        raise _damaged(path)


def _damaged(path: Path) -> DamagedFile:
    return DamagedFile(
        f"{path}: damaged (cut short or changed since it was written); restore it from a copy, or start again in a new --out"
    )


def _seal(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def differences(found: Any, wanted: Any, path: str = "") -> list[str]:
    """Where two nested configurations differ, one line a place: `epochs: 40 there, 100 asked for`."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        return [
            line
            for key in sorted({*found, *wanted})
            for line in differences(found.get(key), wanted.get(key), f"{path}.{key}" if path else key)
        ]
    shown = ["nothing" if value is None else repr(value) for value in (found, wanted)]
    return [] if found == wanted else [f"{path}: {shown[0]} there, {shown[1]} asked for"]


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder for this process; a second process on the same folder is refused. The lock dies with its holder."""
    import fcntl

    with (folder / "lock").open("w") as file:
        patience = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > patience:
                    raise InputError(
                        f"{folder}: another process is writing here; wait for it, or choose another --out"
                    ) from None
            time.sleep(0.05)
        yield


def json_ready(content: Any) -> Any:
    """What `content` becomes when written to JSON and read again (tuples are lists there), so that the two compare equal."""
    return json.loads(json.dumps(content))


def write_dataset(path: Path, dataset: xr.Dataset) -> str:
    """Write a labelled result as netCDF in one step; returns the file's hash."""
    part = path.with_name(f".{path.name}.part")
    dataset.to_netcdf(part, engine="scipy")
    digest = sha256(part)
    part.replace(path)
    return digest


def read_dataset(path: Path, expected: str | None = None) -> xr.Dataset:
    """Read a labelled result into memory, checked against its hash where one is known."""
    import xarray as xr

    if expected is not None:
        verify(path, expected)
    with xr.open_dataset(path, engine="scipy") as dataset:
        return dataset.load().drop_encoding()  # how it lay on disk must not bind what is made of it
