"""Holds the runtime to surviving one plugin of mutants.def: `tenon doctor` whatever it does, a normal program whatever can be survived."""
import argparse
import json
import pathlib
import subprocess
import sys

import mutants

# What the doctor says of a plugin that takes a process down, and when.
FATES = {
    "segfault": "crashed (signal 11, Segmentation fault)",
    "aborts": "crashed (signal 6, Aborted)",
    "exits": "ended the process (exit code 0)",
    "hangs": "did not return within 2 s",
}
DEEDS = {
    "query": "while the library was opened and its tenon_backend_query was asked",
    "create": "in its `create`, or while it named its devices",
    "shutdown": "while it was shut down",
}
STAGES = {"query": "found", "create": "self-check", "shutdown": "devices"}


def demand(condition, text):
    if not condition:
        sys.exit(text)


def call(command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", timeout=300)


def examine(arguments, entry, plugin):
    """The doctor's report is whole, others are healthy, and this one has its line."""
    done = call([arguments.tenon, "doctor", "--plugin", plugin, "--format", "json", "--timeout", "2" if entry.name.startswith("hangs") else "60"])
    demand(done.returncode == 0, f"doctor: exit code {done.returncode}: {done.stdout}{done.stderr}")
    backends = {backend["name"]: backend for backend in json.loads(done.stdout)["backends"]}
    demand(backends["reference"]["state"] == "healthy", "doctor: the reference backend is not healthy any more")
    demand(entry.name in backends, f"doctor: no word about {entry.name}")
    told = backends[entry.name]
    print(json.dumps({key: told.get(key) for key in ("state", "stage", "reason", "remedy", "warnings")}, indent=1))
    if entry.ends in DEEDS:
        fate = f"the plugin {FATES[entry.name.split('_')[0]]} {DEEDS[entry.ends]}"
        demand(told["reason"] == fate, f"doctor: wanted '{fate}', got '{told['reason']}'")
        demand(told["stage"] == STAGES[entry.ends], f"doctor: wanted stage {STAGES[entry.ends]}, got {told['stage']}")
    if told["state"] != "healthy":
        demand(told["state"] == "not usable" and told["reason"] and told["remedy"] and told["stage"], f"doctor: {entry.name} is refused without a reason, a stage or a remedy")


def meet(arguments, plugin, how):
    """Programs in whose process the plugin is loaded."""
    done = call([arguments.program, plugin, how])
    print(done.stdout, done.stderr)
    demand(done.returncode == 0, f"the program ended with {done.returncode}")
    demand("reference:0: works" in done.stdout, "the program did not work")
    for verb in ("backends", "devices"):
        done = call([arguments.tenon, verb, "--plugin", plugin])
        demand(done.returncode == 0, f"tenon {verb}: exit code {done.returncode}: {done.stderr}")
        demand("reference" in done.stdout, f"tenon {verb}: the reference backend is missing: {done.stdout}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--plugins", required=True, type=pathlib.Path)
    parser.add_argument("--tenon", required=True)
    parser.add_argument("--program", required=True)
    arguments = parser.parse_args()
    entry = mutants.read(arguments.list)[arguments.name]
    plugin = arguments.plugins / f"libtenon_backend_{entry.name}.so"
    examine(arguments, entry, plugin)
    if entry.ends in ("never", "execute"):
        meet(arguments, plugin, "use" if entry.ends == "never" else "avoid")


main()
