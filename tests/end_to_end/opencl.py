#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""opencl.py TENON PLUGIN DRIVER: the OpenCL backend with drivers that are missing, lack something or fail.

DRIVER is the library of opencl_driver.c, which stands between the backend and the ICD loader.
"""
import os
import random
import subprocess
import sys
import tempfile
from array import array
from pathlib import Path

TENON, PLUGIN, DRIVER = sys.argv[1:4]
CONFIG = "device: opencl:0\nbackends: {use: [opencl, reference], options: {opencl: {icd_loader: %s, program_cache: 'off'}}}\n"


def expect(condition, text):
    if not condition:
        sys.exit(f"opencl.py: {text}")


def tenon(*arguments, **environment):
    done = subprocess.run([TENON, *arguments], env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=250)
    return done.returncode, " ".join(done.stdout.split())


def expect_text(output, *texts):
    for text in texts:
        expect(text in output, f"expected '{text}' in: {output}")


def missing(folder):
    """No ICD loader, and one without drivers: the reason and the remedy, and no crash."""
    config = folder / "missing.yaml"
    config.write_text(CONFIG % "/nonexistent/libOpenCL.so.1")
    code, output = tenon("doctor", "--plugin", PLUGIN, "--config", str(config))
    expect_text(output, "the OpenCL ICD loader cannot be opened (/nonexistent/libOpenCL.so.1", "install it (Debian: ocl-icd-libopencl1)")
    code, output = tenon("devices", "--config", str(config))
    expect(code != 0 and "opencl" in output, f"devices: expected a failure for the device opencl:0, got {code}: {output}")
    (folder / "vendors").mkdir()
    config.write_text(CONFIG % DRIVER)
    code, output = tenon("doctor", "--plugin", PLUGIN, "--config", str(config), OCL_ICD_VENDORS=str(folder / "vendors"))
    expect_text(output, "the OpenCL loader found no driver", "pocl-opencl-icd")


def without_f64():
    """A device without cl_khr_fp64 is certified for f32 and says no to f64."""
    option = ("--backend-option", f"icd_loader={DRIVER}")
    for profile, names in (("ops", "relu/f*"), ("ops", "matmul/f*"), ("ops", "reduce_sum/f*"), ("core", "core/plan/*")):
        code, output = tenon("conformance", "--plugin", PLUGIN, *option, "--profile", profile, "--filter", names, TENON_TEST_SIZE="small", OPENCL_DRIVER_WITHOUT="cl_khr_fp64")
        expect(code == 0 and " 0 fail, 0 unsupported" in output and " 0 pass" not in output, f"{names} without f64: {output}")
    code, output = tenon("conformance", "--plugin", PLUGIN, *option, "--profile", "ops", "--filter", "relu/f64*", TENON_TEST_SIZE="small", OPENCL_DRIVER_WITHOUT="cl_khr_fp64")
    expect_text(output, " 0 pass, 0 fail", "f64")


def as_a_gpu():
    """What is computed in another way on GPUs than on CPUs."""
    for names in ("conv*/f32*forward", "max_pool_grad/f32*forward", "max_pool_grad/f32/any_choices"):
        code, output = tenon("conformance", "--plugin", PLUGIN, "--backend-option", f"icd_loader={DRIVER}", "--profile", "ops", "--filter", names, "--timeout", "240", TENON_TEST_SIZE="small", OPENCL_DRIVER_GPU="1")
        expect(code == 0 and " 0 fail, 0 unsupported" in output and " 0 pass" not in output, f"{names} as a GPU: {output}")


def columns_in_parts():
    """Convolutions of three images with scratch memory for two, in f64 for one."""
    for gpu in ({}, {"OPENCL_DRIVER_GPU": "1"}):
        code, output = tenon("conformance", "--plugin", PLUGIN, "--backend-option", f"icd_loader={DRIVER}", "--backend-option", "columns_limit_kib=350", "--profile", "ops",
                             "--filter", "conv*/f*(3,*forward", TENON_TEST_SIZE="small", **gpu)
        expect(code == 0 and " 0 fail, 0 unsupported" in output and " 0 pass" not in output, f"convolutions in parts: {output}")


def clock_that_is_not_exact():
    """Between two events there is no negative time, whatever the driver says."""
    for names in ("core/profile/*", "core/event/*"):
        code, output = tenon("conformance", "--plugin", PLUGIN, "--backend-option", f"icd_loader={DRIVER}", "--profile", "core", "--filter", names, OPENCL_DRIVER_CLOCK="20000")
        expect(" 0 fail" in output and "before the beginning" not in output, f"{names} with times that are not exact: {output}")


def numbers(*shape):
    import tenon as package

    count = 1
    for size in shape:
        count *= size
    chance = random.Random(count)
    return package.asarray(array("f", [chance.uniform(-1, 1) for _ in range(count)])).reshape(shape)


def a_kernel_that_does_not_compile():
    """The error has the file, the options and the compiler's log; other kernels work."""
    import tenon as package

    x = numbers(4, 5)
    os.environ["OPENCL_DRIVER_BREAKS"] = "op_tanh"
    try:
        package.ops.tanh(x, device="opencl:0")
        sys.exit("opencl.py: a kernel that does not compile was run")
    except package.VendorError as error:
        expect_text(str(error), ".cl does not compile with", "-DT=float", "planted by the test")
    del os.environ["OPENCL_DRIVER_BREAKS"]
    expect(package.ops.relu(x, device="opencl:0").to("reference:0").min().item() >= 0, "relu after a failed compilation")
    expect(abs(package.ops.tanh(x, device="opencl:0").to("reference:0").max().item()) <= 1, "tanh, once it compiles")


def memory_that_runs_out():
    """Training that needs more memory than there is ends with an error; the model trains and predicts on."""
    import tenon as package
    from tenon import layers

    model = package.Sequential([layers.Dense(64, activation="relu"), layers.Dense(10)])
    model.compile(optimizer="adam", loss=package.losses.SparseCategoricalCrossentropy(from_logits=True))
    x, labels = numbers(64, 256), package.asarray(array("q", [i % 10 for i in range(64)]))
    model.fit(x, labels, batch_size=16, epochs=2)
    before = model.evaluate(x, labels)["loss"]
    os.environ["OPENCL_DRIVER_LIMIT"] = str(4 << 20)
    many = numbers(4096, 256)
    try:
        model.fit(many, package.asarray(array("q", [i % 10 for i in range(4096)])), batch_size=4096, epochs=1)
        sys.exit("opencl.py: a batch that does not fit was trained")
    except package.OutOfMemoryError as error:
        expect_text(str(error), "opencl:0", "bytes")
    del os.environ["OPENCL_DRIVER_LIMIT"]
    expect(abs(model.evaluate(x, labels)["loss"] - before) < 1e-6, "the failed training changed the model")
    model.fit(x, labels, batch_size=16, epochs=2)
    expect(model.evaluate(x, labels)["loss"] < before, "training after the failure does not go on")


def three_backends():
    """A model whose layers are on three backends learns what it learns on one, and its copies are counted."""
    import tenon as package
    from tenon import layers

    x, labels = numbers(32, 48), package.asarray(array("q", [i % 10 for i in range(32)]))
    losses = {}
    for places in (("reference:0",) * 3, ("openblas:0", "opencl:0", "reference:0")):
        context = package.Context({"backends": {"options": {"opencl": {"icd_loader": DRIVER}}}, "seed": 3, "device": "reference:0"})
        model = package.Sequential([layers.Dense(40, activation="relu", device=places[0]), layers.Dense(30, activation="tanh", device=places[1]),
                                    layers.Dense(10, device=places[2])], context=context)
        model.compile(optimizer="sgd", loss=package.losses.SparseCategoricalCrossentropy(from_logits=True))
        losses[places] = model.fit(x, labels, batch_size=16, epochs=4, shuffle=False, verbose=0).history["loss"]
        explanation = model.explain(16)
        expect((explanation["copies_inserted"] >= 2) == (len(set(places)) > 1), f"copies between {places}: {explanation['copies_inserted']}")
    one, three = losses.values()
    expect(all(abs(a - b) < 1e-4 for a, b in zip(one, three)) and one[-1] < one[0], f"losses on one backend {one}, on three {three}")


def main():
    code, output = tenon("devices")
    if "opencl:0" not in output:
        print("skipped: there is no OpenCL device; tools/setup installs PoCL")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        missing(folder)
        without_f64()
        as_a_gpu()
        columns_in_parts()
        clock_that_is_not_exact()
        config = folder / "tenon.yaml"
        config.write_text(CONFIG % DRIVER)
        os.environ["TENON_CONFIG"] = str(config)
        os.environ["TENON_BACKEND_PATH"] = str(Path(PLUGIN).parent)
        a_kernel_that_does_not_compile()
        memory_that_runs_out()
        os.environ.pop("TENON_CONFIG")
        three_backends()
    print("the OpenCL backend reports drivers that are missing, lack f64, are GPUs, do not compile, have no memory or no exact clock, and shares a model with two others")


main()
