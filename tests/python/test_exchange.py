# SPDX-License-Identifier: Apache-2.0
"""Arrays of other packages go in and out without a copy: addresses are compared."""
import array
import ctypes
import gc
import subprocess
import sys
import threading

import numpy
import pytest

import tenon
from tenon._exchange import open_buffers

DTYPES = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128"]


@pytest.fixture(autouse=True)
def no_open_buffers():
    yield
    gc.collect()
    assert open_buffers() == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_goes_in_and_out_without_a_copy(dtype):
    before = numpy.ones((3, 4), dtype)
    made = tenon.asarray(before)
    assert made.address == before.ctypes.data and made.dtype == dtype and made.shape == (3, 4)
    for after in (made.numpy(), numpy.asarray(made), numpy.array(made, copy=False)):
        assert after.ctypes.data == before.ctypes.data and after.dtype == before.dtype and after.shape == before.shape


def test_dlpack_goes_in_and_out_without_a_copy():
    before = numpy.arange(12, dtype="float32").reshape(3, 4)
    made = tenon.from_dlpack(before)
    assert made.address == before.ctypes.data
    after = numpy.from_dlpack(made)
    assert after.ctypes.data == before.ctypes.data
    made.numpy()[0, 0] = 9  # NumPy 1 takes DLPack as read-only
    assert before[0, 0] == 9 and after[0, 0] == 9
    assert made.__dlpack_device__() == (1, 0)
    again = tenon.from_dlpack(made)
    assert again.address == made.address


def test_both_kinds_of_dlpack_capsules_are_made_taken_and_ended():
    made = tenon.ones(4)
    for version in (None, (1, 0), (0, 8), (1, 2)):
        capsule = made.__dlpack__(max_version=version)
        assert ("dltensor_versioned" in repr(capsule)) == (version is not None and version[0] == 1)
        taken = tenon.from_dlpack(capsule)
        assert taken.address == made.address
        with pytest.raises(tenon.InvalidArgumentError, match="not used before"):
            tenon.from_dlpack(capsule)
    for _ in range(3):
        made.__dlpack__()  # nobody takes it: its destructor ends it
        made.__dlpack__(max_version=(1, 0))
    copy = tenon.from_dlpack(made.__dlpack__(copy=True))
    assert copy.address != made.address
    with pytest.raises(BufferError, match="dl_device"):
        made.__dlpack__(dl_device=(2, 0))
    with pytest.raises(tenon.InvalidArgumentError, match="__dlpack__"):
        tenon.from_dlpack(3)


def test_results_and_views_outlive_their_tensors():
    out = (tenon.ones((2, 3)) + 1).numpy()
    row = tenon.asarray(numpy.full((2, 2), 5.0))[1]
    exported = numpy.from_dlpack(tenon.full(3, 4.0))
    view = tenon.full((2,), 3.0).memoryview()
    gc.collect()
    assert out.tolist() == [[2, 2, 2]] * 2 and row.tolist() == [5, 5] and exported.tolist() == [4, 4, 4] and view.tolist() == [3, 3]


def test_strides_go_in_and_out():
    base = numpy.arange(24, dtype="float32").reshape(4, 6)
    for part in (base[::2, 1::2], base[::-1], base.T, base[1:3, ::-1], numpy.broadcast_to(base[0], (3, 6)), base[:0]):
        made = tenon.asarray(part)
        assert made.shape == part.shape and numpy.array_equal(made.numpy(), part)
        assert part.size == 0 or made.numpy().ctypes.data == part.ctypes.data
        assert numpy.array_equal((made + 1).numpy(), part + 1)
    assert not tenon.asarray(base.T).is_dense
    packed = numpy.zeros(4, dtype=[("a", "u1"), ("b", "<f4")])["b"]
    with pytest.raises(tenon.InvalidArgumentError, match="strides in whole elements of 4 bytes"):
        tenon.asarray(packed)


def test_read_only_memory_stays_read_only():
    before = numpy.arange(3, dtype="float32")
    before.flags.writeable = False
    made = tenon.asarray(before)
    assert made.is_read_only and made[1:].is_read_only and not made.numpy().flags.writeable
    for change in (lambda: made.fill_(1), lambda: made.__setitem__(0, 1)):
        with pytest.raises(tenon.InvalidArgumentError, match="read-only"):
            change()
    with pytest.raises(BufferError, match="read-only"):
        made.__dlpack__()
    assert tenon.from_dlpack(made.__dlpack__(max_version=(1, 0))).is_read_only
    assert tenon.asarray(b"abc").is_read_only and tenon.asarray(b"abc").tolist() == [97, 98, 99]
    assert not made.clone().is_read_only


def test_the_buffer_protocol_goes_in_and_out():
    numbers = array.array("d", [1, 2, 3])
    made = tenon.asarray(numbers)
    assert made.dtype == "float64" and made.address == numbers.buffer_info()[0]
    grid = memoryview(bytearray(range(6))).cast("B", (2, 3))
    assert tenon.asarray(grid).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert tenon.asarray((ctypes.c_int32 * 2)(4, 5)).tolist() == [4, 5]
    view = made.memoryview()
    view[0] = 7
    assert numbers[0] == 7 and view.format == "d" and view.shape == (3,)
    assert tenon.ones(()).memoryview().tolist() == [1] and tenon.asarray(b"ab").memoryview().readonly
    if sys.version_info >= (3, 12):
        assert memoryview(made).tolist() == [7, 2, 3]
    with pytest.raises(tenon.UnsupportedError, match="contiguous"):
        tenon.ones((2, 3)).T.memoryview()


def test_array_has_numpys_arguments():
    made = tenon.ones((2, 2))
    assert made.__array__("float64").dtype == "float64"
    assert made.__array__(copy=True).ctypes.data != made.address and made.__array__(copy=False).ctypes.data == made.address
    with pytest.raises(ValueError, match="copy=False"):
        made.__array__("int32", copy=False)


def test_numpys_bfloat16_is_that_of_ml_dtypes():
    made = tenon.Tensor([1.5, 2], "bfloat16")
    try:
        import ml_dtypes
    except ImportError:
        with pytest.raises(tenon.UnsupportedError, match="install ml_dtypes"):
            made.numpy()
        return
    array = made.numpy()
    assert array.dtype == ml_dtypes.bfloat16 and array.ctypes.data == made.address
    assert tenon.asarray(array).address == made.address and tenon.asarray(array).dtype == "bfloat16"


def test_foreign_elements_are_errors_that_say_what_to_do():
    for wrong in (numpy.array(["a"]), numpy.zeros(2, ">f4"), numpy.zeros(2, [("a", "f4")]), numpy.zeros(2, object)):
        with pytest.raises((tenon.InvalidArgumentError, ValueError), match="."):
            tenon.asarray(wrong)
    with pytest.raises(tenon.InvalidArgumentError, match="astype"):
        tenon.asarray(numpy.zeros(2, ">f4"))
    with pytest.raises(tenon.InvalidArgumentError, match="at most 8 dimensions"):
        tenon.asarray(numpy.zeros((1,) * 9))
    with pytest.raises(tenon.UnsupportedError, match="DLPack device type 8"):
        tenon.from_dlpack(type("Metal", (), {"__dlpack__": lambda self, **_: None, "__dlpack_device__": lambda self: (8, 0)})())


def test_an_exporters_own_error_comes_through():
    class Busy:
        def __dlpack__(self, **_):
            raise BufferError("the array is in use")

        def __dlpack_device__(self):
            return (1, 0)

    with pytest.raises(BufferError, match="the array is in use"):
        tenon.asarray(Busy())


def test_borrowed_memory_is_given_back_by_any_thread():
    kept = [tenon.asarray(numpy.zeros(1000, "float32")) for _ in range(50)]
    assert open_buffers() >= 50
    thread = threading.Thread(target=kept.clear)
    thread.start()
    thread.join()
    gc.collect()
    assert open_buffers() == 0


def test_tensor_copies_what_asarray_shares():
    for before in (numpy.ones(3, "float32"), array.array("f", [1, 1, 1]), tenon.ones(3)):
        for arguments in ((), ("float32",), ("float32", "cpu")):
            assert tenon.tensor(before, *arguments).fill_(2).tolist() == [2, 2, 2] and list(before) == [1, 1, 1]
    assert tenon.tensor([1, 2], "float32").tolist() == [1, 2] and tenon.tensor(numpy.ones(2), "int32").dtype == "int32"


def test_lists_of_arrays_are_stacked():
    assert tenon.asarray([numpy.ones(2), numpy.zeros(2)]).tolist() == [[1, 1], [0, 0]]


def test_borrowed_memory_at_the_end_of_the_interpreter_does_no_harm():
    script = ("import numpy, tenon\na = numpy.ones((64, 64), 'float32')\nt = tenon.asarray(a)\nu = t + t\nn = u.numpy()\nd = numpy.from_dlpack(u)\n"
              "capsule = u.__dlpack__(max_version=(1, 0))\nprint(float(n.sum()))")
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, "8192.0\n", "")


def test_pytorch_shares_memory_both_ways():
    torch = pytest.importorskip("torch")
    before = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    made = tenon.asarray(before)
    assert made.address == before.data_ptr() and made.dtype == torch.float32 and made.tolist() == before.tolist()
    after = torch.from_dlpack(made)
    assert after.data_ptr() == before.data_ptr()
    after[0, 0] = 5
    assert made[0, 0].item() == 5
    half = torch.ones(3, dtype=torch.bfloat16)
    assert tenon.asarray(half).dtype == "bfloat16" and torch.from_dlpack(tenon.asarray(half)).data_ptr() == half.data_ptr()
    assert (tenon.ones(4) + torch.ones(4)).tolist() == [2] * 4
    with pytest.raises(BufferError):
        tenon.asarray(torch.ones(2, requires_grad=True))


def test_jax_shares_memory_both_ways():
    jax = pytest.importorskip("jax")
    before = jax.numpy.arange(64, dtype="float32").reshape(8, 8)
    made = tenon.asarray(before)
    assert made.address == before.unsafe_buffer_pointer() and made.is_read_only
    shared = tenon.ones((8, 8))
    after = jax.numpy.from_dlpack(shared)
    assert float(after.sum()) == 64 and after.unsafe_buffer_pointer() == shared.address
