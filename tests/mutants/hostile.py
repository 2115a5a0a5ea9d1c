# SPDX-License-Identifier: Apache-2.0
"""Checks that the runtime survives one plugin of mutants.def: `tenon doctor`, and a normal program that finds it, which loads it in a child
process first."""
import json
import os
import subprocess
import sys

import mutants

# What the doctor reports for a plugin that ends its process, and when.
FATES = {
    "segfault": "crashed (signal 11, Segmentation fault)",
    "aborts": "crashed (signal 6, Aborted)",
    "exits": "exited the process (exit code 0)",
    "hangs": "did not return within 2 s",
}
FATES_ON_WINDOWS = {
    **FATES,
    "segfault": "crashed (exception 0xc0000005, access violation)",
    "aborts": "exited the process (exit code 3)",
}
MOMENTS = {
    "query": "while loading the library and calling its tenon_backend_query",
    "create": "in its `create` or while listing its devices",
    "shutdown": "during shutdown",
    "exit": "after shutdown, when the process was to end",
}
STAGES = {"query": "found", "create": "self-check", "shutdown": "devices", "exit": "devices"}


def require(condition, text):
    if not condition:
        sys.exit(text)


def call(command, **environment):
    return subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", timeout=300)


def examine(arguments, entry):
    """The doctor's report is complete, other backends are healthy, and this one is listed."""
    done = call([*arguments.tenon, "doctor", "--plugin", entry.plugin, "--format", "json", "--timeout", "2" if entry.name.startswith("hangs") else "60"])
    require(done.returncode in (0, 1) and done.stdout, f"doctor: expected a report and exit code 0 or 1, got {done.returncode}: {done.stdout}{done.stderr}")
    backends = {backend["name"]: backend for backend in json.loads(done.stdout)["backends"]}
    require(backends["reference"]["state"] == "healthy", "doctor: the reference backend is no longer healthy")
    require(entry.name in backends, f"doctor: {entry.name} is not listed")
    reported = backends[entry.name]
    without_device = reported["stage"] == "created" and reported["code"] != "INTERNAL"
    broken = reported["state"] == "not usable" and not without_device and not reported["missing"]
    require(done.returncode == broken, f"doctor: exit code {done.returncode} although the plugin is {reported['state']}")
    print(json.dumps({key: reported.get(key) for key in ("state", "stage", "reason", "remedy", "warnings")}, indent=1))
    if entry.ends in MOMENTS:
        fates = FATES_ON_WINDOWS if entry.plugin.suffix == ".dll" else FATES
        fate = f"the plugin {fates[entry.name.split('_')[0]]} {MOMENTS[entry.ends]}"
        require(reported["reason"] == fate, f"doctor: expected '{fate}', got '{reported['reason']}'")
        require(reported["stage"] == STAGES[entry.ends], f"doctor: expected stage {STAGES[entry.ends]}, got {reported['stage']}")
    if reported["state"] != "healthy":
        require(reported["state"] == "not usable" and reported["reason"] and reported["remedy"] and reported["stage"], f"doctor: {entry.name} is refused without a reason, a stage or a remedy")


def run_programs(arguments, plugin, how):
    """Runs programs that load the plugin into their process."""
    done = call([*arguments.program, plugin, how])
    print(done.stdout, done.stderr)
    require(done.returncode == 0, f"the program ended with {done.returncode}")
    require("reference:0: works" in done.stdout, "the program did not work")
    for verb in ("backends", "devices"):
        done = call([*arguments.tenon, verb], TENON_BACKEND_PATH=plugin)
        require(done.returncode == 0, f"tenon {verb}: exit code {done.returncode}: {done.stderr}")
        require("reference" in done.stdout, f"tenon {verb}: the reference backend is missing: {done.stdout}")


def main():
    arguments, entry = mutants.arguments(__doc__, "--program")
    examine(arguments, entry)
    if not entry.name.startswith("hangs"):  # a probe waits half a minute for it
        run_programs(arguments, entry.plugin, "use" if entry.ends == "never" else "avoid")


main()
