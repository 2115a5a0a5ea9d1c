# SPDX-License-Identifier: Apache-2.0
"""The lines of mutants.def."""
import argparse
import pathlib
import re
import types

_TEXT = r'\s*"([^"]*)"\s*'
_UNMODIFIED = re.compile(r"^UNMODIFIED\((\w+), (\w+)," + ",".join([_TEXT] * 2) + r"\)", re.M)
_MUTANT = re.compile(r"^MUTANT\((\w+), (\w+), (\w+)," + ",".join([_TEXT] * 4) + r"\)", re.M)
_LINE = re.compile(r"^(?:UNMODIFIED|MUTANT)\((\w+)", re.M)


def read(path):
    """By name: profile, filter, what; for mutants ends, case and words too."""
    text = pathlib.Path(path).read_text()
    entries = {}
    for name, profile, cases, what in _UNMODIFIED.findall(text):
        entries[name] = types.SimpleNamespace(name=name, unmodified=True, ends="never", profile=profile, filter=cases, what=what)
    for name, ends, profile, cases, case, words, what in _MUTANT.findall(text):
        entries[name] = types.SimpleNamespace(name=name, unmodified=False, ends=ends, profile=profile, filter=cases, case=case, words=words,
                                              what=what)
    unread = set(_LINE.findall(text)) - set(entries)
    if unread:
        raise SystemExit(f"{path}: lines of the list that cannot be parsed: {', '.join(sorted(unread))}")
    return entries


# How Windows reports what the list calls signals.
_WINDOWS = {"signal 11": "exception 0xc0000005", "signal 6": "exit code 3", "signal": "exception"}


def arguments(description, *others):
    """The command line of a program that examines one plugin, and the plugin's line. Programs are lists: how they are called."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--plugins", required=True, type=pathlib.Path)
    for name in ("--list", "--name"):
        parser.add_argument(name, required=True)
    for name in ("--tenon", *others):
        parser.add_argument(name, required=True, type=lambda path: [path])
    parser.add_argument("--emulator", help="runs the programs of a build for another system")
    given = parser.parse_args()
    if given.emulator:
        for name in ("--tenon", *others):
            getattr(given, name.lstrip("-")).insert(0, given.emulator)
    entry = read(given.list)[given.name]
    entry.plugin = given.plugins / f"libtenon_backend_{entry.name}.so"
    if not entry.plugin.exists():  # the Windows build
        entry.plugin = given.plugins / f"tenon_backend_{entry.name}.dll"
        if not entry.unmodified:
            entry.words = _WINDOWS.get(entry.words, entry.words)
    return given, entry
