# SPDX-License-Identifier: Apache-2.0
"""What notebooks show: progress, plots, explanations as tables and pictures, the log."""
import logging
import subprocess
import sys
import types
import xml.etree.ElementTree as xml

import pytest

import tenon
from tenon import layers

SVG = "{http://www.w3.org/2000/svg}"


def classifier(context=None):
    model = tenon.Sequential([layers.Flatten(), layers.Dense(16, activation="relu"), layers.Dense(12, activation="relu"), layers.Dense(10)], context=context)
    return model.compile("adam", loss={"name": "sparse_categorical_crossentropy", "from_logits": True}, metrics=["accuracy"])


@pytest.fixture
def kernel(monkeypatch):
    """A stand-in for IPython in a kernel: the list of outputs, each a list of its states as HTML and text."""
    outputs = []

    class Handle:
        def __init__(self, states):
            self.states = states

        def update(self, value):
            self.states.append((value._repr_html_(), repr(value)))

    def display(value, display_id=False):
        assert display_id
        outputs.append([])
        handle = Handle(outputs[-1])
        handle.update(value)
        return handle

    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    ipython.display = types.ModuleType("IPython.display")
    ipython.display.display = display
    for name, module in (("ipykernel", types.ModuleType("ipykernel")), ("IPython", ipython), ("IPython.display", ipython.display)):
        monkeypatch.setitem(sys.modules, name, module)
    return outputs


def test_a_fit_in_a_notebook_updates_one_output(kernel, capsys):
    digits = tenon.datasets.digits(train_count=300, test_count=50)
    history = classifier().fit(digits, epochs=3, batch_size=100, validation_data=digits.test)
    assert history._repr_html_().startswith("&lt;tenon.History finished after 3 epochs: ")  # the table is there already
    assert capsys.readouterr().out == "" and len(kernel) == 1
    states = kernel[0]
    assert states[0][0].startswith("<div>Epoch 1/3 <progress value='0' max='3'")
    html, text = states[-1]
    assert "<progress" not in html and html.count("<tr>") == 4 and "val_accuracy</th>" in html
    assert text.startswith("Epoch 3/3 - loss: ") and len(xml.fromstring(f"<a>{html}</a>").findall("table")) == 1
    assert classifier().fit(digits, verbose=2)._repr_html_().startswith("<table>")
    assert capsys.readouterr().out.startswith("Epoch 1/1\n") and len(kernel) == 1


def test_a_model_is_shown_before_and_after_its_shapes_are_known():
    model = classifier()
    assert model._repr_html_() == "&lt;tenon.Model: not built&gt;"
    assert "dense_2" in model.build(5)._repr_html_()
    model.close()
    assert model._repr_html_() == "&lt;tenon.Model, closed&gt;"


def test_many_short_epochs_are_not_shown_one_by_one(kernel):
    classifier().fit(tenon.ones((4, 3)), tenon.zeros((4,), dtype="int64"), epochs=300)
    assert len(kernel[0][-1][0].split("<tr>")) == 202 and kernel[0][-1][0].count(">300<") == 1 and max(state[0].count("<tr>") for state in kernel[0][:-1]) <= 21


def test_explain_is_a_table_and_a_picture():
    context = tenon.Context({"placement": [{"match": "dense_1/*", "device": "reference:0"}]})
    model = classifier(context).build(28, 28)
    found = tenon.explain(model, batch_size=8)
    assert isinstance(found, dict) and found["nodes"] == model.explain(8)["nodes"]
    lines = repr(found).splitlines()
    assert lines[0].split() == ["node", "op", "dtype", "device", "kernel", "reason"] and len(lines) == len(found["nodes"]) + 2
    assert any(line.startswith("dense_1/matmul") and "reference:0" in line for line in lines)
    assert lines[-1].startswith(f"{len(found['nodes'])} nodes on {', '.join(found.devices)}, 0 moved")

    root = xml.fromstring(found.svg())
    titles = [group.find(f"{SVG}title").text for group in root.iter(f"{SVG}g")]
    drawn = sorted(line.split(":")[0] for title in titles for line in title.splitlines())
    assert drawn == sorted(each["node"] for each in found["nodes"])  # each node is in one box
    bold = [each.text for each in root.iter(f"{SVG}text") if each.get("font-weight") == "bold"]
    assert {"dense", "dense_1", "dense_2", "gradient/dense_1", "adam_step"} <= set(bold) and len(bold) == len(set(bold)) == len(titles)
    copied = [each for each in root.iter(f"{SVG}path") if each.get("stroke") == "#ea580c"]
    assert (found["copies_inserted"] > 0) == bool(copied) == (len(found.devices) > 1)
    assert "<svg" in found._repr_html_() and "<details>" in found._repr_html_()


def boxes_of(svg):
    """name -> (x, y, width, height) of each box."""
    return {group.find(f"{SVG}text").text: tuple(float(group.find(f"{SVG}rect").get(key)) for key in ("x", "y", "width", "height"))
            for group in xml.fromstring(svg).iter(f"{SVG}g")}


def test_boxes_do_not_overlap_and_results_are_below_what_they_read():
    names = ["a", "b", "c", "d", "e", "f", "g"]
    reads = {"b": ["a"], "c": ["a"], "d": ["b", "c"], "e": ["a", "d"], "f": ["a"], "g": ["e", "f"]}
    node = {"op": "Add", "dtype": "f32", "device": "reference:0", "algorithm": "", "reason": "", "once": False}
    report = {"nodes": [{"node": name, "inputs": reads.get(name, []), **node} for name in names], "moved": 0, "kernels": 7, "copies_inserted": 0,
              "bytes_copied_per_run": 0}
    boxes = boxes_of(tenon.Explanation(report).svg())
    assert sorted(boxes) == names
    for name, inputs in reads.items():
        assert all(boxes[each][1] + boxes[each][3] < boxes[name][1] for each in inputs)
    for one, (x, y, width, height) in boxes.items():
        for other, (x2, y2, width2, height2) in boxes.items():
            assert one == other or x + width <= x2 or x2 + width2 <= x or y + height <= y2 or y2 + height2 <= y


def test_explain_of_programs_and_files(tmp_path):
    model = classifier().build(28, 28)
    program = tenon.explain(model.freeze(4))
    assert [each["node"] for each in program["nodes"]] == sorted(boxes_of(program.svg()), key=[each["node"] for each in program["nodes"]].index)
    program.save(tmp_path / "program.svg")
    assert xml.parse(tmp_path / "program.svg").getroot().tag == f"{SVG}svg"
    with pytest.raises(tenon.InvalidArgumentError, match="expected a file that ends in .svg"):
        program.save(tmp_path / "program.png")
    model.export(tmp_path / "model.onnx")
    session = tenon.InferenceSession(tmp_path / "model.onnx")
    (name,) = [each.name for each in session.get_inputs()]
    assert len(tenon.explain(session, {name: tenon.zeros((2, 28, 28))})["nodes"]) >= 3
    with pytest.raises(tenon.InvalidArgumentError, match=r"explain: expected inputs=\{name: array\}"):
        tenon.explain(session)
    with pytest.raises(TypeError, match="expected a Model, a Program"):
        tenon.explain(3)


def test_plot_says_what_it_needs(monkeypatch):
    history = classifier().fit(tenon.ones((8, 3)), tenon.zeros((8,), dtype="int64"), epochs=2, validation_split=0.5, verbose=0)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "matplotlib", None)
        with pytest.raises(ImportError, match=r"History.plot draws with matplotlib.*pip install matplotlib \(Debian: python3-matplotlib\)"):
            history.plot()
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    figure = history.plot()
    assert [panel.get_title() for panel in figure.axes] == ["loss", "accuracy"]
    for panel, name in zip(figure.axes, ("loss", "accuracy")):
        training, validation = panel.get_lines()
        assert list(training.get_ydata()) == history.history[name] and list(validation.get_ydata()) == history.history[f"val_{name}"]
    from matplotlib import pyplot
    pyplot.close(figure)


def test_the_log_goes_to_pythons_logging(caplog, capfd):
    try:
        assert tenon.log.to_logging(level="info") is logging.getLogger("tenon")
        tenon.Context({"backends": {"use": ["reference", "no_such_backend"]}})
        model = classifier(tenon.Context({"logging": {"level": "info"}, "log_device_placement": True})).build(5)
        model.predict(tenon.ones((2, 5)))
    finally:
        tenon.log.to_stderr()
        tenon.log.set_level("warning")
        tenon.log._level = None
    assert [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING][0].startswith("backend 'no_such_backend', named in")
    placed = [each for each in caplog.records if each.levelno == tenon.log.NOTICE]
    assert any("op MatMul" in each.getMessage() for each in placed) and all(each.name == "tenon" for each in caplog.records)
    assert capfd.readouterr().err.count("op MatMul") == 0
    with pytest.raises(tenon.InvalidArgumentError, match="expected one of debug, info, warning, error, got 'loud'"):
        tenon.log.set_level("loud")


def test_a_chosen_level_stays_when_a_context_is_made(caplog):
    try:
        tenon.log.to_logging(level="info")
        tenon.Context({"fallback": "warn"}).device()
        tenon.Context().device()
        assert any(each.levelno == logging.INFO and each.getMessage().startswith("device: auto means") for each in caplog.records)
        caplog.clear()
        tenon.Context({"logging": {"level": "warning"}}).device()
        assert not caplog.records
    finally:
        tenon.log.to_stderr()
        tenon.log.set_level("warning")
        tenon.log._level = None


def test_a_process_ends_with_the_log_in_python():
    script = ("import logging, tenon\nlogging.basicConfig(format='%(name)s %(levelname)s %(message)s')\ntenon.log.to_logging()\n"
              "tenon.Context({'fallback': 'warn', 'log_device_placement': True})\nmodel = tenon.Sequential(['flatten'])\nprint('end')")
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0 and result.stdout == "end\n", result.stderr
