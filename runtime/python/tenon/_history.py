# SPDX-License-Identifier: Apache-2.0
"""What a fit returns, and what it shows while it runs."""
import math
import sys
import time
from typing import Any, Dict, List, Optional, TextIO


class History:
    """What a fit did.

    history  {"loss": [of each epoch], "accuracy": [...], "val_loss": [...]}
    epoch    the numbers of the epochs, from 0
    end      "finished", "stopped" (by a callback) or "interrupted" (by Ctrl-C or a cancellation)
    reason   why it ended early, or ""
    """

    def __init__(self, report: Dict[str, Any]):
        self.records: List[Dict[str, Any]] = report["epochs"]
        self.end = str(report["end"])
        self.reason = str(report["reason"])
        self.epoch: List[int] = [int(each["epoch"]) for each in self.records]
        self.history: Dict[str, List[float]] = {}
        for each in self.records:
            for name, value in each["logs"].items():
                self.history.setdefault(name, []).append(math.nan if value is None else float(value))

    def plot(self, axes: Any = None) -> Any:
        """Draws the loss and the metrics over the epochs with matplotlib, and returns the figure. Errors: ImportError without matplotlib."""
        from matplotlib import pyplot
        plain = [name for name in self.history if not name.startswith("val_")]
        figure, panels = (axes[0].figure, axes) if axes is not None else pyplot.subplots(1, max(len(plain), 1), figsize=(5 * max(len(plain), 1), 3.5),
                                                                                       squeeze=False)
        for panel, name in zip(list(getattr(panels, "flat", panels)), plain):
            for each, label in ((name, "training"), (f"val_{name}", "validation")):
                if each in self.history:
                    panel.plot([epoch + 1 for epoch in self.epoch], self.history[each], marker="o", label=label)
            panel.set_xlabel("epoch")
            panel.set_title(name)
            panel.legend()
        figure.tight_layout()
        return figure

    def __repr__(self) -> str:
        last = ", ".join(f"{name}={values[-1]:.4g}" for name, values in self.history.items())
        return f"<tenon.History {self.end} after {len(self.epoch)} epochs{': ' + last if last else ''}>"

    def _repr_html_(self) -> str:
        from html import escape
        head = "".join(f"<th>{escape(name)}</th>" for name in ["epoch", *self.history])
        rows = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in [epoch + 1, *(f"{values[i]:.4g}" for values in self.history.values())]) + "</tr>"
                       for i, epoch in enumerate(self.epoch))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _shown(logs: Dict[str, float]) -> str:
    return "".join(f" - {name}: {value:.4f}" for name, value in logs.items())


class Progress:
    """The bar of a fit: rewritten in a terminal or notebook, one line for each epoch elsewhere."""

    WIDTH = 30
    INTERVAL_S = 0.1

    def __init__(self, verbose: int, stream: Optional[TextIO] = None):
        self.stream: TextIO = stream or sys.stdout
        self.bar = verbose == 1 and (self.stream.isatty() or "ipykernel" in sys.modules)
        self.epochs = self.batches = 0
        self.next = 0.0
        self._last = 0

    def train_begin(self, epochs: int, batches: int) -> None:
        self.epochs, self.batches = epochs, batches

    def epoch_begin(self, epoch: int) -> None:
        self.stream.write(f"Epoch {epoch + 1}/{self.epochs}\n")
        self.next = 0.0

    def is_due(self) -> bool:
        return self.bar and time.monotonic() >= self.next

    def batch_end(self, batch: int, logs: Dict[str, float]) -> None:
        self.next = time.monotonic() + self.INTERVAL_S
        done = f"{batch + 1}"
        if self.batches:
            filled = self.WIDTH * (batch + 1) // self.batches
            done = f"{batch + 1}/{self.batches} [{'=' * filled}{'.' * (self.WIDTH - filled)}]"
        self._write(f"{done}{_shown(logs)}")

    def epoch_end(self, seconds: float, logs: Dict[str, float]) -> None:
        done = f"{self.batches}/{self.batches} [{'=' * self.WIDTH}] - " if self.batches else ""
        self._write(f"{done}{seconds:.1f}s{_shown(logs)}")
        self.stream.write("\n")
        self._last = 0
        self.stream.flush()

    def _write(self, line: str) -> None:
        if self.bar:
            self.stream.write("\r" + line + " " * max(0, self._last - len(line)))
            self._last = len(line)
        else:
            self.stream.write(line)
        self.stream.flush()
