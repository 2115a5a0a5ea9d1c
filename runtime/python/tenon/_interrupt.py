# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C during a call of the library. Python's handlers of signals run only after the call, so that a thread requests its end."""
import ctypes
import os
import select
import signal
import socket
import threading
from types import TracebackType
from typing import Any, Optional, Type

from . import _api
from ._library import check, lib, object_of, sized


_DONTWAIT = getattr(socket, "MSG_DONTWAIT", 0)  # Windows has none; its select() takes a socket of any number


class _Watcher:
    """Cancels the call that is running when SIGINT arrives, which Python's C handler writes to a socket at once."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.cancellation: Optional[int] = None
        self.previous = -1  # file descriptor that signals were written to before
        self.reader, self.writer = socket.socketpair()
        self.writer.setblocking(False)
        threading.Thread(target=self._watch, name="tenon-interrupt", daemon=True).start()

    def _watch(self) -> None:
        while True:
            self.reader.recv(1, socket.MSG_PEEK)  # waits, and leaves the signal there: by the time of the lock its call may have ended
            with self.lock:
                if signal.SIGINT in self.drain() and self.cancellation is not None:
                    check(lib.tenon_cancel(self.cancellation))

    def drain(self) -> bytes:
        """The numbers of the signals that have arrived, which are passed on. The caller has the lock."""
        if not _DONTWAIT and not select.select([self.reader], [], [], 0)[0]:
            return b""
        try:
            numbers = self.reader.recv(64, _DONTWAIT)
        except BlockingIOError:
            return b""
        if self.previous >= 0:
            try:
                os.write(self.previous, numbers)
            except OSError:
                pass  # its owner has closed it
        return numbers


_watcher: Optional[_Watcher] = None


def _forked() -> None:
    global _watcher
    _watcher = None  # its thread is the parent's


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class Interruptible:
    """Ctrl-C ends the calls of the library in this block that are given `run_options`, and the block by KeyboardInterrupt.

    On other threads than the main one, and with another handler of SIGINT than Python's own, the block does nothing.
    """

    def __init__(self) -> None:
        self.run_options: Any = None  # address of a TenonRunOptions
        self.interrupted = False
        self._cancellation: Optional[int] = None

    def __enter__(self) -> "Interruptible":
        global _watcher
        if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            return self
        self._cancellation = object_of(lib.tenon_cancellation_create)
        self.run_options = ctypes.byref(sized(_api.TenonRunOptions, cancellation=self._cancellation))
        if _watcher is None:
            _watcher = _Watcher()
        # Python's own handler would raise KeyboardInterrupt at any place, also before the results have an owner.
        signal.signal(signal.SIGINT, self._interrupt)
        with _watcher.lock:
            _watcher.cancellation = self._cancellation
            _watcher.previous = signal.set_wakeup_fd(_watcher.writer.fileno(), warn_on_full_buffer=False)
        return self

    def _interrupt(self, *_: Any) -> None:
        self.interrupted = True

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException], traceback: Optional[TracebackType]) -> None:
        if self._cancellation is None or _watcher is None:
            return
        with _watcher.lock:
            signal.set_wakeup_fd(_watcher.previous)
            _watcher.drain()  # a signal of this call does not end the next one
            _watcher.cancellation, _watcher.previous = None, -1
        signal.signal(signal.SIGINT, signal.default_int_handler)  # runs the handler of a signal that is pending
        lib.tenon_release(self._cancellation)
        if self.interrupted:
            raise KeyboardInterrupt from None
