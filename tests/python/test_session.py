# SPDX-License-Identifier: Apache-2.0
"""InferenceSession, and onnx's backend interface."""
import threading

import numpy
import pytest

import tenon
from tenon import layers

onnx = pytest.importorskip("onnx")


@pytest.fixture
def net(tmp_path):
    """(path, weights) of y = tanh(x w + b) for any batch."""
    model = tenon.Sequential([layers.Dense(3, activation="tanh", name="d")], input_shape=[4])
    model.build(4)
    path = str(tmp_path / "net.onnx")
    model.predict(numpy.zeros((1, 4), "float32"))
    model.export(path, inputs=["image"], outputs=["scores"])
    weights = {name: value.numpy().copy() for name, value in model.weights.items()}
    return path, lambda x: numpy.tanh(x @ weights["d/kernel"] + weights["d/bias"])


def test_a_session_has_onnx_runtimes_methods(net):
    path, formula = net
    session = tenon.InferenceSession(path, providers=["CUDAExecutionProvider", "CPUExecutionProvider"]) \
        if "CUDAExecutionProvider" in tenon.get_available_providers() else tenon.InferenceSession(path, providers=["CPUExecutionProvider"])
    given, = session.get_inputs()
    assert (given.name, given.type, given.shape[1]) == ("image", "tensor(float)", 4) and not isinstance(given.shape[0], int)
    assert [each.name for each in session.get_outputs()] == ["scores"] and session.get_providers()[0].endswith(":0")
    assert session.get_modelmeta().producer_name
    for batch in (1, 3, 1):
        x = numpy.linspace(-1, 1, 4 * batch, dtype="float32").reshape(batch, 4)
        for names in (None, ["scores"]):
            y, = session.run(names, {"image": x})
            assert isinstance(y, numpy.ndarray) and y.dtype == "float32"
            numpy.testing.assert_allclose(y, formula(x), rtol=1e-5, atol=1e-6)


def test_an_array_that_is_given_again_is_read_again_and_results_stay(net):
    path, formula = net
    session = tenon.InferenceSession(path)
    x = numpy.ones((2, 4), "float32")
    first, = session.run(None, {"image": x})
    x[:] = 0.5
    second, = session.run(None, {"image": x})
    numpy.testing.assert_allclose(first, formula(numpy.ones((2, 4))), rtol=1e-5)
    numpy.testing.assert_allclose(second, formula(x), rtol=1e-5)


def test_large_arrays_lists_and_changing_shapes_are_inputs_too(net):
    path, formula = net
    session = tenon.InferenceSession(path)
    for x in (numpy.ones((9000, 4), "float32"), numpy.ones((2, 4), "float32"), numpy.ones((4, 2), "float32").T, tenon.ones((3, 4)), [[1.0, 2, 3, 4]]):
        for _ in range(2):
            numpy.testing.assert_allclose(session.run(None, {"image": x})[0], formula(numpy.asarray(x)), rtol=1e-5)


def test_threads_share_a_session(net):
    path, formula = net
    session, wrong = tenon.InferenceSession(path), []

    def work(value):
        x = numpy.full((2, 4), value, "float32")
        for _ in range(200):
            if not numpy.allclose(session.run(None, {"image": x})[0], formula(x), rtol=1e-5):
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(value,)) for value in (0.1, 0.2, 0.3, 0.4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_bound_inputs_and_outputs(net):
    path, formula = net
    session = tenon.InferenceSession(open(path, "rb").read())
    x, y = numpy.ones((2, 4), "float32"), numpy.zeros((2, 3), "float32")
    binding = session.io_binding()
    binding.bind_cpu_input("image", x)
    binding.bind_output("scores")
    for value in (1, -1):
        x[:] = value
        session.run_with_iobinding(binding)
        numpy.testing.assert_allclose(binding.copy_outputs_to_cpu()[0], formula(x), rtol=1e-5)
    binding.bind_input("image", "cpu", 0, numpy.float32, x.shape, x.ctypes.data)
    binding.bind_output("scores", "cpu", 0, numpy.float32, y.shape, y.ctypes.data)
    session.run_with_iobinding(binding)
    numpy.testing.assert_allclose(y, formula(x), rtol=1e-5)
    assert binding.get_outputs()[0].address == y.ctypes.data  # the program has written there, not a copy
    z = numpy.zeros((2, 3), "float32")
    binding.bind_tensor_output("scores", z)
    session.run_with_iobinding(binding)
    numpy.testing.assert_array_equal(z, y)
    binding.bind_tensor_output("scores", z[:1])
    with pytest.raises(tenon.InvalidArgumentError, match=r"output 'scores': expected a tensor f32\(2,3\) for the result, got f32\(1,3\)"):
        session.run_with_iobinding(binding)
    with pytest.raises(tenon.InvalidArgumentError, match="expected a name of"):
        binding.bind_cpu_input("other", x)


def test_mistakes_are_errors_with_their_reason(net):
    path, _ = net
    session = tenon.InferenceSession(path)
    x = numpy.ones((2, 4), "float32")
    for feed, text in (({"image": x.astype("float64")}, "f64|float64"), ({"image": x[:, :3]}, "image"), ({}, "image"), ({"image": x, "other": x}, "other")):
        with pytest.raises(tenon.InvalidArgumentError, match=text):
            session.run(None, feed)
    with pytest.raises(tenon.InvalidArgumentError, match="expected names of \\['scores'\\], got 'other'"):
        session.run(["other"], {"image": x})
    with pytest.raises(tenon.InvalidArgumentError, match="/nowhere.onnx"):
        tenon.InferenceSession("/nowhere.onnx")
    with pytest.raises(tenon.Error, match="."):
        tenon.InferenceSession(b"no model")
    with pytest.raises(tenon.DeviceNotFoundError, match="providers: expected one of .*CPUExecutionProvider"):
        tenon.InferenceSession(path, providers=["NoSuch"])


def test_onnx_runs_models_and_nodes_by_its_backend_interface(net):
    import tenon.onnx_backend as backend
    path, formula = net
    x = numpy.ones((2, 4), "float32")
    model = onnx.load(path)
    assert backend.supports_device("CPU") and not backend.supports_device("NPU") and backend.is_compatible(model)
    numpy.testing.assert_allclose(backend.prepare(model).run([x])[0], formula(x), rtol=1e-5)
    numpy.testing.assert_allclose(backend.run_model(model, x)[0], formula(x), rtol=1e-5)
    node = onnx.helper.make_node("Add", ["a", "b"], ["c"])
    assert backend.run_node(node, [x, x], opset_version=14)[0].tolist() == [[2] * 4] * 2
    assert backend.run_node(node, [x, x], outputs_info=[(numpy.float32, (2, 4))], opset_version=14)[0].tolist() == [[2] * 4] * 2
    half = onnx.helper.make_model(onnx.helper.make_graph(
        [onnx.helper.make_node("Cast", ["x"], ["y"], to=onnx.TensorProto.FLOAT)], "halves",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.BFLOAT16, [2])], [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2])]),
        opset_imports=[onnx.helper.make_opsetid("", 13)])
    bits = numpy.array([0x3F80, 0xC000], "uint16")  # onnx gives the bits where NumPy has no bfloat16
    assert backend.run_model(half, [bits])[0].tolist() == [1, -2]


def test_a_provider_that_is_passed_over_is_a_warning(net):
    with pytest.warns(RuntimeWarning, match="nosuch.*computing on .*:0"):
        tenon.InferenceSession(net[0], providers=["nosuch", "CPUExecutionProvider"])
