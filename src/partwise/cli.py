"""The shell: parse, call one function, print. Heavy libraries are imported by what is called, not here."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from partwise.errors import InputError, WorkerLost


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0 finished, 2 bad input, 130 interrupted, 1 anything the machine refused (a full disk, say)."""
    try:
        options = _parser().parse_args(arguments)
        options.call(options)
    except InputError as error:
        print(f"partwise: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("partwise: stopped; run the same command with --resume to go on from the last epoch", file=sys.stderr)
        return 130
    except (OSError, WorkerLost) as error:
        print(f"partwise: {error}; run the same command with --resume once that is mended", file=sys.stderr)
        return 1
    return 0


class _Parser(argparse.ArgumentParser):
    """Complains in one line, as everything else here does."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}. See `{self.prog} --help`.")


def _parser() -> argparse.ArgumentParser:
    from partwise import __doc__ as about

    parser = _Parser(prog="partwise", description=(about or "").split("\n\n")[0], allow_abbrev=False)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)

    listing = commands.add_parser("list", help="every task, model, method, intervention and study")
    listing.set_defaults(call=_list)

    study = commands.add_parser("study", help="run a study, or go on with one", allow_abbrev=False)
    study.add_argument("name", help="for example attentive-guidance")
    study.add_argument("--preset", default="quick", help="quick (minutes on two cores, the default) or paper (published sizes)")
    study.add_argument("--out", type=Path, help="folder for everything that is written (default: runs/NAME-PRESET)")
    study.add_argument("--seed", type=int, default=0, help="the first seed (default: 0)")
    study.add_argument("--seeds", type=int, help="how many seeds (default: the preset's)")
    study.add_argument("--device", default="cpu", help="cpu (the default) or cuda")
    study.add_argument("--parts", default="", help="only these parts of the study, separated by commas (default: the preset's)")
    study.add_argument("--jobs", type=int, help="processes that share the work on the CPU (default: one a core)")
    study.add_argument("--resume", action="store_true", help="go on in a folder that this study began")
    study.add_argument("--data-dir", type=Path, help="folder with published data")
    study.add_argument("--checkpoint", type=Path, help="a published model, for studies that take one")
    study.set_defaults(call=_study)

    report = commands.add_parser("report", help="one HTML page over finished studies", allow_abbrev=False)
    report.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    report.add_argument("--out", type=Path, help="the page to write (default: report.html, in DIR if there is one DIR)")
    report.add_argument("--png", action="store_true", help="figures as PNG files too")
    report.set_defaults(call=_report)
    return parser


def _list(_: argparse.Namespace) -> None:
    from partwise import registry

    for kind in registry.KINDS:
        print(f"{kind}:")
        keys = registry.keys(kind)
        for key in keys:
            print(f"  {key:<22} {registry.summary(kind, key)}")
        if not keys:
            print("  (none yet)")


def _study(options: argparse.Namespace) -> None:
    from partwise.studies import _runner
    from partwise.studies._contract import Settings

    study = _runner.find(options.name)
    if options.jobs is not None and options.jobs < 1:
        raise InputError(f"--jobs is {options.jobs}; it must be 1 or more")
    settings = Settings(
        preset=options.preset,
        seed=options.seed,
        seeds=study.presets.get(options.preset, 1) if options.seeds is None else options.seeds,
        device=options.device,
        data_dir=options.data_dir,
        checkpoint=options.checkpoint,
        parts=tuple(part for part in options.parts.split(",") if part),
        groups=1 if options.device == "cuda" else options.jobs or _cores(),
    )
    out = options.out or Path("runs") / f"{study.name}-{options.preset}"
    worked = _runner.run(study, settings, out, resume=options.resume)

    from partwise.reports import claims_table, page

    written = page.write([out], out / "report.html")
    claims_table.show(out)
    print(f"\n{'Done' if worked else 'Already done; nothing was left to compute'}. The page: {written}")


def _report(options: argparse.Namespace) -> None:
    from partwise.reports import page

    folders: list[Path] = options.folders
    target = options.out or (folders[0] / "report.html" if len(folders) == 1 else Path("report.html"))
    print(f"The page: {page.write(folders, target, png=options.png)}")


def _cores() -> int:
    import joblib

    return int(joblib.cpu_count())


if __name__ == "__main__":
    sys.exit(main())
