"""Final accuracy of every model as a dot, split by split, with the published means beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from partwise.reports.figures._figure import COLOURS, INK, MARKERS, Figure, drawing, panel

Published = Mapping[str, Mapping[str, Sequence[float]]]


def accuracy_dots(final: xr.Dataset, names: dict[str, str], published: Published) -> Figure:
    """`published[arm][split]` holds the paper's models; diamonds mark their means."""
    table = final.accuracy.sel(split=list(names)).to_dataframe().reset_index()
    words = []
    with drawing(7.0, 3.0) as axes:
        for place, (split, title) in enumerate(names.items()):
            for side, (arm, colour) in zip((-0.14, 0.14), COLOURS.items(), strict=True):
                values = final.accuracy.sel(weights="selected", split=split).values[final.arm.values == arm]
                spread = np.linspace(-0.05, 0.05, len(values)) if len(values) > 1 else np.zeros(1)
                axes.plot(
                    place + side + spread, values, MARKERS[arm], color=colour, alpha=0.75, label=arm if place == 0 else None
                )
                theirs = float(np.mean(published[arm][split]))
                label = "published mean" if place == 0 and arm == "guided" else None
                axes.plot(place + side, theirs, "D", markerfacecolor="none", markeredgecolor=INK, markersize=9, label=label)
                words.append(f"{title} {arm} {np.nanmean(values):.2f}, published {theirs:.2f}")
        axes.set_xticks(range(len(names)), list(names.values()))
        axes.set(ylim=(-0.04, 1.04), ylabel="sequence accuracy")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, fontsize=8)
        drawn = panel(axes, "accuracy-dots", f"Final accuracies. {'; '.join(words)}.")
    return Figure(
        "accuracy-dots",
        "Accuracy of every model",
        "Each dot is one trained model (weights of the selected epoch). Diamonds are the means of the paper's models.",
        [drawn],
        table[["arm", "seed", "member", "weights", "split", "accuracy"]],
    )
