# SPDX-License-Identifier: Apache-2.0
"""The time of all checks together (--budget)."""
import math
import time

SHORTEST_S = 5  # a check is not started with less time than this


class Budget:
    """So many seconds from now on, or with None no limit."""

    def __init__(self, seconds):
        self.seconds, self.begin = seconds, time.monotonic()

    def left(self):
        return math.inf if self.seconds is None else self.seconds - (time.monotonic() - self.begin)

    def limit_of(self, own_limit_s, others_wait):
        """The time limit of a check that starts now, or None if too little time is left for it.

        While others wait, a check has half of what is left: one that needs more than all of it would let none of them start, in this call
        and in each that resumes it.
        """
        left = self.left()
        if left < min(SHORTEST_S, own_limit_s):
            return None
        return min(own_limit_s, max(SHORTEST_S, left / 2) if others_wait else left)
