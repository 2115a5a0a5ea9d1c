# SPDX-License-Identifier: Apache-2.0
"""Checks the conformance kit with one plugin of mutants.def: the named case fails and says why; an unmodified backend passes."""
import fnmatch
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import mutants

# A mutant that hangs is killed after the first number of seconds; all others need a fraction of the second.
HANG_SECONDS, PATIENCE_SECONDS = 2, 100


def glob(pattern):
    """Only * and ? are special, as in the kit's filters."""
    return re.sub(r"\[", "[[]", pattern)


def run(arguments, entry, cases):
    """The kit's exit code and its report."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "report.json"
        timeout = HANG_SECONDS if entry.name.startswith("hangs") else PATIENCE_SECONDS
        command = [*arguments.tenon, "conformance", "--plugin", entry.plugin, "--profile", entry.profile, "--filter", cases, "--format", "json",
                   "--timeout", str(timeout), "--out", out]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=600)
        if not out.exists():
            sys.exit(f"{entry.name}: no report, exit code {done.returncode}: {done.stdout}")
        return done.returncode, json.loads(out.read_text())


def failed(case):
    return case["class"] == "fail" or (case["class"] == "unsupported" and case["mandatory"])


def judge_unmodified(arguments, entry):
    passed = 0
    for cases in entry.filter.split():
        code, report = run(arguments, entry, cases)
        for case in report["cases"]:
            if failed(case):
                sys.exit(f"{entry.name}: {case['name']} fails for an unmodified backend: {case['text']}")
        if code != 0:
            sys.exit(f"{entry.name}: exit code {code} for {cases}, expected 0")
        if report["summary"]["pass"] == 0:
            sys.exit(f"{entry.name}: no case of {cases} passed")
        passed += report["summary"]["pass"]
    print(f"{entry.name}: {passed} cases pass")


def judge_mutant(arguments, entry):
    code, report = run(arguments, entry, entry.filter)
    failures = [case for case in report["cases"] if failed(case)]
    for case in failures:
        print(f"{case['name']}: {case['text']}")
    if code != 1:
        sys.exit(f"{entry.name}: exit code {code}, expected 1")
    for case in failures:
        if not case["text"]:
            sys.exit(f"{entry.name}: {case['name']} fails and does not say why")
    named = [case for case in failures if fnmatch.fnmatchcase(case["name"], glob(entry.case))]
    if not named:
        sys.exit(f"{entry.name}: {entry.case} does not fail ({entry.what})")
    if not any(entry.words in case["text"] for case in named):
        sys.exit(f"{entry.name}: {entry.case} fails, but does not say '{entry.words}'")


def main():
    arguments, entry = mutants.arguments(__doc__)
    (judge_unmodified if entry.unmodified else judge_mutant)(arguments, entry)


main()
