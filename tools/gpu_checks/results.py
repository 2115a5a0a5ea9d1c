# SPDX-License-Identifier: Apache-2.0
"""summary.json, which is complete at any time."""
import contextlib
import json
import os


def write_whole(path, write):
    """Calls write(temporary path) and renames the file, so that `path` is complete at any time. Errors: OSError, without a file left."""
    part = path + ".part"
    try:
        write(part)
        os.replace(part, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.remove(part)
        raise


class Results:
    """The entries of the checks by name, and facts about the call."""

    def __init__(self, out, facts, entries):
        self.out, self.facts, self.entries = out, facts, entries

    def put(self, entry):
        """Adds an entry, or replaces that of the same check, and writes the file, so that an interrupted run keeps its results."""
        self.entries[entry["name"]] = entry

        def write(path):
            with open(path, "w", encoding="utf-8") as file:
                json.dump({**self.facts, "checks": list(self.entries.values())}, file, indent=1)
                file.write("\n")

        write_whole(os.path.join(self.out, "summary.json"), write)

    def states(self):
        return [entry["state"] for entry in self.entries.values()]
