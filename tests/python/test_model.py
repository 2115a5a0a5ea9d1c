# SPDX-License-Identifier: Apache-2.0
"""Models: made of layers, trained, saved, exported, loaded."""
import io
import signal
import subprocess
import sys
import threading
import time
import types

import numpy
import pytest

import tenon
from tenon import _interrupt, _model, layers

CROSSENTROPY = {"name": "sparse_categorical_crossentropy", "from_logits": True}


@pytest.fixture
def digits():
    return tenon.datasets.digits(train_count=300, test_count=100)


def classifier(**keys):
    model = tenon.Sequential([layers.Flatten(), layers.Dense(32, activation="relu"), layers.Dense(10, name="scores")], **keys)
    return model.compile(tenon.optimizers.Adam(learning_rate=0.01), loss=CROSSENTROPY, metrics=["accuracy"])


def test_a_model_learns_from_a_data_set_and_from_arrays(digits):
    model = classifier()
    history = model.fit(digits.train, epochs=3, batch_size=20, validation_data=digits.test, verbose=0)
    assert history.end == "finished" and history.epoch == [0, 1, 2] and set(history.history) == {"loss", "accuracy", "val_loss", "val_accuracy"}
    assert history.history["loss"][2] < history.history["loss"][0]
    x, y = (each.numpy() for each in digits.train.numpy())
    assert x.shape == (300, 28, 28) and y.dtype == "int64" and len(digits.train) == 300
    again = model.fit(x, y, epochs=2, validation_split=0.2, verbose=0)
    assert again.epoch == [0, 1] and "val_loss" in again.history  # counted from 0, as in Keras
    model.fit(x.astype("float64"), y.astype("int32"), validation_data=(x, y), verbose=0)
    result = model.evaluate(digits.test)
    assert result["accuracy"] > 0.5 and result == pytest.approx(model.evaluate(*digits.test.numpy()))


def test_a_prediction_is_the_formula_of_its_layers():
    model = tenon.Sequential([layers.Dense(3, activation="tanh"), layers.Dense(2)])
    x = numpy.linspace(-1, 1, 20, dtype="float32").reshape(5, 4)
    first = model(x)
    weights = {name: value.numpy() for name, value in model.weights.items()}
    expected = numpy.tanh(x @ weights["dense/kernel"] + weights["dense/bias"]) @ weights["dense_1/kernel"] + weights["dense_1/bias"]
    numpy.testing.assert_allclose(first.numpy(), expected, rtol=1e-5, atol=1e-6)
    numpy.testing.assert_allclose(model.predict(x, batch_size=2).numpy(), expected, rtol=1e-5, atol=1e-6)
    model.set_weights({"dense_1/bias": numpy.array([5, 6], "float32")})
    numpy.testing.assert_allclose(model(tenon.asarray(x)).numpy(), expected + [5, 6], rtol=1e-5, atol=1e-5)
    program = model.freeze(5)
    numpy.testing.assert_allclose(program(x)[0].numpy(), expected + [5, 6], rtol=1e-5, atol=1e-5)
    with pytest.raises(tenon.InvalidArgumentError, match="fit: expected a model with a loss"):
        model.fit(x, x)


def test_one_step_of_sgd_is_what_is_computed_by_hand():
    model = tenon.Sequential([layers.Dense(1, kernel_initializer="zeros")]).compile(tenon.optimizers.SGD(learning_rate=0.5), loss="mse")
    logs = model.train_on_batch([[1.0], [2.0]], [[2.0], [4.0]])
    assert logs["loss"] == 10  # (4 + 16) / 2
    assert model.weights["dense/kernel"].item() == 5  # 0.5 * 2 * mean of x y
    model.learning_rate = 0.25
    assert model.learning_rate == 0.25


def test_epochs_are_those_of_a_call_from_initial_epoch_on(digits):
    model, seen = classifier(), []
    watch = tenon.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs: seen.append(epoch))
    for keys, expected in (({"epochs": 2}, [0, 1]), ({"epochs": 1}, [0]), ({"epochs": 5, "initial_epoch": 3}, [3, 4]), ({"epochs": 2, "initial_epoch": 2}, [])):
        seen.clear()
        assert model.fit(digits.train, verbose=0, callbacks=[watch], **keys).epoch == expected == seen
    assert model.info["epochs"] == 5


def test_one_layer_is_no_list_of_layers():
    with pytest.raises(tenon.InvalidArgumentError, match=r"expected a list of layers, got the layer dense\(units=3\); write Sequential"):
        tenon.Sequential(layers.Dense(3))
    with pytest.raises(tenon.InvalidArgumentError, match="expected a list of layers, got the layer flatten"):
        tenon.Sequential("flatten")


def test_a_model_without_a_loss_predicts_and_asks_for_one_to_train():
    model = tenon.Sequential(["flatten", layers.Dense(2)])
    x = numpy.ones((3, 4), "float32")
    assert model.predict(x).shape == (3, 2) and len(model.explain(3)["nodes"]) > 0
    with pytest.raises(tenon.InvalidArgumentError, match="fit: expected a model with a loss and an optimizer: call compile"):
        model.fit(x, x[:, :2], verbose=0)
    before = model.weights["dense/kernel"].tolist()
    model.compile("sgd", loss="mse")
    assert model.weights["dense/kernel"].tolist() == before


def test_wrong_definitions_are_refused_where_they_are_made():
    for call, text in ((lambda: layers.Dense(3, activation="rleu"), "dense: key 'activation': expected one of linear, relu.*did you mean 'relu'"),
                       (lambda: layers.Dense(3, kernel_initializer="glorot"), "kernel_initializer"),
                       (lambda: layers.Dropout(1.5), r"expected a number in \[0, 1\), got '1.5'"),
                       (lambda: layers.Conv2D(3, "a"), "kernel_size"),
                       (lambda: tenon.optimizers.SGD(learning_rate="fast"), "learning_rate"),
                       (lambda: tenon.schedules.Cosine(initial=-1), "initial"),
                       (lambda: tenon.losses.Huber(delta=-1), "delta"),
                       (lambda: tenon.callbacks.EarlyStopping(patience=-1), "patience"),
                       (lambda: tenon.initializers.Normal(stddev="wide"), "stddev")):
        with pytest.raises(tenon.InvalidArgumentError, match=text):
            call()
    assert layers.VendorOp("com.example.SoftClip") and layers.Residual([layers.Dense(4, activation="relu")])


@pytest.mark.parametrize("make", [lambda b: b, lambda b: (lambda: iter(b)), lambda b: type("Loader", (), {"__iter__": lambda self: iter(b), "__len__": lambda self: len(b)})()],
                         ids=["list", "function", "loader"])
def test_batches_of_iterables_train_as_arrays_do(digits, make):
    x, y = (each.numpy() for each in digits.train.numpy())
    batches = [(x[i:i + 50], y[i:i + 50]) for i in range(0, 300, 50)]
    weights = None
    losses = []
    for data in ((x, y), (make(batches), None)):
        model = classifier().build(28, 28)
        weights = weights or model.weights
        model.set_weights(weights)
        losses.append(model.fit(*data, epochs=2, batch_size=50, shuffle=False, verbose=0).history["loss"])
    numpy.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)
    assert model.evaluate(batches)["loss"] == pytest.approx(model.evaluate(x, y)["loss"], rel=1e-4)


def test_an_iterator_goes_on_over_epochs_and_its_end_is_an_error(digits):
    x, y = (each.numpy() for each in digits.train.numpy())
    endless = ((x[i % 5:i % 5 + 8], y[i % 5:i % 5 + 8]) for i in range(10 ** 9))
    assert len(classifier().fit(endless, epochs=2, steps_per_epoch=3, verbose=0).epoch) == 2
    assert next(endless)[0].shape == (8, 28, 28)
    with pytest.raises(tenon.InvalidArgumentError, match="iterator is at its end"):
        classifier().fit(iter([(x, y)]), epochs=2, verbose=0)
    with pytest.raises(tenon.InvalidArgumentError, match="at least one batch"):
        classifier().fit(iter([]), verbose=0)


def test_callbacks_are_called_stop_the_fit_and_their_exceptions_come_through(digits):
    calls = []

    class Watch(tenon.callbacks.Callback):
        def on_train_begin(self, logs=None):
            calls.append("begin")

        def on_train_batch_end(self, batch, logs=None):
            calls.append((batch, sorted(logs)))

        def on_epoch_end(self, epoch, logs=None):
            calls.append(("epoch", epoch, "val_loss" in logs))

        def on_train_end(self, logs=None):
            calls.append("end")

    model = classifier()
    model.fit(digits.train, batch_size=150, validation_data=digits.test, callbacks=[Watch()], verbose=0)
    assert calls == ["begin", (0, ["accuracy", "loss"]), (1, ["accuracy", "loss"]), ("epoch", 0, True), "end"]

    class Stop(tenon.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            self.model.stop_training = True

    history = model.fit(digits.train, epochs=9, callbacks=[Stop()], verbose=0)
    assert len(history.epoch) == 1 and history.end == "stopped" and "stop_training" in history.reason

    def fail(epoch, logs):
        raise LookupError("of the callback")

    with pytest.raises(LookupError, match="of the callback"):
        model.fit(digits.train, callbacks=[tenon.callbacks.LambdaCallback(on_epoch_end=fail)], verbose=0)
    assert len(model.fit(digits.train, epochs=2, callbacks=[tenon.callbacks.EarlyStopping(monitor="loss", patience=5), "terminate_on_nan"], verbose=0).epoch) == 2
    with pytest.raises(TypeError, match="callbacks: expected"):
        model.fit(digits.train, callbacks=[3])
    with pytest.raises(ZeroDivisionError):
        model.fit(lambda: (1 / (i - 1) and next(iter([(digits.train.numpy())])) for i in range(3)), verbose=0)


def test_progress_is_a_bar_in_terminals_and_lines_elsewhere(digits, capsys):
    model = classifier()
    model.fit(digits.train, epochs=2, batch_size=100, validation_data=digits.test)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Epoch 1/2" and lines[1].startswith("3/3 [==============================] - ") and "val_accuracy: " in lines[1] and len(lines) == 4
    from tenon._progress import Progress

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    bar = Progress(1, Terminal())
    bar.train_begin(1, 4)
    bar.epoch_begin(0)
    assert bar.is_due()
    bar.batch_end(1, {"loss": 0.5})
    assert not bar.is_due()
    bar.epoch_end(2.0, {"loss": 0.25})
    assert bar.stream.getvalue().split("\r")[1].startswith("2/4 [===============...............] - loss: 0.5000")
    assert bar.stream.getvalue().endswith("\n") and "2.0s - loss: 0.2500" in bar.stream.getvalue()


def test_a_fit_that_fails_ends_the_line_of_the_bar(digits, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    class Failing(tenon.callbacks.Callback):
        def on_train_batch_end(self, batch, logs):
            if batch == 1:
                raise ZeroDivisionError

    monkeypatch.setattr("sys.stdout", Terminal())
    with pytest.raises(ZeroDivisionError):
        classifier().fit(digits.train, batch_size=100, callbacks=[Failing()])
    text = sys.stdout.getvalue()
    assert "\r1/3 [" in text and text.endswith("\n") and not text.endswith("\n\n")


def test_the_bar_fits_into_the_terminal(monkeypatch):
    from tenon import _progress

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    def shown_in(columns):
        monkeypatch.setattr(_progress, "columns_of", lambda stream: columns)
        bar = _progress.Progress(1, Terminal())
        bar.train_begin(1, 4)
        bar.epoch_begin(0)
        bar.batch_end(1, {"loss": 0.5})
        bar.epoch_end(2.0, {"loss": 0.25})
        return [line.rstrip() for line in bar.stream.getvalue().split("\r")[1:]]

    whole = ["2/4 [===============...............] - loss: 0.5000", "4/4 [==============================] - 2.0s - loss: 0.2500"]
    assert shown_in(0) == whole and shown_in(60) == whole
    assert shown_in(40) == ["2/4 - loss: 0.5000", "4/4 - 2.0s - loss: 0.2500"]
    assert shown_in(10) == ["2/4 - los", "4/4 - 2.0s - loss: 0.2500"]
    monkeypatch.setenv("TERM", "dumb")
    assert not _progress.Progress(1, Terminal()).bar


def test_ctrl_c_ends_a_fit_after_its_step():
    script = """
import os, signal, threading, tenon
digits = tenon.datasets.digits(train_count=500)
model = tenon.Sequential(["flatten", tenon.layers.Dense(10)]).compile("sgd", loss={"name": "sparse_categorical_crossentropy", "from_logits": True})
interrupt = tenon.callbacks.LambdaCallback(on_train_begin=lambda logs: threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start())
history = model.fit(digits.train, epochs=1000000, verbose=0, callbacks=[interrupt])
print(history.end, len(history.epoch) > 0, model.evaluate(digits.train)["loss"] < 9)
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert result.stdout == "interrupted True True\n", result.stderr


def test_ctrl_c_ends_a_prediction_and_an_evaluation():
    script = """
import os, signal, threading, numpy, tenon
model = tenon.Sequential([tenon.layers.Dense(512, activation="relu") for _ in range(3)]).compile("sgd", loss="mse")
x, y = numpy.zeros((400000, 16), "float32"), numpy.broadcast_to(numpy.zeros(512, "float32"), (400000, 512))
model.predict(x[:10])
for call in (lambda: model.predict(x, batch_size=1), lambda: model.evaluate(lambda: ((x[:1], y[:1]) for _ in range(10 ** 9)))):
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        print("finished", call())
    except KeyboardInterrupt:
        print("interrupted", signal.getsignal(signal.SIGINT) is signal.default_int_handler, model.predict(x[:2]).shape)
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert result.stdout == "interrupted True (2, 512)\n" * 2, result.stderr


def test_a_late_ctrl_c_does_not_end_the_next_call():
    model = tenon.Sequential([layers.Dense(3)])
    x = tenon.zeros((2, 4))
    model(x)
    with _interrupt.Interruptible():
        pass
    watcher = _interrupt._watcher
    lock, watcher.lock = watcher.lock, threading.RLock()
    watcher.writer.send(b"\0")  # ends the wait that takes the previous lock
    time.sleep(0.05)
    with watcher.lock:
        with _interrupt.Interruptible():
            watcher.writer.send(bytes([signal.SIGINT]))
            time.sleep(0.05)
        following = _interrupt.Interruptible()
        following.__enter__()
    time.sleep(0.05)
    try:
        assert model._predict(None, (x,), 2, 0, following.run_options).shape == (2, 3)
    finally:
        following.__exit__(None, None, None)
        watcher.lock = lock


def test_ctrl_c_after_an_evaluation_frees_its_report(monkeypatch):
    model = tenon.Sequential([layers.Dense(3)]).compile("sgd", loss="mse")
    freed = []
    lib = _model.lib

    class Interrupted(_interrupt.Interruptible):
        def __exit__(self, *_):
            super().__exit__(*_)
            raise KeyboardInterrupt

    def free(text):
        freed.append(text)
        lib.tenon_string_free(text)

    monkeypatch.setattr(_model, "Interruptible", Interrupted)
    monkeypatch.setattr(_model, "lib", types.SimpleNamespace(tenon_model_evaluate=lib.tenon_model_evaluate, tenon_string_free=free))
    with pytest.raises(KeyboardInterrupt):
        model.evaluate(numpy.zeros((2, 4), "float32"), numpy.zeros((2, 3), "float32"))
    assert len(freed) == 1


def test_a_model_that_is_not_compiled_is_explained_frozen_and_exported(tmp_path):
    model = tenon.Sequential([layers.Dense(3)], input_shape=[4])
    model.export(tmp_path / "m.onnx")
    x = numpy.ones((2, 4), "float32")
    file = tenon.load(tmp_path / "m.onnx")
    assert "MatMul" in str(file.explain(2)) or "Gemm" in str(file.explain(2))
    for make in (lambda: tenon.load(tmp_path / "m.onnx"), lambda: tenon.Sequential([layers.Dense(3)], input_shape=[4])):
        assert make().explain()["nodes"] and make().freeze(2)(x)[0].shape == (2, 3)
        make().export(tmp_path / "again.onnx")
        other = make()
        assert other.learning_rate is None and other(x).shape == (2, 3) and other.learning_rate is None
        assert other.explain()["nodes"] and other.learning_rate is None
        assert other.compile("sgd", loss="mse").learning_rate > 0
        with pytest.raises(tenon.InvalidArgumentError, match="fit: expected a model with a loss"):
            make().fit(x, x)
    numpy.testing.assert_allclose(tenon.load(tmp_path / "m.onnx").freeze(2)(x)[0].numpy(), model(x).numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(tenon.InvalidArgumentError, match=r"predict: expected probabilities=False.*compile\(loss=\.\.\.\)"):
        tenon.load(tmp_path / "m.onnx").predict(x, probabilities=True)


def test_models_are_saved_exported_and_loaded(digits, tmp_path):
    model = classifier(input_shape=(28, 28), name="small")
    model.fit(digits.train, verbose=0)
    x = digits.test.numpy()[0]
    expected = model(x).numpy()
    model.save(tmp_path / "saved")
    again = tenon.load(tmp_path / "saved")
    assert numpy.array_equal(again(x).numpy(), expected)
    again.fit(digits.train, verbose=0)
    model.save_weights(tmp_path / "w.safetensors")
    fresh = classifier(input_shape=(28, 28)).build(28, 28)
    assert fresh.load_weights(tmp_path / "w.safetensors")["missing"] == []
    assert numpy.array_equal(fresh(x).numpy(), expected)
    model.export(tmp_path / "m.onnx", opset=17)
    file = tenon.load(tmp_path / "m.onnx")
    numpy.testing.assert_allclose(file(x).numpy(), expected, rtol=1e-4, atol=1e-5)
    file.compile("sgd", loss=CROSSENTROPY, metrics=["accuracy"])
    assert file.evaluate(digits.test)["loss"] == pytest.approx(model.evaluate(digits.test)["loss"], rel=1e-4)
    (tmp_path / "model.yaml").write_text(model.yaml)
    assert tenon.load(tmp_path / "model.yaml")(x).shape == (100, 10)
    for wrong in ("/nowhere/m.onnx", "/nowhere/model.yaml", "/nowhere"):
        with pytest.raises(tenon.Error, match="/nowhere"):
            tenon.load(wrong)


def test_a_model_is_shown(digits, capsys):
    model = classifier()
    history = model.fit(digits.train, verbose=0)
    assert "scores (Dense)" in model.summary() and "scores (Dense)" in capsys.readouterr().out
    assert repr(model) == "<tenon.Model: 3 layers>" and "<pre>" in model._repr_html_() and "<table>" in history._repr_html_()
    assert "finished after 1 epoch: loss=" in repr(history) and len(model.explain(8)["nodes"]) > 3
    assert repr(layers.Dense(3, activation="relu")) == "dense(units=3, activation='relu')"


def test_mistakes_are_errors_with_their_reason(digits):
    with pytest.raises(tenon.InvalidArgumentError, match="unitz"):
        tenon.Sequential([{"dense": {"unitz": 3}}])
    with pytest.raises(tenon.InvalidArgumentError, match="adamm"):
        classifier().compile("adamm", loss="mse")
    model = classifier()
    x, y = (each.numpy() for each in digits.train.numpy())
    with pytest.raises(tenon.InvalidArgumentError, match="300.*200|200.*300"):
        model.fit(x, y[:200], verbose=0)
    with pytest.raises(tenon.InvalidArgumentError, match="."):
        model.fit(x, numpy.full(300, 99), verbose=0)
    model.fit(x, y, verbose=0)
    with pytest.raises(tenon.InvalidArgumentError, match="."):
        model(x[:, :5])
    with pytest.raises(tenon.Error, match="/nowhere"):
        tenon.datasets.mnist("/nowhere").train
    model.close()
    with pytest.raises(ValueError, match="Model: expected an open object"):
        model(x)


def test_a_data_loader_of_pytorch_trains(digits):
    torch = pytest.importorskip("torch")
    x, y = (torch.from_dlpack(each) for each in digits.train.numpy())
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=50, shuffle=True)
    assert len(classifier().fit(loader, epochs=2, verbose=0).epoch) == 2


def test_layers_of_yaml_and_python_are_the_same():
    model = tenon.Sequential([layers.Residual([layers.Dense(4), layers.ReLU()]), layers.Repeat(2, [layers.Dense(4)]), layers.LayerNorm(), "softmax"],
                             input_shape=[4])
    assert model(numpy.ones((2, 4), "float32")).sum(-1).tolist() == pytest.approx([1, 1])
