"""One self-contained HTML page over finished studies: no scripts, no network, every figure with its data."""

from __future__ import annotations

import base64
import importlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files as resources
from pathlib import Path
from typing import Any

from partwise import files
from partwise.errors import InputError
from partwise.reports.chapters._contract import Table
from partwise.reports.claims_table import interval, number, sentence
from partwise.reports.figures._figure import Figure, for_file, for_page
from partwise.studies import _runner
from partwise.studies._contract import Part, Study

_PRECISION = "%.6g"
VERDICTS = ("replicated", "not replicated", "inconclusive", "not run")


@dataclass(frozen=True)
class Chapter:
    """Everything the template needs to know of one finished study."""

    study: Study
    config: dict[str, Any]
    claims: list[dict[str, Any]]
    provenance: dict[str, Any]
    figures: list[Figure]
    remarks: list[str]
    tables: list[Table]

    @property
    def counts(self) -> dict[str, int]:
        counted = Counter(claim["verdict"] for claim in self.claims)
        return {verdict: counted[verdict] for verdict in VERDICTS if counted[verdict]}

    @property
    def judged(self) -> list[tuple[Part, list[dict[str, Any]]]]:
        """Claims with a verdict, under the part of the study whose results they are about."""
        of_part = {claim.id: claim.part for claim in self.study.claims}
        judged = [claim for claim in self.claims if claim["verdict"] != "not run"]
        grouped = ((part, [claim for claim in judged if of_part[claim["id"]] == part.name]) for part in self.study.parts)
        return [(part, claims) for part, claims in grouped if claims]

    @property
    def not_run(self) -> list[dict[str, Any]]:
        return [claim for claim in self.claims if claim["verdict"] == "not run"]

    @property
    def differing(self) -> list[dict[str, Any]]:
        """Claims with a published number that our interval does not bear out."""
        open_verdicts = ("not replicated", "inconclusive")
        return [c for c in self.claims if c["verdict"] in open_verdicts and c["published"] is not None]

    @property
    def command(self) -> str:
        asked = self.config
        words = [
            "partwise study",
            asked["study"],
            "--preset",
            asked["preset"],
            "--seed",
            asked["seed"],
            "--seeds",
            asked["seeds"],
        ]
        words += ["--device", asked["device"]]
        if "read from" in json.dumps(asked.get("data", "")):
            words += ["--data-dir DIR"]
        words += ["--parts", ",".join(self.provenance["parts"])]
        return " ".join(map(str, words))

    @property
    def made(self) -> dict[str, Any]:
        """What computed the parts (the first one, where they differ: each part's own is in the details)."""
        return dict(next(iter(self.provenance["parts"].values()))["made"])

    @property
    def seconds(self) -> float:
        return float(sum(part["seconds"] for part in self.provenance["parts"].values()))


def write(folders: Sequence[Path], target: Path, *, png: bool = False) -> Path:
    """Draw the figures of every study into its folder, and the page over all of them to `target`."""
    chapters = [_chapter(folder) for folder in folders]
    if target.is_dir() or not target.absolute().parent.is_dir():
        raise InputError(f"--out {target}: must be a file in a folder that exists, for example report.html")
    for folder, chapter in zip(folders, chapters, strict=True):
        _write_figures(chapter.figures, folder / "figures", png)
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    shown = {"number": number, "interval": interval, "sentence": sentence}
    environment.filters |= shown | {"csv": _csv, "inline": for_page, "duration": _duration}
    template = environment.from_string(resources(__package__).joinpath("page.html.j2").read_text("utf-8"))
    files.write_text(target, template.render(chapters=chapters, verdicts=VERDICTS))
    return target


def _chapter(folder: Path) -> Chapter:
    claims, provenance = _runner.read_judged(folder)
    config = files.read_sealed(folder / _runner.NOTE)["config"]
    study = _runner.find(config["study"])
    results = _runner.read_results(folder)
    drawn = importlib.import_module(f"partwise.reports.chapters.{study.name.replace('-', '_')}")
    return Chapter(
        study,
        config,
        claims,
        provenance,
        drawn.figures(results),
        drawn.remarks(results, claims),
        drawn.tables(results),
    )


def _write_figures(figures: Sequence[Figure], folder: Path, png: bool) -> None:
    folder.mkdir(exist_ok=True)
    for figure in figures:
        files.write_text(folder / f"{figure.name}.csv", figure.table.to_csv(index=False, float_format=_PRECISION))
        for panel in figure.panels:
            files.write_text(folder / f"{panel.name}.svg", for_file(panel))
            if png:
                (folder / f"{panel.name}.png").write_bytes(panel.png())


def _csv(figure: Figure) -> str:
    data = base64.b64encode(figure.table.to_csv(index=False, float_format=_PRECISION).encode()).decode()
    return f"data:text/csv;base64,{data}"


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{seconds:.0f} s" if seconds < 90 else f"{minutes} min" if minutes < 90 else f"{minutes / 60:.1f} h"
