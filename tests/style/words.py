#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps the words of words.txt out of the tree: words.py [--root DIR] prints each place with the word to use instead and exits with 1 if
there is one. words.py --self-test shows that the check finds the example of each pattern, in a file of its own."""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# Changes and decisions keep the words of their time, archives and corpora are data, and this folder quotes the words.
EXEMPT = re.compile(r"(^|/)CHANGELOG\.md$|^docs/adr/|^tests/abi/archive/|^tests/fuzz/corpus/|^tests/style/|^LICENSE$")


def patterns():
    """(compiled pattern, replacement, example) of each entry of words.txt."""
    entries = []
    for number, line in enumerate((HERE / "words.txt").read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != 3:
            sys.exit(f"tests/style/words.txt:{number}: expected pattern, replacement and example separated by tabs, got {len(fields)} fields")
        entries.append((re.compile(fields[0]), fields[1], fields[2]))
    return entries


def suspects(root, entries, *options):
    """The files below `root`, by default those that git tracks, in which git finds one of the patterns, far sooner than Python would."""
    command = ["git", "-C", str(root), "grep", *options, "--files-with-matches", "--null", "--perl-regexp", "-I"]
    for pattern, _, _ in entries:
        command += ["-e", pattern.pattern]
    searched = subprocess.run(command, capture_output=True, text=True)
    if searched.returncode not in (0, 1):  # 1: none
        sys.exit(f"git grep failed: {searched.stderr.strip()}")
    return [name for name in searched.stdout.split("\0") if name]


def findings(root, *options):
    """A message for each place in the files of suspects()."""
    entries = patterns()
    found = []
    for name in suspects(root, entries, *options):
        path = root / name
        if EXEMPT.search(name) or not path.is_file() or path.is_symlink():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            for pattern, use, _ in entries:
                match = pattern.search(line)
                if match:
                    found.append(f"{name}:{number}: '{match.group(0)}': use {use}")
    return found


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for i, (pattern, use, example) in enumerate(patterns()):
            (root / f"{i}.md").write_text(f"a line before\n{example}\n")
            found = [message for message in findings(root, "--no-index") if message.startswith(f"{i}.md")]
            if not any(":2: " in message and use in message for message in found):
                sys.exit(f"words.txt: the pattern {pattern.pattern!r} does not find its example {example!r}")
        (root / "clean.md").write_text("expected 3 inputs, got 2; the option `threads` of the backend\n")
        wrong = [message for message in findings(root, "--no-index") if message.startswith("clean.md")]
        if wrong:
            sys.exit(f"a clean line is reported: {wrong}")
    print(f"{len(patterns())} patterns, each finds its example")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, default=HERE.parent.parent)
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    listed = subprocess.run(["git", "-C", str(arguments.root), "ls-files", "-z"], capture_output=True, text=True)
    if listed.returncode != 0:
        print("skipped: no git checkout, which says what is tracked")
        sys.exit(77)
    found = findings(arguments.root)
    print("\n".join(found[:100]))
    if found:
        sys.exit(f"{len(found)} places use words that tests/style/words.txt replaces")
    print(f"words: {listed.stdout.count(chr(0))} files, none of the words of tests/style/words.txt")


if __name__ == "__main__":
    main()
