"""What all pictures of benchmarks and rehearsals share: colours, axes, and where a picture is written."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from shared.errors import BadSetting, SluiceError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OURS, BAD, FLOOR, GRID = "#1f6feb", "#c0392b", "#7a7a7a", "#e4e4e4"
MOST_SHOWN = 4
"""Times its objective: what a delay axis shows at most."""
WIDE, HIGH, DPI = 10.5, 4.6, 130
SUFFIXES = (".png", ".svg", ".pdf")


class MatplotlibMissing(SluiceError):
    """`--plot` needs it."""

    code = "matplotlib-missing"

    def sentence(self) -> str:
        return "`--plot` needs matplotlib: pip install 'sluice[plot]', or `pip install matplotlib`"


def require_matplotlib() -> None:
    """Raises `MatplotlibMissing`."""
    try:
        import_module("matplotlib")
    except ImportError:
        raise MatplotlibMissing from None


def check_plot(path: Path) -> None:
    """Before anything is measured for it. Raises `BadSetting`, or `MatplotlibMissing`."""
    require_matplotlib()
    if path.suffix not in SUFFIXES:
        raise BadSetting(setting="--plot", detail=f"{path} ends with none of {', '.join(SUFFIXES)}")
    if not path.absolute().parent.is_dir():
        raise BadSetting(setting="--plot", detail=f"{path.absolute().parent} is no directory")


def draw(figure: Figure, path: Path) -> None:
    """Write it. Raises `BadSetting` when it can't be written."""
    try:
        figure.savefig(path, dpi=DPI)
    except OSError as error:
        raise BadSetting(setting="--plot", detail=f"{path} can't be written: {error.strerror}") from None


def new_figure(*, wide: float = WIDE, high: float = HIGH) -> Figure:
    """Drawn by Agg: no display is needed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(wide, high), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def legend(axes: Axes) -> None:
    """Above the axes, where nothing is drawn."""
    axes.legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(-0.02, 0.99), ncols=6)


def dress(axes: Axes, x: str, y: str) -> None:
    """Labels, a light grid, and no frame."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
