# SPDX-License-Identifier: Apache-2.0
"""Contexts, devices, errors, and the life cycle of objects."""
import os
import subprocess
import sys
import threading

import pytest

import tenon


def run_python(text, **environment):
    """Runs a script in a process of its own."""
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env={**os.environ, **environment}, timeout=60)


def test_import_takes_neither_numpy_nor_long():
    result = run_python("import sys, tenon\nprint([m for m in ('numpy', 'torch', 'jax', 'IPython', 'matplotlib') if m in sys.modules])")
    assert result.stdout.strip() == "[]", result.stderr
    result = run_python("import sys, tenon\nprint([m for m in ('subprocess', 'tempfile', 'html', 'tenon.ops', 'tenon.layers', 'tenon._model') if m in sys.modules])\n"
                        "public = {name for name in dir(tenon) if not name.startswith('_')}\n"
                        "print(set(tenon.__all__) == public | {'__version__'}, all(hasattr(tenon, name) for name in public), tenon.Batcher, hasattr(tenon, 'nothing'))")
    assert result.stdout == "[]\nTrue True <class 'tenon.Batcher'> False\n", result.stdout + result.stderr


@pytest.mark.parametrize("wanted", ["0", "1"])
def test_the_native_module_is_optional(wanted):
    script = "import tenon\nfrom tenon._library import native\nprint(native is not None, (tenon.ones(2) + 1).tolist(), tenon.ops.split(tenon.ones(4), sizes=[1, 3])[1].shape)"
    there = os.path.isfile(os.path.join(os.path.dirname(tenon._library.lib._name), "tenon", "python", "_native.abi3.so"))
    result = run_python(script, TENON_PYTHON_NATIVE=wanted)
    assert result.stdout == f"{there and wanted == '1'} [2.0, 2.0] (3,)\n", result.stderr


def test_devices_are_in_the_order_of_preference():
    names = [device.name for device in tenon.devices()]
    assert "reference:0" in names
    assert tenon.device().name == names[0]
    assert tenon.device("cpu").info["kind"] == "cpu"
    assert repr(tenon.device(names[0])) == f"<tenon.Device {names[0]}>"


def test_a_missing_device_is_an_error_of_its_kind_with_the_list_of_devices():
    with pytest.raises(tenon.DeviceNotFoundError, match="not found; available: .*reference:0") as raised:
        tenon.device("nowhere")
    assert isinstance(raised.value, LookupError) and isinstance(raised.value, tenon.Error)
    assert raised.value.status == "DEVICE_NOT_FOUND"


def test_each_status_has_an_exception_of_a_kind_that_python_knows():
    from tenon._api import STATUSES
    from tenon._errors import OF_STATUS
    assert set(OF_STATUS) == set(STATUSES) - {"OK"}
    assert issubclass(tenon.InvalidArgumentError, ValueError)
    assert issubclass(tenon.OutOfMemoryError, MemoryError)
    assert issubclass(tenon.UnsupportedError, NotImplementedError)


def test_a_configuration_is_a_dict_or_yaml_and_its_mistakes_are_errors():
    with tenon.Context({"device": "reference:0", "seed": 7}) as context:
        assert context.device().name == "reference:0"
        assert "seed: 7" in context.config
    with tenon.Context("device: reference:0") as context:
        assert context.device().name == "reference:0"
    with pytest.raises(ValueError, match="devise"):
        tenon.Context({"devise": "cpu"})
    with pytest.raises(tenon.Error, match="/nowhere/plugin.so"):
        tenon.Context(plugins=["/nowhere/plugin.so"])
    with pytest.raises(TypeError, match="expected a str, got bytes"):
        tenon.device(b"cpu")
    with pytest.raises(ValueError, match="NUL"):
        tenon.device("cpu\0")


def test_a_closed_object_is_a_clear_error_and_closing_again_is_none():
    context = tenon.Context()
    device = context.device()
    assert not context.closed
    context.close()
    context.close()
    assert context.closed and repr(context) == "<tenon.Context, closed>"
    with pytest.raises(ValueError, match="Context: expected an open object, got one that was closed"):
        context.devices()
    with pytest.raises(ValueError, match="Device: expected an open object"):
        device.synchronize()


def test_the_default_context_is_made_again_after_it_was_closed():
    tenon.default_context().close()
    assert tenon.device("reference:0").name == "reference:0"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork()")
def test_a_child_of_fork_has_errors_for_objects_of_its_parent_and_a_context_of_its_own():
    result = run_python("""
import os, tenon
context = tenon.default_context()
child = os.fork()
if child == 0:
    try:
        context.devices()
    except tenon.ForkedError as error:
        assert "belongs to the parent process" in str(error)
        del context
        os._exit(0 if tenon.device("reference:0").name == "reference:0" else 2)
    os._exit(1)
assert os.waitpid(child, 0)[1] == 0
assert context.device("reference:0").name == "reference:0"
""")
    assert result.returncode == 0, result.stderr


def test_objects_that_are_alive_at_the_end_of_the_interpreter_do_no_harm():
    result = run_python("import tenon\ncontext = tenon.Context()\ndevices = context.devices()\nkept = tenon.default_context()")
    assert result.returncode == 0 and result.stderr == "", result.stderr


def test_contexts_are_made_and_closed_by_several_threads():
    failures = []

    def work():
        try:
            for _ in range(3):
                with tenon.Context() as context:
                    assert context.device("reference:0").info["name"] == "reference:0"
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_backends_are_listed_with_what_became_of_them():
    found = tenon.backends.list()
    reference = next(each for each in found if each.name == "reference")
    assert reference.healthy and reference.devices == ["reference:0"] and reference.origin == "next to the library"
    assert "reference" in repr(found) and "<table>" in found._repr_html_()
    with tenon.Context() as context:
        assert [each.name for each in tenon.backends.list(context)] == [each.name for each in found]


def test_the_doctor_tells_versions_backends_and_devices():
    diagnosis = tenon.doctor()
    assert f"calls by {'ctypes alone' if tenon._library.native is None else 'the native module'}" in str(diagnosis)
    assert diagnosis.healthy
    for part in (f"tenon {tenon.__version__}", "python 3", "backend reference: healthy", "device reference:0"):
        assert part in repr(diagnosis)


def test_a_library_that_is_missing_or_of_another_kind_is_an_import_error():
    result = run_python("import tenon", TENON_LIBRARY="/nowhere/libtenon.so")
    assert "ImportError: TENON_LIBRARY: expected the path of" in result.stderr
    result = run_python("import tenon", TENON_LIBRARY=sys.executable)
    assert "ImportError" in result.stderr and "Traceback" in result.stderr
    result = run_python("import tenon", TENON_LIBRARY="")
    assert "install the wheel, or name the library in the environment variable TENON_LIBRARY" in result.stderr


def test_a_context_without_usable_backends_is_a_python_error():
    with pytest.raises(tenon.Error, match="."):
        tenon.Context({"backends": {"use": ["nowhere"]}})


def test_conformance_takes_the_name_and_the_file_of_a_backend():
    file = next(each.path for each in tenon.backends.list() if each.name == "reference")
    for backend in ("reference", file):
        report = tenon.backends.conformance(backend, ["--family", "softmax", "--list"])
        assert report.returncode == 0 and "softmax" in report.stdout, report.stderr
    report = tenon.backends.conformance("reference", ["--filter", "core/lifecycle/load"])
    assert report.returncode == 0 and "1 pass, 0 fail" in report.stdout, report.stdout + report.stderr
