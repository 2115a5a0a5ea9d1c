# SPDX-License-Identifier: Apache-2.0
"""What a fit returns."""
import math
from typing import Any, Dict, List

from ._progress import in_notebook


class History:
    """What a fit did.

    history  {"loss": [of each epoch], "accuracy": [...], "val_loss": [...]}
    epoch    the numbers of the epochs, from 0
    end      "finished", "stopped" (by a callback) or "interrupted" (by Ctrl-C or a cancellation)
    reason   why it ended early, or ""
    """

    def __init__(self, report: Dict[str, Any], table_is_shown: bool = False):
        self._table_is_shown = table_is_shown  # by the progress of the fit
        self.records: List[Dict[str, Any]] = report["epochs"]
        self.end = str(report["end"])
        self.reason = str(report["reason"])
        self.epoch: List[int] = [int(each["epoch"]) for each in self.records]
        self.history: Dict[str, List[float]] = {}
        for each in self.records:
            for name, value in each["logs"].items():
                self.history.setdefault(name, []).append(math.nan if value is None else float(value))

    def plot(self, axes: Any = None) -> Any:
        """Draws the loss and the metrics over the epochs with matplotlib, training and validation in one panel, and returns the figure, which
        a notebook shows as the result of its cell; elsewhere matplotlib.pyplot.show() or figure.savefig(FILE) follows.

        axes    panels to draw into, one for each value; None: a new figure.
        Errors  ImportError without matplotlib.
        """
        try:
            from matplotlib import pyplot
            from matplotlib.ticker import MaxNLocator
        except ImportError as error:
            raise ImportError(f"History.plot draws with matplotlib, which cannot be imported: {error}; pip install matplotlib "
                              "(Debian: python3-matplotlib). History.history has the numbers.") from None
        names = list(dict.fromkeys(name[4:] if name.startswith("val_") else name for name in self.history))
        count = max(len(names), 1)
        if axes is None:
            figure, panels = pyplot.subplots(1, count, figsize=(4.5 * count, 3.2), squeeze=False)
            if in_notebook():
                pyplot.close(figure)  # or the notebook draws it a second time at the end of the cell
            panels = list(panels.flat)
        else:
            panels = list(getattr(axes, "flat", axes if isinstance(axes, (list, tuple)) else [axes]))
            figure = panels[0].figure
        for panel, name in zip(panels, names):
            for each, label in ((name, "training"), (f"val_{name}", "validation")):
                if each in self.history:
                    panel.plot([epoch + 1 for epoch in self.epoch], self.history[each], marker="o", markersize=4, label=label)
            panel.set_xlabel("epoch")
            panel.set_title(name)
            panel.xaxis.set_major_locator(MaxNLocator(integer=True))
            panel.grid(alpha=0.3)
            panel.legend()
        figure.tight_layout()
        return figure

    def __repr__(self) -> str:
        last = ", ".join(f"{name}={values[-1]:.4g}" for name, values in self.history.items())
        epochs = f"{len(self.epoch)} epoch{'' if len(self.epoch) == 1 else 's'}"
        return f"<tenon.History {self.end} after {epochs}{': ' + last if last else ''}>"

    def _repr_html_(self) -> str:
        from html import escape
        if self._table_is_shown:
            return escape(repr(self))
        head = "".join(f"<th>{escape(name)}</th>" for name in ["epoch", *self.history])
        rows = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in [epoch + 1, *(f"{values[i]:.4g}" for values in self.history.values())]) + "</tr>"
                       for i, epoch in enumerate(self.epoch))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
