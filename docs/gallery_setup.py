"""What sphinx-gallery calls around each example, and for its figures."""

import warnings
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import sklearn
from matplotlib.figure import Figure
from matplotlib.text import Text
from sphinx_gallery.scrapers import matplotlib_scraper

_FILTERS: list[Any] = []

#: The examples, and endings of the files that they write next to them.
_EXAMPLES = Path(__file__).parents[1] / "examples" / "gallery"
_WRITTEN = {".csv", ".safetensors", ".sqlite"}


def around_example(gallery_conf: dict[str, Any], name: str, when: str) -> None:
    """Run each example with default settings, and turn a warning that it does not expect into an error."""
    sklearn.set_config(enable_metadata_routing=False)
    if when == "before":
        for written in _EXAMPLES.rglob("*.*"):  # a ledger of an earlier build has no budget left
            if written.suffix in _WRITTEN:
                written.unlink()
        _FILTERS[:] = warnings.filters
        warnings.simplefilter("error")
    else:
        warnings.filters[:] = _FILTERS


def figures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the figures of a block as sphinx-gallery does, and the last one as the thumbnail."""
    drawn = [plt.figure(number) for number in plt.get_fignums()]
    shown = matplotlib_scraper(block, block_vars, gallery_conf)
    if drawn:
        name = f"{Path(block_vars['src_file']).stem}_small.png"
        path = Path(block_vars["target_file"]).parent / "images" / name
        keep_one_axes(drawn[-1])
        drawn[-1].savefig(path, dpi=100)
        block_vars["file_conf"]["thumbnail_path"] = str(path)
    return shown


def keep_one_axes(figure: Figure) -> None:
    """Reduce a figure to its first axes, without words and with thick lines, to be read when small."""
    axes, *others = figure.axes
    for part in (*others, *figure.legends):
        part.remove()
    axes.set(xticks=[], yticks=[])
    axes.minorticks_off()
    if axes.get_legend():
        axes.get_legend().remove()
    for words in figure.findobj(Text):
        words.set_visible(False)
    for line in axes.lines:  # what lies outside the axes is for labels
        line.set(clip_on=True, linewidth=2 * line.get_linewidth(), markersize=1.6 * line.get_markersize())
    figure.set_layout_engine("none")
    figure.set_size_inches(4, 2.8)
    axes.set_position((0.03, 0.03, 0.94, 0.94))
