# SPDX-License-Identifier: Apache-2.0
"""Runs one op at once."""
import ctypes
import json
from functools import lru_cache
from typing import Any, List, Optional, Tuple

from ._context import DeviceLike, default_context, device_of
from ._library import check, lib, native, raise_error
from ._tensor import Tensor, asarray, full, wrap

_byref = ctypes.byref
_arrays = [ctypes.c_void_p * max(count, 1) for count in range(32)]


@lru_cache(maxsize=1024)
def _attributes(items: Tuple[Tuple[str, Any], ...]) -> bytes:
    return json.dumps({key: value for key, value in items if value is not None}).encode()


def apply(number: int, name: bytes, operands: Tuple[Any, ...], attributes: Optional[Tuple[Tuple[str, Any], ...]], device: DeviceLike) -> List[Tensor]:
    """The results of an op. A number becomes a tensor of the first tensor's dtype. Without a device the op runs where its operands are."""
    tensors: List[Optional[Tensor]] = []
    first = None
    for each in operands:
        if isinstance(each, Tensor):
            first = each
            break
    for each in operands:
        if each is None or isinstance(each, Tensor):
            tensors.append(each)
        elif first is not None and isinstance(each, (bool, int, float)):
            tensors.append(full((), each, first.dtype))
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
    capacity = 8 if name != b"Split" and not name.endswith(b"Step") else max(64, 5 * count)
    words = None if attributes is None else _attributes(attributes)
    if native is not None and capacity <= 64:
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
