# SPDX-License-Identifier: Apache-2.0
"""Batcher, quantisation and traces."""
import json
import threading

import numpy
import pytest

import tenon
from tenon import layers


def small_model():
    made = tenon.Sequential([layers.Dense(8, activation="relu"), layers.Dense(3)], input_shape=[4])
    made(numpy.zeros((1, 4), "float32"))
    return made


def samples(count=16):
    return numpy.random.default_rng(1).uniform(-1, 1, (count, 4)).astype("float32")


def test_requests_of_threads_run_as_batches_and_give_what_the_model_gives(tmp_path):
    model = small_model()
    x = samples(12)
    expected = model(x).numpy()
    model.export(tmp_path / "net.onnx")
    for batched in (model, str(tmp_path / "net.onnx"), tenon.InferenceSession(tmp_path / "net.onnx"), (tmp_path / "net.onnx").read_bytes()):
        results = {}
        with tenon.Batcher(batched, max_batch=4, max_delay_us=2000, padding="zeros") as batcher:
            threads = [threading.Thread(target=lambda i=i: results.update({i: batcher(x[i:i + 1]).numpy()})) for i in range(len(x))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            request = batcher.submit(x[:2])
            numpy.testing.assert_allclose(request.result().numpy(), expected[:2], rtol=1e-5, atol=1e-6)
            assert request.done() and request.result(timeout=0).shape == (2, 3)
            about = batcher.info
            assert about["completed"] == 13 and about["batches"] < 14 and "13 requests" in repr(batcher)
        for i, each in results.items():
            numpy.testing.assert_allclose(each, expected[i:i + 1], rtol=1e-5, atol=1e-6)
        assert repr(batcher) == "<tenon.Batcher, closed>"


def test_requests_that_are_not_run_are_errors():
    model = small_model()
    x = samples()
    with tenon.Batcher(model, max_batch=2, max_delay_us=10_000_000) as batcher:
        waits = batcher.submit(x[:1])
        with pytest.raises(TimeoutError, match="no outputs after 0.01 s"):
            waits.result(timeout=0.01)
    assert waits.result().shape == (1, 3)  # close() ran it
    batcher = tenon.Batcher(model, max_batch=2)
    with pytest.raises(tenon.InvalidArgumentError, match="max_batch"):
        batcher(x[:3])
    with pytest.raises(tenon.NotReadyError, match="timeout above 0 s"):
        batcher.submit(x[:1], timeout=0)
    batcher.close()
    with pytest.raises(ValueError, match="Batcher: expected an open object"):
        batcher(x[:1])
    with pytest.raises(tenon.InvalidArgumentError, match="key 'padding': expected"):
        tenon.Batcher(model, padding="ones")
    with pytest.raises(tenon.InvalidArgumentError, match="parameters exist"):
        tenon.Batcher(tenon.Sequential([layers.Dense(3)]))


def test_a_batcher_may_be_closed_while_threads_submit():
    model = small_model()
    x = samples()
    for _ in range(5):
        batcher = tenon.Batcher(model, max_batch=2, max_delay_us=100, max_queue=1)
        ends = []

        def submit():
            try:
                while True:
                    batcher(x[:1])
            except (tenon.CancelledError, tenon.InvalidArgumentError) as error:
                ends.append(error)

        threads = [threading.Thread(target=submit) for _ in range(4)]
        for thread in threads:
            thread.start()
        while batcher.info["completed"] < 8:
            pass
        with batcher:
            pass
        assert batcher.closed
        for thread in threads:
            thread.join()
        assert len(ends) == 4
    batcher = tenon.Batcher(model)
    before = tenon.live_objects()
    batcher.close()
    batcher.close()
    assert tenon.live_objects() == before  # a thread within submit() would use it still
    with pytest.raises(ValueError, match="Batcher: expected an open object"):
        batcher.info


def test_a_quantised_model_is_near_its_own_and_is_compared_with_it(tmp_path):
    model = small_model()
    x, path = samples(64), tmp_path / "net.int8.onnx"
    report = tenon.quantization.quantize(model, x, path, exclude=["dense_1*"])
    assert report["samples"] == 64 and len(report["nodes"]) == 2 and report["activations"]
    comparison = tenon.quantization.compare(model, path, x, numpy.zeros(64, "int64"))
    assert 0 < comparison["rms_difference"] < 0.05 and 0 <= comparison["accuracy"] <= 1
    y = tenon.InferenceSession(path).run(None, {tenon.InferenceSession(path).get_inputs()[0].name: x})[0]
    numpy.testing.assert_allclose(y, model(x).numpy(), atol=0.1)
    data = tenon.Data.arrays(x, numpy.zeros(64, "int64"))
    assert tenon.quantization.quantize(model, data, path, samples=8)["samples"] == 8
    with pytest.raises(tenon.InvalidArgumentError, match="key 'calibration': expected"):
        tenon.quantization.quantize(model, x, path, calibration="max")
    for nothing in ({}, x[:0]):
        with pytest.raises(tenon.InvalidArgumentError, match="^data: expected at least one input with samples, got none$"):
            tenon.quantization.quantize(model, nothing, path)
    with pytest.raises(tenon.InvalidArgumentError, match="labels: expected i64\\(64\\)"):
        tenon.quantization.compare(model, path, x, numpy.zeros(3, "int64"))


def test_a_trace_has_kernels_spans_and_a_file(tmp_path):
    model = small_model()
    x = samples()
    with tenon.Trace() as trace:
        with tenon.trace_span("my work"):
            model(x)
    model(x)  # not recorded
    kernels = trace.kernels
    assert {each["op"] for each in kernels} >= {"MatMul"} or any("MatMul" in each["node"] or "Gemm" in each["op"] for each in kernels), kernels
    assert all(each["runs"] == 1 for each in kernels)
    assert "total ms" in trace.table(1).splitlines()[0] and len(trace.table(1).splitlines()) == 2 and "<pre>" in trace._repr_html_()
    trace.write(tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text()) == trace.events
    assert any(event["name"] == "my work" for event in trace.events["traceEvents"])
    with tenon.Trace(), pytest.raises(tenon.InvalidArgumentError, match="traced"):
        tenon.Trace()
    program = model.freeze(2)
    program(x[:2])
    assert program.profile == []
    program.enable_profile()
    program(x[:2])
    assert sum(each["duration_ns"] for each in program.profile) > 0
