"""The claims about weights and activations (sections 3.1, 3.2, 4.1 beginning, and 4.2), with their rules.

The paper reads its Figures 1 to 4 by eye, so there are no published numbers; each remark becomes a contrast between the arms,
paired by seed, whose interval over models must lie on the stated side of zero. One remark of equality is a claim of size.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from partwise.studies._claims import Claim, above, near
from partwise.studies._contract import Results
from partwise.studies.attentive_guidance.claims._values import guided_less_baseline, of_arm
from partwise.tasks._encoding import END, PAD, START, UNKNOWN

NEVER_FED = (PAD, UNKNOWN, END)  # the decoder never reads them, so their rows stay where they were drawn
_EQUAL = 0.1


def _norm(results: Results, words: str) -> xr.DataArray:
    """Row norms of the decoder embedding: of the start mark, of the words fed during training, or of those never fed."""
    norm = results["embedding"].norm
    if words == "start":
        return norm.sel(row=START)
    never = np.isin(norm.row.values, NEVER_FED)
    return norm.isel(row=never if words == "never" else ~never & (norm.row.values != START))


def _graph(name: str, matrix: str, says: str) -> Claim:
    key = f"{matrix.replace(' ', '-').replace('_', '').lower()}-{name.replace('_', '-')}"
    return Claim(
        f"guided-above-{key}",
        f"{says} is larger in guided models ({matrix}, strongest 1 % of the weights)",
        None, "direction", "weights", above(0.0),
        lambda results: guided_less_baseline(results["connectivity"][name].sel(matrix=matrix)),
    )  # fmt: skip


def _polarity(part: str, arm: str) -> Claim:
    where = part.split(".")[0]
    return Claim(
        f"polarity-inverse-{where}-{arm}",
        f"{arm} models: units whose update-gate weights are positive on average have negative reset-gate weights ({part})",
        None, "direction", "weights", above(0.0),
        lambda results: list(-of_arm(results["polarity"].correlation.sel(part=part), arm)),
    )  # fmt: skip


def _specialised(site: str) -> Claim:
    return Claim(
        f"guided-specialised-{site.split('.')[0]}",
        f"units of guided models are more specialised to one table ({site}: variance between tables over all variance)",
        None, "direction", "activations", above(0.0),
        lambda results: guided_less_baseline(results["ranges"].specialisation.sel(site=site)),
    )  # fmt: skip


def _selective(gate: str) -> Claim:
    from partwise.methods.gate_saturation import distance

    name = gate.replace(".", "-").replace("_", "-")
    return Claim(
        f"guided-selective-{name}",
        f"guided models use their gates more distinctly: nearer to the axes or the diagonal of Figure 4 ({gate})",
        None, "direction", "activations", above(0.0),
        lambda results: [-value for value in guided_less_baseline(distance(results["saturation"].sel(gate=gate)))],
    )  # fmt: skip


def _start_row(arm: str) -> Claim:
    return Claim(
        f"start-row-strong-{arm}",
        f"{arm} models: the start mark's row of the decoder embedding is larger than rows that are never fed (Figure 1)",
        None, "direction", "weights", above(0.0),
        lambda results: list(of_arm(_norm(results, "start"), arm) - of_arm(_norm(results, "never"), arm)),
    )  # fmt: skip


def _start_ratio(results: Results) -> list[float]:
    norm = _norm(results, "start")
    return list(np.log(of_arm(norm, "guided") / of_arm(norm, "baseline")))


def _update_left(side: str) -> Claim:
    def left_less_right(results: Results) -> list[float]:
        saturation = results["saturation"].sel(gate=f"{side}.update_gate")
        return list(of_arm(saturation.left - saturation.right, "baseline"))

    text = (
        f"baseline update gates of the {side} are more often left- than right-saturated, by the convention of the paper's code "
        "(z = 1 keeps the old state; in the paper's own formula left and right change places)"
    )
    return Claim(f"baseline-update-left-{side}", text, None, "direction", "activations", above(0.0), left_less_right)


CLAIMS = (
    Claim(
        "guided-larger-embedding",
        "the decoder embedding's rows of bit strings are larger in guided models (Figure 1)",
        None, "direction", "weights", above(0.0),
        lambda results: guided_less_baseline(_norm(results, "fed")),
    ),
    *(_start_row(arm) for arm in ("baseline", "guided")),
    Claim(
        "start-row-equal",
        "the start mark's row is equally strong in both arms (log ratio of norms within .1)",
        0.0, "size", "weights", near(0.0, _EQUAL),
        lambda results: _start_ratio(results),
    ),
    *(
        _graph(name, matrix, says)
        for matrix in ("encoder W_hz", "decoder W_iz")
        for name, says in (
            ("gini_in" if matrix.startswith("encoder") else "gini_out", "the inequality of units' strengths (Gini)"),
            ("polar_receivers" if matrix.startswith("encoder") else "polar_senders", "the share of polar units"),
            ("modularity", "the modularity of the graph of strong weights"),
        )
    ),
    *(_polarity(part, arm) for part in ("encoder.recurrent", "decoder.input") for arm in ("baseline", "guided")),
    *(_specialised(site) for site in ("encoder.hidden", "decoder.hidden")),
    *(_selective(f"{side}.{gate}_gate") for side in ("encoder", "decoder") for gate in ("reset", "update")),
    *(_update_left(side) for side in ("encoder", "decoder")),
    Claim(
        "guided-decoder-update-right",
        "the decoder's update gates are right-saturated more often in guided models",
        None, "direction", "activations", above(0.0),
        lambda results: guided_less_baseline(results["saturation"].right.sel(gate="decoder.update_gate")),
    ),
)  # fmt: skip
