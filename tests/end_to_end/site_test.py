#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""site_test.py <source directory>: what makes the site finds broken links and pages without a place, and converts pages and docstrings."""
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(sys.argv[1]) / "tools/site"))
import docstrings  # noqa: E402
import notebooks  # noqa: E402
import pages  # noqa: E402

FILES = {
    "README.md": "# Front\n[guide](docs/guide.md#a-part-with-code), [source](tools/a.py), `[no](link.md)`\n```\n[no](link.md)\n```\n",
    "docs/README.md": "# All\n## Guides\n| [The guide](guide.md) | x |\n## Decisions\n- [1. One](adr/0001-one.md)\n",
    "docs/guide.md": "# Guide\n## A part, with `code`\n[front](../README.md) ![picture](images/a.svg)\n",
    "docs/adr/0001-one.md": "# 1. One\n",
    "docs/images/a.svg": "<svg/>",
    "tools/a.py": "",
}


def problems_of(changes):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**FILES, **changes}.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        pages.SOURCE = Path(folder)
        if changes:
            return pages.problems()
        assert pages.problems() == []
        pages.stage(Path(folder) / "out", ["Python </reference>"])
        return {path.relative_to(Path(folder) / "out").as_posix(): path.read_text() for path in (Path(folder) / "out").rglob("*.md")}


def main():
    staged = problems_of({})
    assert sorted(staged) == ["docs/README.md", "docs/adr/0001-one.md", "docs/guide.md", "index.md"], staged
    front = staged["index.md"]
    assert front.startswith("# Front\n[guide](docs/guide.md#a-part-with-code), source, `[no](link.md)`\n```\n[no](link.md)\n```\n"), front
    assert ":caption: Guides\n\nThe guide </docs/guide>\n" in front and "Decisions" not in front
    assert ":caption: Decisions\n\n/docs/adr/0001-one\n" in staged["docs/README.md"]
    assert "[front](../index.md) ![picture](images/a.svg)" in staged["docs/guide.md"]

    for changes, expected in (
        ({"docs/guide.md": "[x](nowhere.md)"}, "'docs/nowhere.md', which does not exist"),
        ({"docs/guide.md": "# Guide\n[x](adr/0001-one.md#two)"}, "expected a heading of docs/adr/0001-one.md, got '#two'"),
        ({"docs/other.md": "# Other"}, "expected a row for every page, got none for docs/other.md"),
        ({"docs/guide.md": "# Guide\n## A part, with `code`\n[x](../tools/a.py#main)"}, "expected a page, got 'tools/a.py'"),
    ):
        found = problems_of(changes)
        assert any(expected in each for each in found), (changes, found)

    with tempfile.TemporaryDirectory() as folder:
        pages.SOURCE, notebooks.FOLDER = Path(folder), Path(folder)
        cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": "1", "outputs": [{"output_type": "stream"}], "execution_count": 1}
        (Path(folder) / "x.ipynb").write_text(json.dumps({"cells": [cell]}))
        assert len(notebooks.stored_outputs()) == 1

    text = docstrings.converted(["Sum of *all*.", "", "x     what_is added,", "      and more", "Errors  none", "", "    code(1)", "", "After `code`."])
    assert text == ["Sum of \\*all\\*.", "", "``x``", "   what\\_is added,", "   and more", "``Errors``", "   none", "", "", "::", "", "    code(1)", "", "",
                    "After ``code``.", ""], text
    print("the site's tools find what is wrong")


if __name__ == "__main__":
    main()
