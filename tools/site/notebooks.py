#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the notebooks of docs/notebooks, which are stored without their outputs.

notebooks.py run [--plain] [NAME...]   in a kernel of Jupyter (Debian: python3-nbclient python3-ipykernel); --plain: the cells of code one
                                       after another in a Python process, without Jupyter and IPython
notebooks.py stage DIRECTORY           runs them in a kernel, and writes them with their outputs as pages for Sphinx
notebooks.py check                     no outputs and execution counts are stored

A cell with the tag needs-matplotlib is left out where matplotlib is missing. Exit status 77: nbclient or ipykernel is missing.
"""
import base64
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List

sys.path.insert(0, str(Path(__file__).resolve().parent))
import pages  # noqa: E402

FOLDER = pages.SOURCE / "docs/notebooks"
TAG = "needs-"


def notebooks(names: List[str]) -> List[Path]:
    found = sorted(FOLDER.glob("*.ipynb"))
    unknown = [name for name in names if name not in [each.stem for each in found]]
    if unknown:
        sys.exit(f"notebooks: expected names of {', '.join(each.stem for each in found)}, got {', '.join(unknown)}")
    return [each for each in found if not names or each.stem in names]


def cells_to_run(path: Path) -> Dict[str, Any]:
    """The notebook without the cells whose packages are missing, each of which is said."""
    notebook: Dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    kept = []
    for cell in notebook["cells"]:
        missing = [tag[len(TAG):] for tag in cell["metadata"].get("tags", []) if tag.startswith(TAG) and importlib.util.find_spec(tag[len(TAG):]) is None]
        if missing:
            print(f"{path.stem}: {cell['id']} is left out: no {', '.join(missing)}")
        else:
            kept.append(cell)
    notebook["cells"] = kept
    return notebook


def run_plainly(path: Path) -> None:
    """Runs the cells of code in a process of its own, in an empty folder; their output goes on."""
    sources = [("".join(cell["source"]), cell["id"]) for cell in cells_to_run(path)["cells"] if cell["cell_type"] == "code"]
    script = ("import json, sys\nnames = {'__name__': '__main__'}\n"
              "for source, cell in json.load(sys.stdin):\n    exec(compile(source, cell, 'exec'), names)\n")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, "-c", script], input=json.dumps(sources), text=True, cwd=folder, check=False,
                              env={**os.environ, "MPLBACKEND": "agg"})
    if done.returncode:
        sys.exit(f"{path.stem}: a cell failed; its name and line are in the traceback above")


def run_in_kernel(path: Path) -> Any:
    """The notebook with its outputs."""
    import nbformat
    from nbclient import NotebookClient
    notebook = nbformat.reads(json.dumps(cells_to_run(path)), as_version=4)
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # the kernel's debugger warns otherwise
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    return notebook


def _joined(value: Any) -> str:
    return "".join(value) if isinstance(value, list) else str(value)


def output_as_markdown(output: Dict[str, Any], pictures: Path, name: str) -> str:
    if output["output_type"] == "stream":
        return f"```text\n{_joined(output['text']).rstrip()}\n```\n"
    data = output.get("data", {})
    if "text/html" in data:
        return f"```{{raw}} html\n<div class=\"cell-output\">{_joined(data['text/html'])}</div>\n```\n"
    if "image/png" in data:
        (pictures / f"{name}.png").write_bytes(base64.b64decode(_joined(data["image/png"])))
        return f"![]({name}.png)\n"
    return f"```text\n{_joined(data.get('text/plain', '')).rstrip()}\n```\n"


def joined_streams(outputs: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """The outputs with each run of text to one stream as one output."""
    out: List[Dict[str, Any]] = []
    for each in outputs:
        if out and each["output_type"] == out[-1]["output_type"] == "stream" and each["name"] == out[-1]["name"]:
            out[-1] = {**out[-1], "text": _joined(out[-1]["text"]) + _joined(each["text"])}
        else:
            out.append(each)
    return out


def stage(folder: Path) -> None:
    """Writes each notebook as a page."""
    for path in notebooks([]):
        notebook = run_in_kernel(path)
        page = path.relative_to(pages.SOURCE).as_posix()
        target = folder / f"{pages.document(page)}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        parts = []
        for i, cell in enumerate(notebook["cells"]):
            if cell["cell_type"] == "markdown":
                parts.append(pages.staged(page, _joined(cell["source"])))
                continue
            parts.append(f"```python\n{_joined(cell['source'])}\n```")
            parts += [output_as_markdown(output, target.parent, f"{path.stem}-{i}-{j}") for j, output in enumerate(joined_streams(cell["outputs"]))]
        target.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def stored_outputs() -> List[str]:
    """Cells that were stored with what they printed."""
    return [f"{path.relative_to(pages.SOURCE)}: {cell['id']} has outputs: clear them before the file is stored" for path in notebooks([])
            for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell.get("outputs") or cell.get("execution_count")]


def expect_jupyter() -> None:
    missing = [name for name in ("nbclient", "nbformat", "ipykernel") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"skipped: no {', '.join(missing)}; tools/setup --docs installs them")
        sys.exit(77)


def main() -> None:
    command, arguments = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else ("", [])
    if command == "run":
        plain = "--plain" in arguments
        if not plain:
            expect_jupyter()
        for path in notebooks([each for each in arguments if each != "--plain"]):
            run_plainly(path) if plain else run_in_kernel(path)
            print(f"{path.stem}: ran" + (" without Jupyter" if plain else " in a kernel"))
    elif command == "stage" and len(arguments) == 1:
        expect_jupyter()
        stage(Path(arguments[0]))
    elif command == "check" and not arguments:
        wrong = stored_outputs()
        print("\n".join(wrong) or f"{len(notebooks([]))} notebooks are stored without outputs")
        sys.exit(1 if wrong else 0)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
