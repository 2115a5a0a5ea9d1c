# SPDX-License-Identifier: Apache-2.0
"""Arrays of other packages: the buffer protocol and DLPack, in and out without a copy."""
import ctypes
import itertools
from ctypes import py_object, pythonapi
from typing import Any, Dict, Optional, Tuple

from . import _api
from ._context import Device
from ._dtypes import DType, dtype_of, of_format
from ._errors import InvalidArgumentError, UnsupportedError
from ._library import check, lib, object_of

# ------------------------------------------------------------------ the buffer protocol


class _Buffer(ctypes.Structure):
    """Py_buffer"""

    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.c_void_p), ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t),
                ("readonly", ctypes.c_int), ("ndim", ctypes.c_int), ("format", ctypes.c_char_p), ("shape", ctypes.c_void_p),
                ("strides", ctypes.c_void_p), ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p)]


_get_buffer = pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = [py_object, ctypes.c_void_p, ctypes.c_int]
_get_buffer.restype = ctypes.c_int
_has_buffer = pythonapi.PyObject_CheckBuffer
_has_buffer.argtypes = [py_object]
_has_buffer.restype = ctypes.c_int
_end_buffer = pythonapi.PyBuffer_Release
_end_buffer.argtypes = [ctypes.c_void_p]
_end_buffer.restype = None
_is_contiguous = pythonapi.PyBuffer_IsContiguous
_is_contiguous.argtypes = [ctypes.c_void_p, ctypes.c_char]
_is_contiguous.restype = ctypes.c_int
_STRIDED_WITH_FORMAT = 0x0018 | 0x0004  # PyBUF_STRIDES, PyBUF_FORMAT: read-only memory too

# The buffers that tensors use, until the last of them is released. The library says so from any thread.
_borrowed: Dict[int, _Buffer] = {}
_numbers = itertools.count(1)
_OF_FORMATS: Dict[Optional[bytes], DType] = {code: dtype_of(name) for code, name in (
    (b"f", "f32"), (b"d", "f64"), (b"e", "f16"), (b"b", "i8"), (b"B", "u8"), (b"i", "i32"), (b"q", "i64"), (b"?", "bool"))}


def _return_buffer(number: Optional[int]) -> None:
    buffer = _borrowed.pop(number or 0, None)
    if buffer is not None:
        _end_buffer(ctypes.byref(buffer))


_return_buffer_function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_return_buffer)
_return_buffer_address = ctypes.cast(_return_buffer_function, ctypes.c_void_p).value


def has_buffer(value: Any) -> bool:
    """Whether a value has the buffer protocol."""
    return bool(_has_buffer(value))


def from_buffer(value: Any, dtype: Optional[DType] = None) -> int:
    """A tensor in the memory of a value with the buffer protocol. `dtype`: what its bytes are, in place of its own format.

    Errors  a format that is no dtype; strides that are no multiple of the element; foreign byte order.
    """
    buffer = _Buffer()
    reference = ctypes.byref(buffer)
    _get_buffer(value, reference, _STRIDED_WITH_FORMAT)  # pythonapi raises what it fails with
    try:
        text = buffer.format
        kind = dtype or _OF_FORMATS.get(text) or of_format(text.decode() if text else None, buffer.itemsize)
        if kind is None:
            raise InvalidArgumentError(f"array: expected elements of a real, complex or bool dtype in the byte order of this machine, got format "
                                       f"{text!r} of {type(value).__name__}: convert it first, as by array.astype('float32')")
        rank = buffer.ndim
        if rank > _api.MAX_RANK:
            raise InvalidArgumentError(f"array: expected at most {_api.MAX_RANK} dimensions, got {rank}")
        # Sizes are Py_ssize_t, which is int64 on the machines that the library is built for.
        strides = None if _is_contiguous(reference, b"C") else _element_strides(buffer)
        number = next(_numbers)
        _borrowed[number] = buffer
        try:
            return object_of(lib.tenon_tensor_borrow, buffer.buf, kind.code, rank, buffer.shape, strides,
                             _api.TENSOR_READ_ONLY if buffer.readonly else 0, _return_buffer_address, number)
        except BaseException:
            del _borrowed[number]
            raise
    except BaseException:
        _end_buffer(reference)
        raise


def _element_strides(buffer: _Buffer) -> Any:
    rank, size = buffer.ndim, buffer.itemsize
    shape, steps = (list((ctypes.c_ssize_t * rank).from_address(where)) for where in (buffer.shape, buffer.strides))
    if any(step % size and count > 1 for step, count in zip(steps, shape)):
        raise InvalidArgumentError(f"array: expected strides in whole elements of {size} bytes, got {steps} bytes: copy it first, as by "
                                   "numpy.ascontiguousarray(array)")
    return (ctypes.c_int64 * rank)(*[step // size for step in steps])


# ------------------------------------------------------------------ DLPack

_new_capsule = pythonapi.PyCapsule_New
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_new_capsule.restype = py_object


def _capsule_functions(kind: Any) -> Tuple[Any, Any, Any]:
    """PyCapsule_IsValid, GetPointer and SetName for capsules given as objects, or as addresses in a destructor."""
    functions = []
    for name, result, others in (("PyCapsule_IsValid", ctypes.c_int, [ctypes.c_char_p]), ("PyCapsule_GetPointer", ctypes.c_void_p, [ctypes.c_char_p]),
                                 ("PyCapsule_SetName", ctypes.c_int, [ctypes.c_char_p])):
        functions.append(ctypes.PYFUNCTYPE(result, kind, *others)((name, pythonapi)))
    return functions[0], functions[1], functions[2]


_is_valid, _pointer, _set_name = _capsule_functions(py_object)
_is_valid_at, _pointer_at, _ = _capsule_functions(ctypes.c_void_p)

# Capsules keep the addresses of their names.
_NAME, _USED = b"dltensor", b"used_dltensor"
_VERSIONED, _USED_VERSIONED = b"dltensor_versioned", b"used_dltensor_versioned"


class _DlTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
                ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64)]


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _DlTensor), ("context", ctypes.c_void_p), ("deleter", _DELETER)]


class _ManagedVersioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", _DELETER),
                ("flags", ctypes.c_uint64), ("tensor", _DlTensor)]


def _end_capsule(capsule: Optional[int]) -> None:
    """The destructor of a capsule: ends a tensor that nobody has taken."""
    for name, kind in ((_NAME, _Managed), (_VERSIONED, _ManagedVersioned)):
        if _is_valid_at(capsule, name):
            address = _pointer_at(capsule, name)
            managed: Any = kind.from_address(address)
            managed.deleter(address)


_end_capsule_function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_end_capsule)
_end_capsule_address = ctypes.cast(_end_capsule_function, ctypes.c_void_p).value

CPU, CUDA = 1, 2
_HOST_TYPES = (CPU, 3)  # pinned memory of CUDA is the host's
_DEVICE_NAMES = {CUDA: "cuda"}


def dlpack_device(handle: int) -> Tuple[int, int]:
    """(device type, index) of DLPack for a tensor."""
    kind, index = ctypes.c_int32(), ctypes.c_int32()
    check(lib.tenon_tensor_dlpack_device(handle, ctypes.byref(kind), ctypes.byref(index)))
    return kind.value, index.value


def to_capsule(handle: int, versioned: bool) -> Any:
    """A capsule for a tensor."""
    managed = object_of(lib.tenon_tensor_to_dlpack_versioned if versioned else lib.tenon_tensor_to_dlpack, handle)
    return _new_capsule(managed, _VERSIONED if versioned else _NAME, _end_capsule_address)


def from_dlpack(value: Any, find_device: Any) -> Tuple[int, Optional[Device]]:
    """(tensor, its device or None) for a value with __dlpack__, or a capsule. `find_device` opens a device by its name."""
    device: Optional[Device] = None
    capsule = value
    if hasattr(value, "__dlpack__"):
        kind, index = (int(each) for each in value.__dlpack_device__())
        if kind not in _HOST_TYPES:
            if kind not in _DEVICE_NAMES:
                raise UnsupportedError(f"array: expected memory of the host or of a CUDA device, got DLPack device type {kind} of "
                                       f"{type(value).__name__}: copy it to the host first")
            device = find_device(f"{_DEVICE_NAMES[kind]}:{index}")
        # 1 stands for CUDA's default stream: the exporter makes it wait for the work that is pending.
        stream = {} if device is None else {"stream": 1}
        try:
            capsule = value.__dlpack__(max_version=(1, 0), **stream)
        except TypeError:  # an exporter before DLPack 1.0
            capsule = value.__dlpack__(**stream)
        if device is not None:
            _synchronize_exporter(value)
    if _is_valid(capsule, _VERSIONED):
        address, used, function = _pointer(capsule, _VERSIONED), _USED_VERSIONED, lib.tenon_tensor_from_dlpack_versioned
    elif _is_valid(capsule, _NAME):
        address, used, function = _pointer(capsule, _NAME), _USED, lib.tenon_tensor_from_dlpack
    else:
        raise InvalidArgumentError(f"array: expected an object with __dlpack__, or a DLPack capsule that was not used before, got {type(value).__name__}")
    handle = object_of(function, address, None if device is None else device.handle)
    _set_name(capsule, used)
    return handle, device


def _synchronize_exporter(value: Any) -> None:
    """Waits for the work of PyTorch, whose tensor on a device the library reads on streams of its own."""
    import sys
    torch = sys.modules.get("torch")
    if torch is not None and type(value).__module__.startswith("torch"):
        torch.cuda.synchronize(value.device)


def from_array(value: Any) -> int:
    """from_buffer(), also for NumPy's bfloat16 and 8-bit floats of ml_dtypes, which the buffer protocol cannot describe."""
    try:
        return from_buffer(value)
    except (ValueError, BufferError):
        try:
            foreign = dtype_of(value.dtype)
        except (AttributeError, InvalidArgumentError, TypeError):
            foreign = None
        if foreign is None or foreign.format is not None or foreign.bits < 8:
            raise
        return from_buffer(value.view("uint8" if foreign.bits == 8 else "uint16"), foreign)


def open_buffers() -> int:
    """How many buffers of other packages tensors use."""
    return len(_borrowed)


__all__ = ["dlpack_device", "from_array", "from_buffer", "from_dlpack", "has_buffer", "open_buffers", "to_capsule"]
