# SPDX-License-Identifier: Apache-2.0
"""docs/python.md: its snippets run, and its names exist; each public name has a docstring and types."""
import inspect
import pathlib
import re

import numpy

import tenon

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"
MODULES = [tenon, tenon.backends, tenon.blas, tenon.callbacks, tenon.datasets, tenon.initializers, tenon.layers, tenon.log, tenon.losses,
           tenon.metrics, tenon.nn, tenon.nn.functional, tenon.ops, tenon.optimizers, tenon.quantization, tenon.random, tenon.schedules]


def smaller(snippet):
    """The snippet with few generated digits as its data."""
    replaced = re.sub(r'fashion_mnist\("path/to/fashion-mnist"\)|digits\(\)', "digits(train_count=300, test_count=100)", snippet)
    assert replaced != snippet
    return replaced


def test_the_snippets_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", PAGE.read_text(), re.S)
    train, session, serving, blas = [code for code, shown in blocks if not shown]
    exec(smaller(train), {})
    assert "Epoch 5/5" in capsys.readouterr().out
    names = {"x": numpy.zeros((2, 28, 28), "float32")}
    exec(session.replace("model.onnx", "fashion.onnx"), names)
    assert names["outputs"][0].shape == (2, 10)
    exec(serving.replace("model.", "fashion."), names)
    assert names["scores"].shape == (2, 10) and "total ms" in capsys.readouterr().out
    exec(blas, names)
    assert names["c"].tolist() == [[6] * 4] * 2 and names["y"].tolist() == [0.5] * 3
    capsys.readouterr()
    tenon.random.seed(0)
    for code, shown in [block for block in blocks if block[1]]:
        exec(code, {})
        printed = capsys.readouterr().out
        # Sums are rounded as the processor adds them, and training goes on from there.
        same = re.sub(r"accuracy 0[.]\d+", "accuracy", printed) == re.sub(r"accuracy 0[.]\d+", "accuracy", shown)
        assert same, f"{code}prints\n{printed}where docs/python.md has\n{shown}"
    accuracy = float(printed.split()[-1])
    assert abs(accuracy - float(shown.split()[-1])) < 0.05


def test_the_snippets_of_the_chinese_quick_start_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train, session = re.findall(r"```python\n(.*?)```", (PAGE.parent / "zh" / "quick-start.md").read_text(encoding="utf-8"), re.S)
    exec(smaller(train), {})
    names = {}
    exec(session, names)
    assert names["outputs"][0].shape == (1, 10)


def test_the_snippet_of_the_readme_runs(capsys):
    (snippet,) = re.findall(r"```python\n(.*?)```", (PAGE.parents[1] / "README.md").read_text(encoding="utf-8"), re.S)
    exec(smaller(snippet), {})
    assert "Epoch 2/2" in capsys.readouterr().out


def test_the_names_of_the_table_exist():
    table = PAGE.read_text().split("## Names")[1].split("## Models")[0]
    found = [name for line in table.splitlines() if line.startswith("| `") for name in re.findall(r"`([A-Za-z_.0-9]+)`", line.split("|")[1])]
    assert len(found) > 40
    import tenon.onnx_backend  # noqa: F401
    for name in found:
        value = tenon
        for part in name.split("."):
            value = getattr(value, part)


def public_functions():
    for module in MODULES:
        for name in getattr(module, "__all__", dir(module)):
            value = getattr(module, name)
            if name.startswith("_") or not (inspect.isfunction(value) or inspect.isclass(value)) or not value.__module__.startswith("tenon"):
                continue
            yield f"{module.__name__}.{name}", value
            if inspect.isclass(value):
                for member, function in vars(value).items():
                    function = getattr(function, "fget", getattr(function, "__func__", function))
                    if not member.startswith("_") and inspect.isfunction(function):
                        yield f"{module.__name__}.{name}.{member}", function


def test_public_names_are_documented_and_typed():
    wrong, count = [], 0
    for name, value in public_functions():
        count += 1
        if not value.__doc__:
            wrong.append(f"{name} has no docstring")
        if inspect.isfunction(value):
            parameters = inspect.signature(value).parameters.values()
            untyped = [each.name for each in parameters if each.annotation is inspect.Parameter.empty and each.name not in ("self", "cls")]
            if untyped or "return" not in value.__annotations__:
                wrong.append(f"{name} has no types for {[*untyped, 'the result']}")
    assert count > 300 and wrong == []
