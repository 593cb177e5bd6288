"""Draws what the prompts of long conversations are made of."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.conversation_play import Played


def draw(played: Sequence[Played], path: Path) -> None:
    """Draw a panel for each conversation: tokens by section, stacked, over its turns."""
    names = list(dict.fromkeys(name for one in played for sections in one.sections for name in sections))
    colours = dict(zip(names, mpl.colormaps["tab10"].colors, strict=False))  # type: ignore[attr-defined]
    figure = Figure(figsize=(5 * len(played), 4), layout="constrained")
    for one, axes in zip(played, figure.subplots(1, len(played), squeeze=False)[0], strict=True):
        turns = range(1, len(one.sections) + 1)
        areas = [[sections.get(name, 0) for sections in one.sections] for name in names]
        axes.stackplot(turns, areas, labels=names, colors=[colours[name] for name in names])
        axes.set(title=one.strategy, xlabel="turn", ylabel="tokens of the prompt", xlim=(1, len(turns)))
        axes.set_ylim(bottom=0)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(names))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
