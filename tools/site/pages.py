#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages of the site: README, docs/ and the guides in other folders.

pages.py check             every relative link leads to a file, and to a heading if it names one; docs/README.md lists every page
pages.py stage DIRECTORY   copies the pages there as Sphinx takes them, with the tables of contents that docs/README.md gives
"""
import re
import sys
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

SOURCE = Path(__file__).resolve().parents[2]
PATTERNS = ("*.md", "docs/**/*.md", "models/**/*.md", "plugins/*.md", "plugins/abi/*.md", "plugins/sdk/*.md", "plugins/template/*.md",
            "plugins/examples/*/*.md", "backends/**/*.md", "tests/*.md", "tools/blas_shim/*.md", "tools/docker/*.md", "docs/notebooks/*.ipynb")
CONTENTS = "docs/README.md"
FENCE = re.compile(r"(^(?P<fence>`{3,})[^\n]*\n.*?^(?P=fence)`*$)", re.M | re.S)
CODE = re.compile(r"(?P<ticks>`+)(?!`)(?:(?!\n\n).)+?(?<!`)(?P=ticks)(?!`)", re.S)
LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\[\]]*)\]\((?P<target>[^()\s]+)\)")


def pages() -> List[str]:
    """The paths of the pages, relative to the source tree."""
    found = {path.relative_to(SOURCE).as_posix() for pattern in PATTERNS for path in SOURCE.glob(pattern)}
    return sorted(found)


def text_of(page: str) -> str:
    """The page as Markdown; a notebook's cells of text."""
    if page.endswith(".ipynb"):
        import json
        cells = json.loads((SOURCE / page).read_text(encoding="utf-8"))["cells"]
        return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return (SOURCE / page).read_text(encoding="utf-8")


def prose(text: str) -> str:
    """The text without its code."""
    parts = FENCE.split(text)
    return CODE.sub(lambda match: " " * len(match.group()), "".join(part for i, part in enumerate(parts) if i % 3 == 0))


def slug(heading: str) -> str:
    """The anchor that GitHub and MyST give to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower().replace("`", "")).replace(" ", "-")


def anchors(page: str) -> List[str]:
    """The anchors of a page; a heading that occurs again gets a number."""
    found: List[str] = []
    counts: Dict[str, int] = {}
    text = "".join(part for i, part in enumerate(FENCE.split(text_of(page))) if i % 3 == 0)
    for heading in re.findall(r"^#{1,6} +(.*?)\s*#*$", text, re.M):
        name = slug(LINK.sub(lambda match: match["text"], heading))
        counts[name] = counts.get(name, 0) + 1
        found.append(name if counts[name] == 1 else f"{name}-{counts[name] - 1}")
    return found


def resolve(page: str, target: str) -> Tuple[str, str]:
    """(path in the source tree, anchor) of a relative link."""
    file, _, anchor = target.partition("#")
    path = (SOURCE / page).parent / file if file else SOURCE / page
    full = Path(*_collapsed(path.parts))
    return (full.relative_to(SOURCE).as_posix() if full.is_relative_to(SOURCE) else f"../{file}"), anchor


def _collapsed(parts: Tuple[str, ...]) -> List[str]:
    out: List[str] = []
    for part in parts:
        if part == "..":
            out.pop()
        elif part != ".":
            out.append(part)
    return out


def links(page: str) -> Iterator[Tuple[str, str]]:
    """(text, target) of the relative links of a page."""
    for match in LINK.finditer(prose(text_of(page))):
        if not re.match(r"[a-z][a-z0-9+.-]*:", match["target"]):
            yield match["text"], match["target"]


def problems() -> List[str]:
    """What is wrong with the links, and pages that docs/README.md does not list."""
    all_pages = pages()
    known = {page: anchors(page) for page in all_pages}
    wrong = []
    for page in all_pages:
        for text, target in links(page):
            path, anchor = resolve(page, target)
            if not (SOURCE / path).exists():
                wrong.append(f"{page}: [{text}]({target}): expected a file or folder of the tree, got '{path}', which does not exist")
            elif anchor and path not in known:
                wrong.append(f"{page}: [{text}]({target}): expected a page, got '{path}', which is none: leave '#{anchor}' out")
            elif anchor and anchor not in known[path]:
                wrong.append(f"{page}: [{text}]({target}): expected a heading of {path}, got '#{anchor}'; it has {', '.join(known[path])}")
    listed = [page for _, section in contents() for page in section]
    for page in all_pages:
        if page not in listed and page not in (CONTENTS, "README.md"):
            wrong.append(f"{CONTENTS}: expected a row for every page, got none for {page}")
    for page in sorted({each for each in listed if listed.count(each) > 1}):
        wrong.append(f"{CONTENTS}: expected one link to each page, got several to {page}")
    return wrong


def contents() -> List[Tuple[str, Dict[str, str]]]:
    """The sections of docs/README.md, and the pages that each one links to, in their order, with the texts of the links."""
    sections: List[Tuple[str, Dict[str, str]]] = []
    known = set(pages())
    for part in re.split(r"^## ", text_of(CONTENTS), flags=re.M)[1:]:
        title, _, body = part.partition("\n")
        found: Dict[str, str] = {}
        for match in LINK.finditer(prose(body)):
            page = resolve(CONTENTS, match["target"])[0]
            if page in known:
                found.setdefault(page, " ".join(match["text"].split()))
        sections.append((title.strip(), found))
    return sections


FRONT = "index"  # the front page is README.md
HIDDEN = ("Decisions",)  # a section whose pages are listed under docs/README.md alone


def document(page: str) -> str:
    """The name of a page as a document of Sphinx."""
    return FRONT if page == "README.md" else re.sub(r"\.(md|ipynb)$", "", page)


def _relative(page: str, target: str) -> str:
    import os
    return os.path.relpath(target, (Path(document(page)).parent).as_posix() or ".")


def staged(page: str, text: str) -> str:
    """A page for Sphinx: links to pages keep their headings, links to other files become their text, pictures are found."""
    known = set(pages())

    def link(match: "re.Match[str]") -> str:
        if match["ticks"]:
            return match.group()
        target = match["target"]
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            return match.group()
        path, anchor = resolve(page, target)
        if match["image"]:
            return f"![{match['text']}]({_relative(page, path)})"
        if path in known:
            return f"[{match['text']}]({_relative(page, document(path) + '.md')}{'#' + anchor if anchor else ''})"
        return match["text"]

    parts = FENCE.split(text)
    either = re.compile(f"{LINK.pattern}|{CODE.pattern}", re.S)
    return "".join(either.sub(link, part) if i % 3 == 0 else part for i, part in enumerate(parts) if i % 3 != 2)


def toctree(caption: str, entries: List[str]) -> str:
    return "\n".join(["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *entries, "```", ""])


def stage(folder: Path, reference: List[str]) -> None:
    """Writes the pages; `reference` names further documents, which follow in the section Reference."""
    import shutil
    sections = contents()
    for page in pages():
        if page.endswith(".ipynb"):
            continue  # tools/site/notebooks.py writes them
        text = staged(page, re.sub(r"\A<!--.*?-->\s*", "", text_of(page), flags=re.S))
        if page == "README.md":
            for title, entries in sections:
                if title not in HIDDEN:
                    documents = [f"{name} </{document(each)}>" for each, name in entries.items()] + (reference if title == "Reference" else [])
                    text += toctree(title, documents)
            text += toctree("Everything", [f"All pages and decisions </{document(CONTENTS)}>"])
        elif page == CONTENTS:
            text += "".join(toctree(title, [f"/{document(each)}" for each in entries]) for title, entries in sections if title in HIDDEN)
        file = folder / f"{document(page)}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    shutil.copytree(SOURCE / "docs/images", folder / "docs/images", dirs_exist_ok=True)


def main() -> None:
    if sys.argv[1:2] == ["stage"] and len(sys.argv) >= 3:
        stage(Path(sys.argv[2]), sys.argv[3:])
    elif sys.argv[1:] == ["check"]:
        found = problems()
        for each in found:
            print(each, file=sys.stderr)
        print(f"{len(pages())} pages, {sum(1 for page in pages() for _ in links(page))} links, {len(found)} problems")
        sys.exit(1 if found else 0)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
