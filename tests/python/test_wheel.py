# SPDX-License-Identifier: Apache-2.0
"""The wheel: built by tools/wheel, installed in a fresh virtual environment without a compiler or an index, and used there."""
import base64
import csv
import email
import hashlib
import io
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TENON_BUILD", SOURCE / "build/release"))
TRAIN = """
import sys, tenon
digits = tenon.datasets.digits(train_count=300, test_count=100)
model = tenon.Sequential([tenon.layers.Flatten(), tenon.layers.Dense(32, activation="relu"), tenon.layers.Dense(10)])
model.compile("adam", loss={"name": "sparse_categorical_crossentropy", "from_logits": True}, metrics=["accuracy"])
history = model.fit(digits, epochs=8, validation_data=digits.test, verbose=0)
print(tenon.device().name, history.history["val_accuracy"][-1] > 0.3, "numpy" in sys.modules)
"""


def run(*command, **environment):
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("TENON_", "PYTHON"))}
    return subprocess.run([str(each) for each in command], capture_output=True, text=True, env={**kept, **environment}, timeout=120, cwd="/")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("wheel")


@pytest.fixture(scope="module")
def wheel(folder):
    result = run(sys.executable, SOURCE / "tools/wheel", "--build", BUILD, "--out", folder)
    assert result.returncode == 0, result.stderr
    return next(folder.glob("tenon-*.whl"))


@pytest.fixture(scope="module")
def python(folder, wheel):
    """The interpreter of a virtual environment with the wheel."""
    made = run(sys.executable, "-m", "venv", folder / "venv")
    if made.returncode:
        pytest.skip(f"no virtual environments here (Debian: python3-venv): {made.stdout.strip().splitlines()[:1]}")
    interpreter = folder / "venv/bin/python"
    result = run(interpreter, "-m", "pip", "install", "--no-index", "--quiet", "--disable-pip-version-check", wheel)
    assert result.returncode == 0, result.stderr
    return interpreter


def test_the_record_has_each_file_with_its_hash(wheel):
    assert "-py3-none-manylinux_2_" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        rows = list(csv.reader(io.StringIO(archive.read(next(name for name in archive.namelist() if name.endswith("RECORD"))).decode())))
        assert sorted(row[0] for row in rows) == sorted(archive.namelist())
        for name, digest, size in rows:
            if digest:
                data = archive.read(name)
                assert digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode() and len(data) == int(size)
        names = archive.namelist()
    assert "tenon/lib/libtenon.so.1" in names and "tenon/lib/tenon/backends/libtenon_backend_reference.so" in names and "tenon/py.typed" in names


def test_a_folder_that_is_no_whole_build_is_an_error_with_its_remedy(folder):
    nothing, part = folder / "nothing", folder / "part"
    result = run(sys.executable, SOURCE / "tools/wheel", "--build", nothing, "--out", folder)
    assert result.returncode == 1 and "Traceback" not in result.stderr
    assert f"tools/wheel: {nothing} is not the folder of a build; build it by tools/build release" in result.stderr
    part.mkdir()
    shutil.copy2(BUILD / "CMakeCache.txt", part)
    (part / "cmake_install.cmake").write_text('message(FATAL_ERROR "file INSTALL cannot find libtenon.so")\n')
    result = run(sys.executable, SOURCE / "tools/wheel", "--build", part, "--out", folder)
    assert result.returncode == 1 and "Traceback" not in result.stderr
    assert "file INSTALL cannot find libtenon.so" in result.stderr
    assert "if only a part of it is built, as by tools/demo, build the rest by tools/build release" in result.stderr


def test_the_terms_of_all_libraries_come_with_the_wheel(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        info = next(name for name in names if name.endswith("/METADATA")).rpartition("/")[0]
        metadata = email.message_from_bytes(archive.read(info + "/METADATA"))
        notices = archive.read(info + "/licenses/THIRD-PARTY-NOTICES").decode()
    assert metadata["Metadata-Version"] == "2.4" and metadata["License"].startswith("Apache-2.0")
    assert metadata.get_all("License-File") == ["LICENSE", "THIRD-PARTY-NOTICES"]
    assert all(f"{info}/licenses/{file}" in names for file in metadata.get_all("License-File"))
    listed = [line.split()[0] for line in notices.split("=" * 100)[0].splitlines() if line.startswith("  ")]
    assert {"libopenblas-serial-dev", "libhwy-dev", "nlohmann-json3-dev", "zlib1g"} <= set(listed)
    bundled = [name.rpartition("/")[2] for name in names if name.startswith("tenon/lib/lib") and not name.startswith("tenon/lib/libtenon")]
    assert bundled and [library for library in bundled if library not in notices.split("=" * 100)[0]] == []
    assert [package for package in listed if f"\n{package} " not in notices.partition("=" * 100)[2]] == [] and "MIT" in notices


def test_a_net_trains_where_only_the_wheel_is_installed(python):
    result = run(python, "-c", TRAIN)
    assert result.returncode == 0 and result.stdout.endswith(" True False\n"), result.stdout + result.stderr


def test_the_native_module_comes_with_the_wheel_and_is_used(wheel, python):
    if not (BUILD / "lib/tenon/python/_native.abi3.so").is_file():
        pytest.skip("the build had no headers of Python")
    with zipfile.ZipFile(wheel) as archive:
        assert "tenon/lib/tenon/python/_native.abi3.so" in archive.namelist()
    script = "import tenon, sys\nprint(tenon._library.native is not None, '.abi3.so' in __import__('importlib.machinery').machinery.EXTENSION_SUFFIXES)"
    used, can_be = run(python, "-c", script).stdout.split()
    assert used == can_be


def test_the_command_line_comes_with_the_wheel(python):
    result = run(python.parent / "tenon", "devices")
    assert result.returncode == 0 and "reference:0" in result.stdout, result.stderr
    assert run(python.parent / "tenon", "no-such-verb").returncode != 0


def test_a_backend_is_a_wheel_that_is_found_without_being_imported(folder, python):
    file = BUILD / "lib/tenon/examples/libtenon_backend_example.so"
    if not file.is_file():
        pytest.skip("the example backend is not built")
    made = run(sys.executable, SOURCE / "tools/wheel", "--backend", file, "--name", "tenon-backend-example", "--version", "1.0", "--out", folder)
    assert made.returncode == 0, made.stderr
    result = run(python, "-m", "pip", "install", "--no-index", "--quiet", "--disable-pip-version-check", next(folder.glob("tenon_backend_example-*.whl")))
    assert result.returncode == 0, result.stderr
    script = ("import sys, tenon\nfound = {each.name: each for each in tenon.backends.list()}\nmine = found.get('example')\n"
              "print(mine and (mine.healthy, mine.origin, mine.devices), 'tenon_backend_example' in sys.modules)")
    result = run(python, "-c", script)
    assert result.stdout.strip() == "(True, 'package tenon_backend_example', ['example:0']) False", result.stdout + result.stderr
    assert run(python, "-c", script, TENON_PYTHON_BACKENDS="0").stdout.strip() == "None False"
    # A package without the folder, and a file that is no backend, are told and do not end the process.
    backends = next((folder / "venv/lib").glob("python*/site-packages/tenon_backend_example")) / "backends"
    (backends / "libtenon_backend_broken.so").write_text("no library")
    result = run(python, "-c", "import tenon\nprint([(each.name, each.healthy) for each in tenon.backends.list() if each.name == 'broken'])")
    assert result.stdout.strip() == "[('broken', False)]", result.stderr
    for file in backends.iterdir():
        file.unlink()
    backends.rmdir()
    result = run(python, "-c", "import tenon\nprint(tenon.device().name != '')")
    assert result.stdout.strip() == "True" and "names a package without a folder `backends`" in result.stderr


def test_the_example_package_is_installed_by_setuptools_where_it_can_build(folder, python):
    """Without the package wheel, which setuptools before 70 needs and Debian's virtual environments lack, only the description is read."""
    source = SOURCE / "tools/examples/python_backend"
    file = BUILD / "lib/tenon/examples/libtenon_backend_example.so"
    if sys.version_info >= (3, 11):
        import tomllib
        description = tomllib.loads((source / "pyproject.toml").read_text())
        (name, module), = description["project"]["entry-points"]["tenon.backends"].items()
        assert (source / module / "__init__.py").is_file() and name == module
        assert description["tool"]["setuptools"]["package-data"] == {module: ["backends/*.so"]}
    if not file.is_file() or run(python, "-c", "import setuptools, wheel").returncode:
        pytest.skip("setuptools and wheel are not installed, or the example backend is not built")
    copy = folder / "package"
    shutil.copytree(source, copy)
    (copy / "tenon_backend_example/backends").mkdir()
    shutil.copy(file, copy / "tenon_backend_example/backends")
    result = run(python, "-m", "pip", "install", "--no-index", "--no-build-isolation", "--no-deps", "--force-reinstall", "--quiet", copy)
    assert result.returncode == 0, result.stderr
    result = run(python, "-c", "import tenon\nprint([each.healthy for each in tenon.backends.list() if each.name == 'example'])")
    assert result.stdout.strip() == "[True]", result.stdout + result.stderr


def test_a_wheel_for_windows_has_what_its_zip_has(folder):
    name = "tenon-1.2.3-windows-x86_64"
    with zipfile.ZipFile(folder / f"{name}.zip", "w") as zipped:
        for file in ("bin/tenon.exe", "bin/tenon.dll", "bin/tenon_blas.dll", "bin/libstdc++-6.dll", "lib/tenon/backends/tenon_backend_reference.dll",
                     "lib/tenon/tenon-bench.exe", "lib/tenon/tenon-probe.exe", "lib/tenon.lib", "share/doc/tenon/third_party/fmtlib"):
            zipped.writestr(f"{name}/{file}", file)
    done = run(SOURCE / "tools/wheel", "--windows", folder / f"{name}.zip", "--out", folder)
    assert done.returncode == 0, done.stderr
    names = zipfile.ZipFile(folder / "tenon-1.2.3-py3-none-win_amd64.whl").namelist()
    found = {each for each in names if not each.endswith((".py", ".typed"))}
    assert found == {"tenon/bin/tenon.exe", "tenon/bin/tenon.dll", "tenon/bin/libstdc++-6.dll", "tenon/lib/tenon/backends/tenon_backend_reference.dll",
                     "tenon/lib/tenon/tenon-probe.exe"} | {f"tenon-1.2.3.dist-info/{each}" for each in (
                         "METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE", "licenses/THIRD-PARTY-NOTICES")}
    refused = run(SOURCE / "tools/wheel", "--windows", folder / "tenon.zip", "--out", folder)
    assert refused.returncode == 1 and "expected a file tenon-<version>-windows-x86_64.zip" in refused.stderr


def test_what_needs_numpy_says_so(python):
    result = run(python, "-c", "import tenon\ntenon.InferenceSession('any.onnx')")
    assert result.returncode == 1 and "ImportError: InferenceSession makes arrays of NumPy" in result.stderr and "pip install numpy" in result.stderr
    result = run(python, "-c", "import tenon\nprint(tenon.ones(2).tolist())\ntenon.ones(2).numpy()")
    assert result.stdout.strip() == "[1.0, 1.0]" and "ImportError: Tensor.numpy" in result.stderr
