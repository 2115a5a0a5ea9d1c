# SPDX-License-Identifier: Apache-2.0
"""Traces: what a context does, kernel by kernel."""
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Dict, Iterator, List, Optional, Type

from ._context import Context, default_context
from ._library import Object, PathLike, check, encoded, json_of, lib, object_of, path_of


class Trace(Object):
    """Records kernels, copies, waits and memory of a context, from its construction to the end of a `with` block or stop().

        with tenon.Trace() as trace:
            model.predict(x)
        print(trace)
        trace.write("trace.json")  # for https://ui.perfetto.dev or chrome://tracing

    Meanwhile each kernel is measured, and runs may be slower. What was recorded is kept until the next trace of the context.
    Errors  InvalidArgumentError: the context is being traced.
    """

    __slots__ = ()

    def __init__(self, context: Optional[Context] = None):
        super().__init__(object_of(lib.tenon_trace_start, (context or default_context()).handle))

    def stop(self) -> None:
        """Ends the recording."""
        check(lib.tenon_trace_stop(self.handle))

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException], traceback: Optional[TracebackType]) -> None:
        self.stop()

    @property
    def info(self) -> Dict[str, Any]:
        """{"kernels", "events", "dropped"}: how many events were recorded, and how many more were not, as there is a limit."""
        return dict(json_of(lib.tenon_trace_report, self.handle))

    @property
    def kernels(self) -> List[Dict[str, Any]]:
        """{node, op, device, algorithm, runs, duration_ns, best_ns, flops, size_bytes, nodes} of each kernel: all its runs, flops and bytes of one."""
        return list(self.info["kernels"])

    @property
    def events(self) -> Dict[str, Any]:
        """The Chrome trace format."""
        return dict(json_of(lib.tenon_trace_json, self.handle))

    def write(self, path: PathLike) -> None:
        """Writes the Chrome trace format to a file."""
        check(lib.tenon_trace_write(self.handle, path_of(path)))

    def table(self, rows: int = 20) -> str:
        """The kernels that took most of the time, as a table."""
        kernels = sorted(self.kernels, key=lambda each: -int(each["duration_ns"]))
        total = sum(int(each["duration_ns"]) for each in kernels) or 1
        lines = [["node", "op", "device", "runs", "total ms", "mean us", "%", "GFLOP/s"]]
        for each in kernels[:rows]:
            duration, runs = int(each["duration_ns"]), int(each["runs"])
            rate = f"{each['flops'] * runs / duration:.1f}" if duration and each["flops"] else ""
            lines.append([str(each["node"]), str(each["op"]), str(each["device"]), str(runs), f"{duration / 1e6:.3f}", f"{duration / runs / 1e3:.1f}",
                          f"{100 * duration / total:.1f}", rate])
        widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
        return "\n".join("  ".join(cell.ljust(width) if i < 3 else cell.rjust(width) for i, (cell, width) in enumerate(zip(line, widths))).rstrip()
                         for line in lines)

    def __repr__(self) -> str:
        return "<tenon.Trace, closed>" if self.closed else self.table()

    def _repr_html_(self) -> str:
        from html import escape
        return f"<pre>{escape(repr(self))}</pre>"


@contextmanager
def trace_span(name: str, context: Optional[Context] = None) -> Iterator[None]:
    """A named span of one's own work in the trace of a context, if one records: with tenon.trace_span("tokenize"): ..."""
    where = context or default_context()
    check(lib.tenon_trace_begin_span(where.handle, encoded(name)))
    try:
        yield
    finally:
        check(lib.tenon_trace_end_span(where.handle))
