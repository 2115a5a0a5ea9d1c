# SPDX-License-Identifier: Apache-2.0
"""Which trace the thread is in, for all that behaves otherwise in one."""
import contextlib
import threading
from typing import TYPE_CHECKING, Iterator, Optional

if TYPE_CHECKING:
    from ._traced import GraphTrace


class _State(threading.local):
    trace: "Optional[GraphTrace]" = None
    _moves = [0]  # of all threads

    def moves(self) -> int:
        """How often parameters have got another dtype or device, or another object took their place, which programs rely on."""
        return self._moves[0]

    def count_move(self) -> None:
        """Ends the use of all programs that have been made."""
        self._moves[0] += 1


state = _State()


@contextlib.contextmanager
def suspended() -> Iterator[None]:
    """Operations run at once in this block, also within a trace."""
    trace, state.trace = state.trace, None
    try:
        yield
    finally:
        state.trace = trace
