# SPDX-License-Identifier: Apache-2.0
"""What a fit shows while it runs: a bar in terminals and notebooks, lines elsewhere."""
import os
import sys
import time
from collections import deque
from html import escape
from typing import Any, Deque, Dict, Optional, TextIO


def shown(logs: Dict[str, float]) -> str:
    """ - loss: 0.2500 - accuracy: 0.9000"""
    return "".join(f" - {name}: {value:.4f}" for name, value in logs.items())


def columns_of(stream: TextIO) -> int:
    """The characters that fit into a line of a terminal; 0 if that is not known."""
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (AttributeError, OSError, ValueError):
        return 0


class Progress:
    """Lines of text. The bar is rewritten in a terminal that can (not with TERM=dumb); elsewhere there is one line for each epoch."""

    WIDTH = 30
    INTERVAL_S = 0.1

    def __init__(self, verbose: int, stream: Optional[TextIO] = None):
        self.stream: TextIO = stream or sys.stdout
        self.bar = verbose == 1 and self.stream.isatty() and os.environ.get("TERM") != "dumb"
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
        columns = columns_of(self.stream)
        line = self._line(batch + 1, shown(logs), columns)
        self._write(line[:columns - 1] if columns else line)

    def epoch_end(self, seconds: float, logs: Dict[str, float]) -> None:
        time_and_logs = f"{seconds:.1f}s{shown(logs)}"
        self._write(self._line(self.batches, f" - {time_and_logs}", columns_of(self.stream)) if self.batches else time_and_logs)
        self.stream.write("\n")
        self._last = 0
        self.stream.flush()

    def train_end(self) -> None:
        self.close()

    def close(self) -> None:
        """Ends the line of a bar that is not complete, for what is written next."""
        if self._last:
            self._last = 0
            self.stream.write("\n")
            self.stream.flush()

    def _line(self, done: int, rest: str, columns: int) -> str:
        """What is wider than the terminal, which cannot rewrite such a line, leaves out the bar."""
        if not self.batches:
            return f"{done}{rest}"
        filled = self.WIDTH * done // self.batches
        count = f"{done}/{self.batches}"
        line = f"{count} [{'=' * filled}{'.' * (self.WIDTH - filled)}]{rest}"
        return line if not self.bar or not columns or len(line) < columns else count + rest

    def _write(self, line: str) -> None:
        if self.bar:
            self.stream.write("\r" + line + " " * max(0, self._last - len(line)))
            self._last = len(line)
        else:
            self.stream.write(line)
        self.stream.flush()


class NotebookProgress(Progress):
    """One output of a cell, updated in place: a bar while an epoch runs, and a table of the epochs. As text, it is the last line of the bar."""

    INTERVAL_S = 0.2
    ROWS = 20  # of the table while a fit runs: the last epochs
    ROWS_AT_THE_END = 200

    def __init__(self) -> None:
        super().__init__(verbose=1)
        self.bar = True
        self.epoch = self.batch = 0
        self.rows: Deque[Dict[str, str]] = deque(maxlen=self.ROWS_AT_THE_END)
        self.logs: Dict[str, float] = {}
        self.ended = False
        self._handle: Any = None

    def epoch_begin(self, epoch: int) -> None:
        self.epoch, self.batch, self.logs = epoch, 0, {}
        self._show()

    def batch_end(self, batch: int, logs: Dict[str, float]) -> None:
        self.batch, self.logs = batch + 1, logs
        self._show()

    def epoch_end(self, seconds: float, logs: Dict[str, float]) -> None:
        self.logs = logs
        self.rows.append({"epoch": str(self.epoch + 1), "time": f"{seconds:.1f} s", **{name: f"{value:.4f}" for name, value in logs.items()}})
        if self.next <= time.monotonic() or self.epoch + 1 == self.epochs:  # fits of many short epochs are not slowed down
            self._show()

    def train_end(self) -> None:
        self.ended = True
        self._show()

    def _show(self) -> None:
        from IPython.display import display
        self.next = time.monotonic() + self.INTERVAL_S
        if self._handle is None:
            self._handle = display(self, display_id=True)
        else:
            self._handle.update(self)

    def __repr__(self) -> str:
        return f"Epoch {self.epoch + 1}/{self.epochs}{shown(self.logs)}"

    def _repr_html_(self) -> str:
        cell = "style='text-align: right; padding: 2px 10px'"
        html = ""
        if not self.ended:
            bar = f"batch {self.batch}"
            if self.batches:
                bar = f"<progress value='{self.batch}' max='{self.batches}' style='width: 240px'></progress> {self.batch}/{self.batches}"
            html = f"<div>Epoch {self.epoch + 1}/{self.epochs} {bar}{escape(shown(self.logs))}</div>"
        if self.rows:
            names = list(self.rows[-1])
            rows = list(self.rows)[0 if self.ended else -self.ROWS:]
            html += ("<table><thead><tr>" + "".join(f"<th {cell}>{escape(name)}</th>" for name in names) + "</tr></thead><tbody>" + "".join(
                "<tr>" + "".join(f"<td {cell}>{escape(row.get(name, ''))}</td>" for name in names) + "</tr>" for row in rows) + "</tbody></table>")
        return html


def in_notebook() -> bool:
    """Whether this runs in a kernel of Jupyter, whose outputs may be HTML. IPython is not imported for the answer."""
    if "ipykernel" not in sys.modules:
        return False
    from IPython import get_ipython
    return hasattr(get_ipython(), "kernel")


def progress_of(verbose: int) -> Optional[Progress]:
    """What shows the progress of a fit: verbose 0: nothing, 1: a bar, 2: lines."""
    if not verbose:
        return None
    return NotebookProgress() if verbose == 1 and in_notebook() else Progress(verbose)
