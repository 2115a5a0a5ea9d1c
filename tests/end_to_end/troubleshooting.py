#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""troubleshooting.py <source directory>: each message that a heading of docs/troubleshooting.md quotes is a text of the sources.

The page writes … for what differs. In the sources there may be a placeholder of fmt or of an f-string, or a concatenation, instead.
"""
import re
import sys
from pathlib import Path

source = Path(sys.argv[1])
FOREIGN = ("error: externally-managed-environment",)  # messages of other programs
PLACEHOLDER = r'(?:\{[^{}"]*\}|"[^"]{0,200}?"|[^"]{0,40}?)'


def texts() -> str:
    """The sources with adjacent literals joined, without escapes."""
    files = [path for folder in ("runtime", "plugins", "backends", "tools") for path in (source / folder).rglob("*")
             if path.suffix in (".cpp", ".h", ".py", ".cu", ".c") and path.is_file()]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(files))
    return re.sub(r'"\s*f?"', "", text).replace("{{", "{").replace("}}", "}")


def is_in(message: str, text: str) -> bool:
    """Whether the fixed parts of a message follow one another in the text, with a placeholder between each two."""
    parts = [part for part in message.split("…") if part.strip()]
    rest = re.compile(PLACEHOLDER.join(re.escape(part) for part in message.strip("…").split("…")))
    longest = max(parts, key=len)
    offset = message.strip("…").index(longest)
    return any(rest.search(text, max(0, match.start() - offset - 400), match.end() + 600) for match in re.finditer(re.escape(longest), text))


def main() -> None:
    page = (source / "docs/troubleshooting.md").read_text(encoding="utf-8")
    messages = re.findall(r"^### `(.*)`$", page, re.M)
    known = texts()
    missing = [message for message in messages if message not in FOREIGN and not is_in(message, known)]
    for message in missing:
        print(f"docs/troubleshooting.md: expected a text of the sources, got a heading that none of them has: {message}")
    # The check itself finds a message that was changed.
    assert len(messages) > 15 and not is_in("device '…' is nowhere; available: …", known)
    print(f"{len(messages)} messages, {len(missing)} of them not in the sources")
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
