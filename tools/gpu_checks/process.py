# SPDX-License-Identifier: Apache-2.0
"""Runs a program with a time limit that its children have too."""
import contextlib
import os
import signal
import subprocess
import tempfile

KILL_GRACE_S = 10  # a killed process that has not ended after this sleeps in the kernel, as in a driver after an error of the GPU


class TimedOut(Exception):
    """The time limit has passed. `killed`: the process has ended since."""

    def __init__(self, limit_s, killed):
        super().__init__(f"timed out after {limit_s:g} s" + ("" if killed else ", and the process cannot be killed"))
        self.killed = killed


def kill(child):
    """Kills a child and the children that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def run(command, limit_s, stdout, stderr, environment=None):
    """The exit code of a command, negative for a signal. Errors: OSError if it cannot be started, TimedOut."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, env=environment, start_new_session=True)
    try:
        return child.wait(timeout=limit_s)
    except subprocess.TimeoutExpired:
        kill(child)
    except BaseException:
        kill(child)
        raise
    try:
        child.wait(timeout=KILL_GRACE_S)
    except subprocess.TimeoutExpired:
        raise TimedOut(limit_s, killed=False) from None
    raise TimedOut(limit_s, killed=True)


def run_captured(command, limit_s, environment=None):
    """(exit code, standard output, standard error) of a command. Errors: those of run()."""
    # Files, because a pipe ends only when every process has closed it that has it.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        code = run(command, limit_s, out, err, environment)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", errors="replace"))
        return (code, *texts)


def output_of(command, limit_s=60):
    """The output of a command; None if it is missing, fails or hangs."""
    try:
        code, out, _ = run_captured(command, limit_s)
    except (OSError, TimedOut):
        return None
    return out if code == 0 else None


def how_it_ended(code):
    """An exit code in words."""
    if code >= 0:
        return f"exit code {code}"
    with contextlib.suppress(ValueError):
        return f"killed by signal {-code} ({signal.Signals(-code).name})"
    return f"killed by signal {-code}"
