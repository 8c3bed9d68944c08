"""What all studies share: the output folder and its resume rules, the parts in order, verdicts, and the files outsiders read.

1. Check every setting, read the data; nothing is written before both are good.
2. Lock the folder: start where it is empty, go on where it is ours and means the same, refuse anything else.
3. Compute the parts that are not done yet; write their labelled results.
4. Judge every claim on the results that are there; write claims.json and provenance.json.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import xarray as xr

from partwise import files, provenance, registry
from partwise.errors import InputError, unknown
from partwise.studies._contract import Prepared, Settings, Study

NOTE, STATE, CLAIMS, PROVENANCE = "study.json", "state.json", "claims.json", "provenance.json"
_LARGEST_SEED = 2**31 - 1  # what a netCDF file can hold


def find(name: str) -> Study:
    study: Study = registry.load("study", name).STUDY
    return study


def run(study: Study, settings: Settings, out: Path, *, resume: bool) -> bool:
    """Bring a study in `out` to its end. Returns False if there was nothing left to do."""
    settings = replace(settings, parts=settings.parts or parts_of(study, settings.preset))
    faults = list(_faults(study, settings))
    if faults:
        raise InputError.of(faults)
    provenance.commit()  # now: later the checkout may have moved on
    prepared = study.prepare(settings)
    config = files.json_ready(_config(study, settings, prepared))
    _groups(out, config, resume)
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = files.locked(out)
    except OSError as error:
        raise InputError(f"--out {out}: cannot be written ({error.strerror}); choose another folder") from None
    with lock:
        groups = _groups(out, config, resume)
        if groups is None:
            groups = settings.groups
            files.write_sealed(out / NOTE, {"config": config, "groups": groups})
        if groups != settings.groups:  # how members were grouped at the start decides the last bits of their numbers
            prepared = study.prepare(replace(settings, groups=groups))
        return _compute(study, settings, prepared, config, out)


def parts_of(study: Study, preset: str) -> tuple[str, ...]:
    return tuple(part.name for part in study.parts if preset in part.presets)


def _faults(study: Study, settings: Settings) -> Iterable[str]:
    import torch

    if settings.preset not in study.presets:
        yield str(unknown("preset", settings.preset, study.presets))
    names = [part.name for part in study.parts]
    yield from (str(unknown("part", part, names)) for part in settings.parts if part not in names)
    if settings.seeds < 1:
        yield f"--seeds is {settings.seeds}; it must be 1 or more"
    if settings.seed < 0:
        yield f"--seed is {settings.seed}; it must be 0 or more"
    if settings.seed + settings.seeds > _LARGEST_SEED:
        yield f"--seed is {settings.seed}; with --seeds {settings.seeds} it must stay below {_LARGEST_SEED}"
    if settings.device not in ("cpu", "cuda"):
        yield str(unknown("device", settings.device, ("cpu", "cuda")))
    elif settings.device == "cuda" and not torch.cuda.is_available():
        yield "--device cuda: PyTorch finds no CUDA device here; use --device cpu, or install a CUDA build of PyTorch"
    if settings.data_dir is not None and not settings.data_dir.is_dir():
        yield f"--data-dir {settings.data_dir}: no such folder"
    if settings.checkpoint is not None and not study.takes_checkpoint:
        yield f"--checkpoint: {study.name} trains its own models and takes none; leave it out"


def _config(study: Study, settings: Settings, prepared: Prepared) -> dict[str, Any]:
    asked = {"seed": settings.seed, "seeds": settings.seeds, "device": settings.device}
    return {"study": study.name, "preset": settings.preset, **asked, **prepared.describe()}


def _groups(out: Path, config: dict[str, Any], resume: bool) -> int | None:
    """The number of groups of a study that may go on in `out`; None for a folder to start in; an error for any other."""
    try:
        taken = (
            [path for path in out.iterdir() if path.name != "lock" and not path.name.endswith(".part")] if out.exists() else []
        )
    except OSError as error:
        raise InputError(f"--out {out}: cannot be used ({error.strerror}); choose another folder") from None
    if not taken:
        return None
    if not resume:
        raise InputError(f"--out {out} is not empty; add --resume to go on there, or choose another folder")
    if not (out / NOTE).is_file():
        raise InputError(f"--out {out} is not a study folder of partwise (it has no {NOTE}); choose another folder")
    note = files.read_sealed(out / NOTE)
    if note["config"] != config:
        different = files.differences(note["config"], config)
        more = f"; and {len(different) - 6} more" if len(different) > 6 else ""
        raise InputError(f"--resume: {out} holds another configuration: {'; '.join(different[:6])}{more}")
    return int(note["groups"])


def _compute(study: Study, settings: Settings, prepared: Prepared, config: dict[str, Any], out: Path) -> bool:
    done: dict[str, Any] = files.read_sealed(out / STATE)["parts"] if (out / STATE).is_file() else {}
    waiting = [part for part in settings.parts if part not in done]
    (out / "results").mkdir(exist_ok=True)
    for part in waiting:
        start, known = time.monotonic(), _run_seconds(out)
        hashes = {}
        for name, dataset in prepared.compute(part, out).items():
            made = provenance.collect(study=study.name, part=part, config=config)
            labelled = dataset.assign_attrs(study=study.name, part=part, provenance=json.dumps(made, ensure_ascii=False))
            hashes[f"{name}.nc"] = files.write_dataset(out / "results" / f"{name}.nc", labelled)
        trained = sum(seconds for run, seconds in _run_seconds(out).items() if run not in known)
        spent = round(max(time.monotonic() - start, trained), 1)
        done[part] = {
            "results": hashes,
            "seconds": spent,
            "made": provenance.collect(device=provenance.device(settings.device)),
        }
        files.write_sealed(out / STATE, {"parts": done})
    results = read_results(out)
    claims = [claim.judge(study.name, settings.preset, results if claim.part in done else None) for claim in study.claims]
    files.write_json(out / CLAIMS, claims)
    files.write_json(out / PROVENANCE, {"config": config, "parts": done, "judged": provenance.collect()})
    hashes = {name: files.sha256(out / name) for name in (CLAIMS, PROVENANCE)}
    files.write_sealed(out / STATE, {"parts": done, "files": hashes})
    return bool(waiting)


def read_judged(out: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """(claims, provenance) of a finished study, checked against their hashes."""
    if not all((out / name).is_file() for name in (CLAIMS, STATE)):
        raise InputError(f"{out}: no finished study here ({CLAIMS} is missing); run `partwise study ... --out {out}`")
    for name, digest in files.read_sealed(out / STATE).get("files", {}).items():
        files.verify(out / name, digest)
    return json.loads((out / CLAIMS).read_text("utf-8")), json.loads((out / PROVENANCE).read_text("utf-8"))


def _run_seconds(out: Path) -> dict[str, float]:
    """Process time of every run that is done, the time before interruptions included."""
    return {note.parent.name: files.read_sealed(note).get("seconds", 0.0) for note in (out / "runs").glob("*/DONE")}


def read_results(out: Path) -> dict[str, xr.Dataset]:
    """Every labelled result of a study folder, checked against its hash."""
    done = files.read_sealed(out / STATE)["parts"]
    names = {name: digest for part in done.values() for name, digest in part["results"].items()}
    return {name.removesuffix(".nc"): files.read_dataset(out / "results" / name, digest) for name, digest in names.items()}
