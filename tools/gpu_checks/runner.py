# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of a check."""
import glob
import os
import time

from gpu_checks import process, resume
from gpu_checks.budget import SHORTEST_S
from gpu_checks.checks import BUDGET, CASE_LIMIT, JOBS, PEER
from gpu_checks.machine import python_with_torch

SKIPPED = 77  # exit code of a test program that cannot run on this machine


class Runner:
    """Runs checks one after the other."""

    def __init__(self, results, budget, limit_s, environment, jobs, devices):
        self.results, self.budget, self.limit_s, self.environment = results, budget, limit_s, environment
        self.words = {JOBS: [str(jobs)]}  # what replaces a placeholder
        self.why_no_device = None if devices.found else devices.reason or "the backend has no device"

    def can_run(self, check):
        return not (check.needs_device and self.why_no_device)

    def run(self, check, later):
        """Runs a check, unless it lacks a device or time, and records and returns its entry. `later`: the checks that wait."""
        entries = self.results.entries
        if not self.can_run(check):
            entry = resume.not_run(check, self.why_no_device, entries)
        else:
            self.find_peer(check)
            limit_s = self.budget.limit_of(check.limit_s if self.limit_s is None else self.limit_s, any(map(self.can_run, later)))
            if limit_s is None:
                entry = resume.not_run(check, f"the time budget of {self.budget.seconds:g} s was used up", entries)
            else:
                # Should the script not survive this check, the next --resume starts with the others.
                self.results.put({"name": check.name, "state": "timeout", "reason": resume.INTERRUPTED})
                entry = run_check(check, limit_s, self.results.out, self.environment, self.words)
        if entry.get("cannot_be_killed"):
            self.why_no_device = f"a process of {check.name} cannot be killed"
        self.results.put(entry)
        return entry

    def find_peer(self, check):
        """Finds an interpreter with PyTorch, once, when a check that takes one is to run: that may take a minute."""
        left = self.budget.left()
        if check.takes(PEER) and PEER not in self.words and left >= SHORTEST_S:
            python = python_with_torch(min(60, left))
            self.words[PEER] = ["--python", python] if python else []


def words_of(command, words, limit_s):
    """The command with what replaces its placeholders."""
    # A case that hangs has to fail, by its own limit, before the kit's budget ends the run; and a slow start is no such case.
    words = {PEER: [], **words, BUDGET: [f"{max(0.1, 0.9 * limit_s):.1f}"], CASE_LIMIT: [f"{min(60, max(10, limit_s / 4)):g}"]}
    return [word for given in command for word in words.get(given, [given])]


def run_step(step, limit_s, log, environment, words, entry):
    """Runs a step and notes its command. Returns the exit code. Errors: process.TimedOut."""
    command = words_of(step.command, words, limit_s)
    log.write("$ " + " ".join(command) + "\n")
    log.flush()
    note = {"command": command, "exit_code": None}
    entry["commands"].append(note)
    start = time.monotonic()
    out = log
    try:
        if step.json_out:
            out = open(step.json_out, "w", encoding="utf-8")
        note["exit_code"] = process.run(command, limit_s, out, log, environment)
    except OSError as error:
        log.write(f"{error}\n")
        note["exit_code"] = 127
    finally:
        note["seconds"] = round(time.monotonic() - start, 3)
        if out is not log:
            out.close()
    return note["exit_code"]


def run_steps(check, limit_s, log, environment, words, entry):
    begin = time.monotonic()
    for step in check.steps:
        try:
            code = run_step(step, max(0.0, limit_s - (time.monotonic() - begin)), log, environment, words, entry)
        except process.TimedOut as stop:
            entry.update(state="timeout", reason=str(process.TimedOut(limit_s, stop.killed)))
            if not stop.killed:
                entry["cannot_be_killed"] = True
            log.write(f"\nstopped: {entry['reason']}\n")
            return
        if code == SKIPPED:
            if entry["state"] == "pass":
                entry.update(state="not run", reason="it found no device to run on: see its log")
        elif code != 0:
            entry.update(state="fail", reason=process.how_it_ended(code))


def run_check(check, limit_s, out, environment, words):
    """Runs a check within a time limit, and returns its entry in the summary."""
    for path in glob.glob(os.path.join(glob.escape(out), check.name + ".*")):  # of an earlier call, so that nothing of it is reported
        os.remove(path)
    entry = {"name": check.name, "state": "pass", "limit_s": round(limit_s, 1), "commands": []}
    begin = time.monotonic()
    with open(os.path.join(out, check.name + ".txt"), "w", encoding="utf-8") as log:
        run_steps(check, limit_s, log, environment, words, entry)
    entry["seconds"] = round(time.monotonic() - begin, 3)
    try:
        figures = check.after()
    except (OSError, ValueError, KeyError) as error:  # an incomplete report
        figures = {}
        entry.update(state="fail", reason=f"cannot read its report: {error}")
    incomplete = figures.pop("incomplete", False)
    if figures:
        entry["figures"] = figures
    if incomplete:
        entry.update(state="timeout", reason=f"not all cases ran in {limit_s:.0f} s")
    return entry
