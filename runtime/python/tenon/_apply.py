# SPDX-License-Identifier: Apache-2.0
"""Runs one op at once."""
import ctypes
import json
from functools import lru_cache
from typing import Any, List, Optional, Tuple

from ._context import DeviceLike, default_context, device_of
from ._dtypes import DType, bool_
from ._library import check, lib, native, raise_error
from ._tensor import Tensor, asarray, full, wrap
from ._tracing import state

_byref = ctypes.byref
_arrays = [ctypes.c_void_p * max(count, 1) for count in range(32)]


@lru_cache(maxsize=1024)
def encoded_attributes(items: Tuple[Tuple[str, Any], ...]) -> bytes:
    return json.dumps({key: value for key, value in items if value is not None}).encode()


def capacity_of(name: bytes, count: int) -> int:
    """A bound of the number of results of an op with `count` operands."""
    return 8 if name != b"Split" and not name.endswith(b"Step") else max(64, 5 * count)


def dtype_of_numbers(operands: Tuple[Any, ...]) -> Optional[DType]:
    """The dtype that numbers among the operands get: that of the first tensor which is no condition; None without a tensor."""
    dtypes = [each.dtype for each in operands if isinstance(each, Tensor)]
    return next((each for each in dtypes if each != bool_), dtypes[0] if dtypes else None)


def apply(number: int, name: bytes, operands: Tuple[Any, ...], attributes: Optional[Tuple[Tuple[str, Any], ...]], device: DeviceLike) -> List[Tensor]:
    """The results of an op. A number becomes a tensor of the first tensor's dtype. Without a device the op runs where its operands are.
    In a trace it becomes a node."""
    if state.trace is not None:
        return state.trace.apply(number, name, operands, attributes, device)
    tensors: List[Optional[Tensor]] = []
    for each in operands:
        if each is None or isinstance(each, Tensor):
            tensors.append(each)
        elif isinstance(each, (bool, int, float)):
            tensors.append(full((), each, dtype_of_numbers(operands)))
        else:
            tensors.append(asarray(each))
    where = device_of(device)
    if where is None:
        for tensor in tensors:
            if tensor is not None and tensor._device is not None and tensor._device._handle is not None:
                where = tensor._device
                break
        else:
            where = default_context().device()
    count = len(tensors)
    handles = tuple([None if each is None else each.handle for each in tensors])
    capacity = capacity_of(name, count)
    words = None if attributes is None else encoded_attributes(attributes)
    if native is not None and count <= 64 and capacity <= 64:
        made = native.apply(where.context.handle, where.handle, number, name, words, handles)
        if type(made) is int:
            raise_error(made)
        return [wrap(each, where) for each in made]
    inputs = (_arrays[count] if count < 32 else ctypes.c_void_p * count)(*handles)
    outputs = (ctypes.c_void_p * capacity)()
    found = ctypes.c_uint64()
    if words is None:
        check(lib.tenon_apply(where.context.handle, where.handle, number, None, None, inputs, count, outputs, capacity, _byref(found)))
    else:
        check(lib.tenon_apply_named(where.context.handle, where.handle, name, words, inputs, count, outputs, capacity, _byref(found)))
    return [wrap(outputs[i], where) for i in range(found.value)]


def listed(value: Any) -> Any:
    """Sizes as a tuple, which can be looked up; a number stays."""
    return None if value is None else value if isinstance(value, int) else tuple(int(each) for each in value)


def apply_op(name: str, *operands: Any, device: DeviceLike = None, **attributes: Any) -> Tuple[Tensor, ...]:
    """Runs an op by its name, also one of a vendor's backend: apply_op("com.example.SoftClip", x, limit=3).

    Operands are tensors or arrays, None for an absent one. Attributes are numbers, lists and names.
    Errors  an unknown op, wrong attributes or operands; UnsupportedError: no device computes it.
    """
    given = tuple((key, listed(value) if isinstance(value, (list, tuple)) else value) for key, value in attributes.items())
    return tuple(apply(0, name.encode(), operands, given, device))
