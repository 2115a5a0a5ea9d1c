# SPDX-License-Identifier: Apache-2.0
"""What a program does wrong, or a machine: a Python exception with the library's sentence, never an abort. The other files have more of each kind."""
import os
import pathlib
import subprocess
import sys

import numpy
import pytest

import tenon
from tenon import layers

BUILD = pathlib.Path(os.environ.get("TENON_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build/release"))
WRONG_ABI = BUILD / "tests/fault/plugins/wrong_major/libtenon_backend_wrong_major.so"
LOSING = BUILD / "tests/python/losing/libtenon_backend_losing.so"


def test_wrong_dtypes_and_shapes_are_named_with_what_was_expected():
    f32, i64 = numpy.ones((2, 3), "float32"), numpy.ones((2, 3), "int64")
    model = tenon.Sequential([layers.Dense(2)], input_shape=[3])
    program = tenon.Sequential([layers.Dense(2)], input_shape=[3]).build(3).freeze(2)
    for call, text in ((lambda: tenon.ops.matmul(f32, f32), r"matmul 'matmul': expected equal inner sizes, got a f32\(2,3\), b f32\(2,3\)"),
                       (lambda: tenon.ops.sqrt(tenon.asarray(i64)), r"expected a floating dtype, got x i64\(2,3\)"),
                       (lambda: model(f32[:, :2]), r"expected \(2\), the shape of the data\'s samples, got \(3\)"),
                       (lambda: program(f32[:1]), r"expected f32\(2,3\), got f32\(1,3\)"),
                       (lambda: program(i64), r"expected f32\(2,3\), got i64\(2,3\)"),
                       (lambda: program(), "input_count: expected 1, got 0"),
                       (lambda: tenon.ones((2, 3)).reshape(7), r"f32\(2,3\) has 6 elements, \(7\) expects 7"),
                       (lambda: tenon.ones(2).copy_(numpy.ones(3, "float32")), r"f32\(3\): expected sizes equal to those of \(2\) or 1"),
                       (lambda: tenon.full((2, ), 300, "uint8"), "expected a value that fits u8, got 300")):
        with pytest.raises(tenon.InvalidArgumentError, match=text):
            call()


def test_messages_name_no_function_of_the_c_api_and_no_column_of_a_dict():
    def message_of(call):
        with pytest.raises(tenon.InvalidArgumentError) as caught:
            call()
        return str(caught.value)

    assert message_of(lambda: tenon.Model({"layers": [{"dense": {"unit": 3}}]})).startswith("model: layers[0] dense: unknown key 'unit'")
    assert message_of(lambda: tenon.Model("layers:\n  - dense: {unit: 3}\n")).startswith("<model>:2:")
    assert message_of(lambda: tenon.Sequential([layers.Dense(2)]).compile("adma", "mse")).startswith("compile: ")
    assert message_of(lambda: tenon.Sequential(3)) == "Sequential: expected a list of layers, got 3"


def test_a_missing_device_is_named_with_those_that_there_are():
    for call in (lambda: tenon.ones(2).to("cuda:7"), lambda: tenon.ops.relu(tenon.ones(2), device="cuda:7"), lambda: tenon.device("cuda:7")):
        with pytest.raises(tenon.DeviceNotFoundError, match="device 'cuda:7' not found; available: .*reference:0"):
            call()


def test_closed_objects_are_named():
    model = tenon.Sequential([layers.Dense(2)], input_shape=[3])
    tensor, program, context = tenon.ones((1, 3)), model.build(3).freeze(1), tenon.Context()
    for each in (model, program, context):
        each.close()
    x = tenon.ones((1, 3))
    tensor.close()
    for call, name in ((lambda: model(x), "Model"), (lambda: model.fit(x, x), "Model"), (lambda: program(x), "Program"), (lambda: context.device(), "Context"),
                       (lambda: tenon.ops.relu(tensor), "Tensor"), (lambda: tensor + 1, "Tensor"), (lambda: tensor.numpy(), "Tensor")):
        with pytest.raises(tenon.InvalidArgumentError, match=f"{name}: expected an open object, got one that was closed"):
            call()


@pytest.mark.skipif(not LOSING.is_file(), reason="the test plugin is not built")
def test_a_lost_device_is_an_error_of_its_kind_for_its_tensors_too():
    with tenon.Context(plugins=[LOSING]) as context:
        device = context.device("losing:0")
        x = tenon.ones(4).to(device)
        with pytest.raises(tenon.DeviceLostError, match="losing:0 has fallen off the bus"):
            tenon.ops.relu(x)
        for call in (lambda: x.cpu(), lambda: x.tolist(), lambda: tenon.ops.relu(x), lambda: tenon.ones(4).to(device)):
            with pytest.raises(tenon.DeviceLostError, match="losing:0"):
                call()
        assert tenon.ops.relu(tenon.ones(2), device=context.device("reference:0")).tolist() == [1, 1]
        x.close()


def test_a_backend_of_another_abi_is_an_error_where_it_was_asked_for_and_a_record_elsewhere(tmp_path):
    if not WRONG_ABI.is_file():
        pytest.skip("the test plugin is not built")
    with pytest.raises(tenon.IncompatibleError, match="wrong_major.*ABI"):
        tenon.Context(plugins=[WRONG_ABI])
    package, info = tmp_path / "tenon_backend_old", tmp_path / "tenon_backend_old-1.0.dist-info"
    (package / "backends").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (package / "backends" / WRONG_ABI.name).write_bytes(WRONG_ABI.read_bytes())
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tenon-backend-old\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[tenon.backends]\nold = tenon_backend_old\n")
    script = ("import tenon\nold = next(each for each in tenon.backends.list() if each.name == 'wrong_major')\n"
              "print(old.healthy, old.origin, 'INCOMPATIBLE' in old.problem, bool(old.remedy), tenon.ones(2).tolist())")
    path = os.pathsep.join([str(tmp_path), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONPATH": path})
    assert result.stdout == "False package old True True [1.0, 1.0]\n", result.stdout + result.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_objects_of_the_parent_are_errors_in_a_child_of_fork():
    script = """
import os, tenon
x, model = tenon.ones(2), tenon.Sequential([tenon.layers.Dense(1)], input_shape=[2])
model(tenon.ones((1, 2)))
child = os.fork()
if child == 0:
    for call in (lambda: x + 1, lambda: x.tolist(), lambda: model(tenon.ones((1, 2))), lambda: tenon.ops.relu(x)):
        try:
            call()
        except tenon.ForkedError as error:
            assert "belongs to the parent process" in str(error)
        else:
            os._exit(1)
    os._exit(0 if (tenon.ones(2) + 1).tolist() == [2, 2] else 2)
assert os.waitpid(child, 0)[1] == 0
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
