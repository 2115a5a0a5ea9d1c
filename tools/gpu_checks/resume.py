# SPDX-License-Identifier: Apache-2.0
"""What an earlier call has done in the same folder (--resume), and what is still to do.

The state of a check is one of pass, fail (with these two it has ended), timeout and not run.
"""
import json
import os

ENDED = ("pass", "fail")
INTERRUPTED = "interrupted: the script ended before it did"


def state_of(check, entries):
    return entries.get(check.name, {}).get("state")


def read_summary(out):
    """The summary of an earlier call; None if there is none. Errors: ValueError for another file."""
    path = os.path.join(out, "summary.json")
    if not os.path.isfile(path):
        return None
    with open(path, encoding="utf-8") as file:
        try:
            summary = json.load(file)
            {entry["name"]: entry["state"] for entry in summary["checks"]}
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"cannot read {path}: {error!r}") from error
    return summary


def difference(earlier, now):
    """Why the results of an earlier call do not belong to those of this one; None if they do."""
    commit = lambda summary: (summary.get("bundle") or {}).get("commit")
    if commit(earlier) != commit(now):
        return f"expected results of the commit {commit(now)}, got {commit(earlier)}"
    for key in ("backend", "tiny"):
        if earlier.get(key) != now[key]:
            return f"expected results with {key} {now[key]}, got {earlier.get(key)}"
    return None


def in_order(checks, entries):
    """The checks that have not ended. Those that were never started come before those that ran out of time, which may do so again."""
    waiting = [check for check in checks if state_of(check, entries) not in ENDED]
    return sorted(waiting, key=lambda check: state_of(check, entries) == "timeout")


def not_run(check, reason, entries):
    """The entry of a check that this call does not run: what an earlier call has found stays."""
    if state_of(check, entries) == "timeout":
        return entries[check.name]
    return {"name": check.name, "state": "not run", "reason": reason}
