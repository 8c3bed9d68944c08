"""The claims of a finished study as a table in the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

STYLE = {"replicated": "green", "not replicated": "red", "inconclusive": "yellow"}


def show(out: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    claims = json.loads((out / "claims.json").read_text("utf-8"))
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    table = Table(title=f"{claims[0]['study']}, preset {claims[0]['preset']}", title_justify="left")
    table.add_column("claim")
    for heading in ("published", "measured", "95 % interval", "n"):
        table.add_column(heading, justify="right")
    table.add_column("verdict")
    judged = [claim for claim in claims if claim["verdict"] != "not run"]
    for claim in judged:
        style = STYLE[claim["verdict"]]
        cells = (number(claim["published"]), number(claim["measured"]), interval(claim["interval"]), str(claim["n"]))
        table.add_row(sentence(claim["text"]), *cells, f"[{style}]{claim['verdict']}[/]")
    console.print(table)
    if len(judged) < len(claims):
        print(f"{len(claims) - len(judged)} more claims were not run: they need preset paper, or a part that was left out.")


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def interval(ends: list[Any] | None) -> str:
    return "–" if ends is None else f"{ends[0]:.2f} to {ends[1]:.2f}"
