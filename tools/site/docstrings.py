# SPDX-License-Identifier: Apache-2.0
"""An extension of Sphinx: the docstrings of the package, in which columns of names and texts describe arguments, as reStructuredText."""
import re
from typing import Any, List

ITEM = re.compile(r"^(?P<name>\S(?:.*?\S)?) {2,}(?P<text>\S.*)$")


def escaped(text: str) -> str:
    """Text as literal reStructuredText, except for `code`."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(f"``{part[1:-1]}``" if part.startswith("`") and part.endswith("`") and len(part) > 2 else re.sub(r"([*_|\\`])", r"\\\1", part)
                   for part in parts)


def converted(lines: List[str]) -> List[str]:
    """The lines of a docstring as reStructuredText."""
    out: List[str] = []
    item = False  # whether the last line belongs to the text of a name
    code = False
    for line in lines:
        stripped = line.strip()
        indent = len(line) - len(line.lstrip())
        if not stripped:
            out.append("")
            item = False
            continue
        if indent >= 4 and not item:
            if not code:
                out += ["", "::", ""]
            code = True
            out.append(line)
            continue
        if code:
            out.append("")
            code = False
        match = ITEM.match(stripped)
        if item and indent > 0:
            out.append(f"   {escaped(stripped)}")
        elif match and indent == 0:
            if not item and out and out[-1]:
                out.append("")
            out += [f"``{match['name']}``", f"   {escaped(match['text'])}"]
            item = True
        else:
            if item:
                out.append("")
            out.append(escaped(stripped))
            item = False
    return out + [""]


def process(app: Any, what: str, name: str, value: Any, options: Any, lines: List[str]) -> None:
    lines[:] = converted(lines)


def setup(app: Any) -> Any:
    app.connect("autodoc-process-docstring", process)
    return {"version": "1", "parallel_read_safe": True}
