# SPDX-License-Identifier: Apache-2.0
"""Indices with arrays and masks, as NumPy has them."""
from typing import Any, List, Optional, Tuple

from . import ops
from ._dtypes import int64
from ._errors import UnsupportedError
from ._tensor import Tensor, arange, asarray, full, is_integer, is_mask, is_traced

Index = Tuple[Any, ...]


def _list_as_tensor(each: Any) -> Any:
    if isinstance(each, (list, tuple)):
        made = asarray(each)
        return made if made.size or made.dtype.is_integer else made.to(int64)
    return each


def _axes_of(each: Any) -> int:
    """How many axes of the tensor an index takes."""
    return 0 if each is None or each is Ellipsis else each.ndim if is_mask(each) else 1


def gathered(x: Tensor, index: Index) -> Tensor:
    """x[index] with arrays and masks in the index. Errors: IndexError."""
    indices = [_list_as_tensor(each) for each in index]
    for each in indices:
        if isinstance(each, bool) or (is_mask(each) and each.ndim == 0):
            raise UnsupportedError("index: expected a mask of at least one dimension, got a single bool")
    taken = sum(map(_axes_of, indices))
    if taken > x.ndim:
        raise IndexError(f"index: expected at most {x.ndim} indices for {x.shape}, got {taken}")
    places = [i for i, each in enumerate(indices) if each is Ellipsis]
    if len(places) > 1:
        raise IndexError("index: expected at most one Ellipsis")
    if places:
        indices[places[0]:places[0] + 1] = [slice(None)] * (x.ndim - taken)
    # Slices and new axes first: what is left are the axes that arrays take, and their indices.
    made, axis = x, 0
    axes: List[int] = []
    found: List[Tensor] = []
    for each in indices:
        if each is None:
            made, axis = made.unsqueeze(axis), axis + 1
        elif isinstance(each, slice):
            made, axis = made._slice(axis, each), axis + 1
        elif is_mask(each):
            count = each.ndim
            if is_traced(each):
                each._refuse("a mask as an index", "the shape of the result would depend on its elements: use tenon.ops.where(mask, x, 0), or make the mask "
                                                   "outside of the traced function")
            if tuple(each.shape) != made.shape[axis:axis + count]:
                raise IndexError(f"index: expected a mask of the shape {made.shape[axis:axis + count]} of the axes that it selects from, got "
                                 f"{tuple(each.shape)}")
            rows = asarray(each).nonzero()
            found += [rows[:, i] for i in range(count)]
            axes += range(axis, axis + count)
            axis += count
        else:
            number = asarray(each)
            if not number.dtype.is_integer:
                raise IndexError(f"index: expected integers, slices or a mask of bool, got {number.dtype}")
            if is_integer(each) and not -made.shape[axis] <= each.__index__() < made.shape[axis]:
                raise IndexError(f"index {each.__index__()} is out of range for axis {axis} of {made.shape}")
            found.append(number if number.dtype in ("int32", "int64") else number.to(int64))
            axes.append(axis)
            axis += 1
    if len(axes) == 1:
        return ops.gather(made, found[0], axis=axes[0])
    # Several: these axes become one, at the place of the first, or in front if others lie between them.
    first = axes[0]
    if axes != list(range(first, first + len(axes))):
        made, first = made.permute(*axes, *[i for i in range(made.ndim) if i not in axes]), 0
    sizes = made.shape[first:first + len(axes)]
    total = 1
    for size in sizes:
        total *= size
    joined = made.reshape(made.shape[:first] + (total,) + made.shape[first + len(axes):])
    return ops.gather(joined, _joined(found, sizes, total), axis=first)


def _joined(indices: List[Tensor], sizes: Tuple[int, ...], total: int) -> Tensor:
    """Indices into the joined axis; one that is out of range becomes `total`, which is out of range too."""
    result: Optional[Tensor] = None
    for index, size in zip(indices, sizes):
        wide = index.to(int64)
        counted = ops.where(wide < 0, wide + size, wide)
        inside = ops.where((counted >= 0) & (counted < size), counted, full((), total, int64))
        result = inside if result is None else ops.where((result < total) & (inside < size), result * size + inside, full((), total, int64))
    assert result is not None
    return result


def assigned(x: Tensor, index: Index, value: Any) -> None:
    """x[index] = value with arrays and masks in the index."""
    value = asarray(value, dtype=x.dtype)
    mask = asarray(index[0]) if len(index) == 1 and is_mask(index[0]) and not isinstance(index[0], bool) else None
    if mask is not None and value.ndim == 0 and mask.shape == x.shape:
        x.copy_(ops.where(mask, value, x))
        return
    places = gathered(arange(x.size).reshape(x.shape), index)
    if value.shape != places.shape:
        value = value.expand(places.shape)
    changed = ops.scatter_slices(x.flatten(), places.flatten(), value.flatten(), axis=0, reduction="none")
    x.copy_(changed.reshape(x.shape))


