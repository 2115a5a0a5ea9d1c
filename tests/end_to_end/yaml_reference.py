#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""yaml_reference.py TENON SOURCE: docs/yaml.md names every key that the readers know, and no other.

A reader names its keys when it meets an unknown one. Each row of a table is tried with one.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

UNKNOWN = "zzzzzzzz"
TRAIN = "model: {layers: [flatten]}\ndata: {source: digits}\nloss: mse\n"
# Per table: a file with the row's name and keys, and the name of the thing in the file without them.
FILES = {
    "layer": "layers: [{%s: {%s}}]\n",
    "initializer": "layers: [{dense: {units: 1, kernel_initializer: {name: %s, %s}}}]\n",
    "source": "model: {layers: [flatten]}\ndata: {source: %s, %s}\nloss: mse\n",
    "loss": "model: {layers: [flatten]}\ndata: {source: digits}\nloss: {name: %s, %s}\n",
    "metric": TRAIN + "metrics: [{name: %s, %s}]\n",
    "optimizer": TRAIN + "optimizer: {name: %s, %s}\n",
    "schedule": TRAIN + "optimizer: {name: sgd, learning_rate: {schedule: %s, %s}}\n",
    "callback": TRAIN + "callbacks: [{%s: {%s}}]\n",
}
# Values for keys that the reader requires before it looks for unknown ones.
REQUIRED = {"shape": "[1]", "p": "0.5", "body": "[flatten]", "parts": "[[flatten]]", "name": "leaky_relu", "schedule": "exponential",
            "order": "[1]"}
# Names that are documented in prose; variants of a row with keys of their own.
PROSE = {"layer": {"repeat"}}
VARIANTS = {"checkpoint": ["best: true, "]}


def known(tenon, place, text):
    """The keys or names that the error message about UNKNOWN lists."""
    file = place / "probe.yaml"
    file.write_text(text)
    message = subprocess.run([tenon, "config", "check", file], text=True, stderr=subprocess.PIPE).stderr
    found = re.search(rf"unknown key '[\w.]*{UNKNOWN}'; known keys: (.*)|expected one of (.*), got '{UNKNOWN}'", message)
    if not found:
        sys.exit(f"expected an error about {UNKNOWN}, got: {message}\nof\n{text}")
    return set(filter(None, (found[1] if found[2] is None else found[2]).split(", ")))


def keys_in(cell):
    return set(re.findall(r"`(\w+)`", cell))


def compare(what, documented, expected):
    for key in sorted(expected - documented):
        print(f"{what}: '{key}' is missing in docs/yaml.md")
    for key in sorted(documented - expected):
        print(f"{what}: docs/yaml.md has '{key}', which the reader does not know")
    return documented == expected


def main(tenon, source):
    page = (source / "docs/yaml.md").read_text()
    paragraphs = [" ".join(p.split()) for p in page.split("\n\n")]
    every = {m[1]: keys_in(m[2]) for p in paragraphs if (m := re.match(r"Every (\w+) also takes (.*)", p))}
    groups = {m[1]: re.sub(r"\([^)]*\)", "", m[2]) for p in paragraphs if (m := re.match(r"The \*(\w+ keys)\* are (.*)", p))}
    blocks = re.findall(r"^```yaml\n(.*?)^```$", page, flags=re.S | re.M)
    schema = subprocess.run([tenon, "config", "print", "--schema"], text=True, stdout=subprocess.PIPE, check=True).stdout
    good = True
    if blocks[2] != schema:
        good = False
        print("the last block of docs/yaml.md is not the output of `tenon config print --schema`: replace it")

    with tempfile.TemporaryDirectory() as folder:
        place, names = Path(folder), {}
        for table in re.findall(r"(?:^\|.*\n)+", page, flags=re.M):
            rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
            kind = rows[0][0]
            if kind not in FILES:
                continue
            for row in rows[2:]:
                cell = row[rows[0].index("keys")]
                for group, keys in groups.items():
                    cell = cell.replace(group, keys)
                documented = keys_in(cell) | every.get(kind, set())
                required = "".join(f"{key}: {REQUIRED.get(key, 1)}, " for key in re.findall(r"`(\w+)`!", cell))
                for name in re.findall(r"`(\w+)`", row[0]):
                    names.setdefault(kind, set()).add(name)
                    expected = set()
                    for variant in ["", *VARIANTS.get(name, [])]:
                        expected |= known(tenon, place, FILES[kind] % (name, f"{required}{variant}{UNKNOWN}: 1"))
                    good &= compare(f"{kind} {name}", documented, expected)
        for kind, documented in names.items():
            expected = known(tenon, place, FILES[kind] % (UNKNOWN, f"{UNKNOWN}: 1"))
            good &= compare(f"names of a {kind}", documented, expected - PROSE.get(kind, set()))
        top = [set(re.findall(r"^(\w+):", block, flags=re.M)) for block in blocks]
        good &= compare("model.yaml", top[0], known(tenon, place, f"layers: [flatten]\n{UNKNOWN}: 1\n"))
        good &= compare("train.yaml", top[1] | top[2], known(tenon, place, f"{TRAIN}{UNKNOWN}: 1\n"))
        if set(names) != set(FILES):
            sys.exit(f"docs/yaml.md lacks tables of {', '.join(sorted(set(FILES) - set(names)))}")
    return 0 if good else 1


sys.exit(main(sys.argv[1], Path(sys.argv[2])))
