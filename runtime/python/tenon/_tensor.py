# SPDX-License-Identifier: Apache-2.0
"""Tensors: strided arrays of one dtype in host or device memory."""
import ctypes
import sys
from array import array
from typing import Any, Iterator, List, Optional, Sequence, Tuple, Union

from . import _api, _exchange, _library
from ._context import Device, DeviceLike, default_context, device_of
from ._dtypes import BY_CODE, DType, DTypeLike, bool_, dtype_of, float32, int64, promoted
from ._errors import InvalidArgumentError, UnsupportedError
from ._library import Object, check, generation, integers, lib, object_of, text_of
from ._tracing import state, suspended

Scalar = Union[bool, int, float]
TensorLike = Any  # a Tensor, an array of another package, a number, or nested lists of numbers
Shape = Union[int, Sequence[int]]

_info_size = ctypes.sizeof(_api.TenonTensorInfo)
_byref = ctypes.byref
_c_void_p = ctypes.c_void_p


def _shape_of(shape: Tuple[Any, ...]) -> Tuple[int, ...]:
    """The sizes of `f(2, 3)` and `f((2, 3))`."""
    if len(shape) == 1 and not hasattr(shape[0], "__index__"):
        shape = tuple(shape[0])
    return tuple(size.__index__() for size in shape)


def import_numpy(needed_by: str, instead: str) -> Any:
    """The package numpy. Errors: ImportError, with what to do without it."""
    try:
        import numpy
    except ImportError:
        raise ImportError(f"{needed_by} makes arrays of NumPy, which is not installed: install it (pip install numpy), or use {instead}",
                          name="numpy") from None
    return numpy


def is_mask(index: Any) -> bool:
    """Whether an index is a bool, or an array of them."""
    return isinstance(index, bool) or getattr(getattr(index, "dtype", None), "name", "") == "bool"


def is_traced(index: Any) -> bool:
    """Whether an index is a traced tensor."""
    return isinstance(index, Tensor) and hasattr(index, "_trace")


def is_integer(index: Any) -> bool:
    """Whether an index is a number, which selects an element of an axis."""
    return type(index) is int or (hasattr(index, "__index__") and getattr(index, "ndim", 0) == 0 and not is_mask(index) and not is_traced(index))


def _is_basic(indices: Tuple[Any, ...]) -> bool:
    """Whether an index has only integers, slices, None and Ellipsis, which make views."""
    return all(each is None or each is Ellipsis or isinstance(each, slice) or is_integer(each) for each in indices)


class Tensor(Object):
    """A strided array of one dtype in host or device memory.

    data    an array of NumPy, PyTorch, JAX or another package with DLPack or the buffer protocol, whose memory is shared; a number, or
            nested lists of numbers, which are copied.
    dtype   None: that of the array; bool, int64 and float32 for Python's bool, int and float. Another one makes a copy.
    device  None: where the memory is. Another one makes a copy.

    Errors  InvalidArgumentError: a dtype that there is not, lists of different lengths.

    Elements may be changed through each tensor and array that shares them. Operations give new tensors.
    """

    __slots__ = ("_device", "_known")
    __array_priority__ = 100  # NumPy leaves mixed operations to this class

    def __init__(self, data: TensorLike, dtype: Optional[DTypeLike] = None, device: DeviceLike = None):
        if state.trace is not None:
            state.trace.expect_known(data, "tenon.Tensor(...)", "use tenon.asarray(...)")
            with suspended():
                made = asarray(data, dtype, device)
        else:
            made = asarray(data, dtype, device)
        if made is data:
            handle, where = object_of(lib.tenon_tensor_reshape, made.handle, made.ndim, integers(made.shape)) if made.is_dense else 0, made._device
            if not handle:
                made = made.contiguous()
                handle, made._handle = made._handle or 0, None
        else:
            handle, where = made._handle or 0, made._device
            made._handle = None
        super().__init__(handle)
        self._device: Optional[Device] = where
        self._known: Optional[_api.TenonTensorInfo] = None

    # -------------------------------------------------------------- what it is

    @property
    def _info(self) -> _api.TenonTensorInfo:
        info = self._known
        if info is None or self._handle is None:
            info = _api.TenonTensorInfo(struct_size=_info_size)
            check(lib.tenon_tensor_info(self.handle, _byref(info)))
            self._known = info
        return info

    @property
    def shape(self) -> Tuple[int, ...]:
        """The sizes, outermost dimension first."""
        info = self._info
        return tuple(info.shape[:info.rank])

    @property
    def strides(self) -> Tuple[int, ...]:
        """The strides, in elements."""
        info = self._info
        return tuple(info.strides[:info.rank])

    @property
    def dtype(self) -> DType:
        """The dtype, such as tenon.float32."""
        return BY_CODE[self._info.dtype]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return int(self._info.rank)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(self._info.element_count)

    @property
    def nbytes(self) -> int:
        """The bytes of a dense copy."""
        return int(self._info.size_bytes)

    @property
    def address(self) -> int:
        """The address of element (0, ..., 0): a pointer, or an address of the device."""
        return int(self._info.address)

    @property
    def is_dense(self) -> bool:
        """Whether the elements are contiguous in row-major order."""
        return bool(self._info.is_dense)

    @property
    def is_on_host(self) -> bool:
        """Whether the host can access the elements."""
        return bool(self._info.is_on_host)

    @property
    def is_read_only(self) -> bool:
        """Whether the memory must not be changed."""
        return bool(self._info.flags & _api.TENSOR_READ_ONLY)

    @property
    def device(self) -> Optional[Device]:
        """The device of the memory; None for memory of the host alone."""
        if self._device is None:
            out = _c_void_p()
            check(lib.tenon_tensor_device(self.handle, _byref(out)))
            if out.value:
                self._device = Device(out.value, default_context())
        return self._device

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("len() of a tensor without dimensions")
        return self.shape[0]

    def __repr__(self) -> str:
        if self.closed:
            return "<tenon.Tensor, closed>"
        text = text_of(lib.tenon_tensor_text, self.handle, 3).replace("\n", "\n" + " " * len("Tensor("))
        return f"Tensor({text}, dtype={self.dtype}{self._where()}{self._sizes()})"

    def _where(self) -> str:
        return f", device='{self._device.name}'" if self._device is not None and not self._device.closed else ""

    def _sizes(self) -> str:
        return f", shape={self.shape}" if any(size > 7 for size in self.shape) or self.size == 0 else ""

    def _repr_html_(self) -> str:
        from html import escape
        if self.closed:
            return escape(repr(self))
        head = f"Tensor {self.dtype} {self.shape}{self._where()}"
        return f"<div><b>{escape(head)}</b><pre>{escape(text_of(lib.tenon_tensor_text, self.handle, 3))}</pre></div>"

    # -------------------------------------------------------------- out of it

    def numpy(self) -> Any:
        """The elements as an array of NumPy, in the same memory if it is the host's, else copied.

        Errors  UnsupportedError: a dtype that NumPy does not have; bfloat16 and 8-bit floats need the package ml_dtypes. ImportError: no NumPy.
        """
        numpy = import_numpy("Tensor.numpy", "tolist() or memoryview(tensor)")
        host = self if self.is_on_host else self.cpu()
        dtype = host.dtype
        if dtype.typestr is not None:
            return numpy.asarray(_ArrayInterface(host, dtype.typestr)) if host.size else numpy.empty(host.shape, dtype.typestr)
        if dtype.bits < 8:
            raise UnsupportedError(f"numpy: expected a dtype of whole bytes, got {dtype}: convert it first, by tensor.to('int8')")
        try:
            import ml_dtypes
        except ImportError:
            raise UnsupportedError(f"numpy: NumPy has no {dtype}: convert the tensor first, by tensor.to('float32'), or install ml_dtypes") from None
        return numpy.asarray(_ArrayInterface(host, "|u1" if dtype.bits == 8 else "<u2")).view(getattr(ml_dtypes, dtype.name))

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        import numpy
        made = self.numpy()
        if copy is False and not self.is_on_host:
            raise ValueError("copy=False: the tensor is in a device's memory, which has to be copied")
        if dtype is not None and numpy.dtype(dtype) != made.dtype:
            if copy is False:
                raise ValueError(f"copy=False: {self.dtype} has to be copied to become {dtype}")
            return made.astype(dtype)
        return made.copy() if copy else made

    def __dlpack__(self, *, stream: Any = None, max_version: Optional[Tuple[int, int]] = None, dl_device: Optional[Tuple[int, int]] = None,
                   copy: Optional[bool] = None) -> Any:
        source = self
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            if tuple(dl_device) != (_exchange.CPU, 0):
                raise BufferError(f"dl_device: expected {self.__dlpack_device__()} or {(_exchange.CPU, 0)}, got {dl_device}")
            if copy is False:
                raise BufferError("copy=False: the tensor is in the memory of another device")
            source = self.cpu()
        elif copy:
            source = self.clone()
        if source._device is not None and not source.is_on_host:
            source._device.synchronize()
        versioned = max_version is not None and max_version[0] >= 1
        if source.is_read_only and not versioned:
            raise BufferError("a read-only tensor: expected a consumer of DLPack 1.0 or later, which knows of read-only memory; give it a copy")
        return _exchange.to_capsule(source.handle, versioned)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return _exchange.dlpack_device(self.handle)

    def memoryview(self) -> memoryview:
        """The elements as a memoryview, in the same memory.

        Errors  UnsupportedError: memory of a device, strides, or a dtype without a format of the struct module.
        """
        dtype = self.dtype
        if not self.is_on_host or not self.is_dense or dtype.format is None or dtype.format == "e" or len(dtype.format) > 1:
            raise UnsupportedError(f"memoryview: expected dense memory of the host with real elements of whole bytes, got {self!r}: use contiguous(), cpu() "
                                   "or to()")
        raw: Any = (ctypes.c_char * self.nbytes).from_address(self.address)
        raw.owner = _Owner.of(self)
        data: Any = memoryview(raw).cast("B")
        view: memoryview = data.cast(dtype.format, self.shape) if self.size and self.ndim else data.cast(dtype.format)
        return view.toreadonly() if self.is_read_only else view

    if sys.version_info >= (3, 12):

        def __buffer__(self, flags: int) -> memoryview:
            if flags & 1 and self.is_read_only:  # PyBUF_WRITABLE
                raise BufferError("the tensor is read-only")
            return self.memoryview()

    def tolist(self) -> Any:
        """The elements as nested lists of Python's numbers; a number for a tensor without dimensions."""
        if state.trace is not None:
            with suspended():
                return self.tolist()
        source = self.cpu().contiguous()
        if source.dtype.format in (None, "e"):  # memoryview has no halves
            source = source.to("float32" if source.dtype.is_floating else "int32")
        if len(source.dtype.format or "") > 1:
            return source.numpy().tolist()
        values = source.memoryview().tolist() if source.size else []
        if source.ndim == 0:
            return values[0]
        if source.size == 0:
            return _empty_lists(source.shape)
        return values

    def item(self) -> Any:
        """The only element. Errors: there are others."""
        if self.size != 1:
            raise InvalidArgumentError(f"item: expected a tensor of one element, got {self.shape}")
        if state.trace is not None:
            with suspended():
                return self.item()
        return self.reshape(()).tolist() if self.is_dense else self.contiguous().reshape(()).tolist()

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(f"bool: expected a tensor of one element, got {self.shape}; use (a == b).all() or tenon.equal(a, b)")
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if not self.dtype.is_integer:
            raise TypeError(f"expected an integer tensor as an index, got {self.dtype}")
        return int(self.item())

    def __iter__(self) -> "Iterator[Tensor]":
        return (self[i] for i in range(len(self)))

    # -------------------------------------------------------------- copies and views

    def to(self, *to: Any, device: DeviceLike = None, dtype: Optional[DTypeLike] = None) -> "Tensor":
        """The tensor on a device, in a dtype, or both: to("cpu:0"), to(tenon.float16), to("cuda", "float16"). It is the same tensor if
        it is there already. From floating point to integers, values are truncated and saturated, and NaN becomes 0.

        Errors  DeviceNotFoundError; InvalidArgumentError: neither a dtype nor a device.
        """
        for each in to:
            if isinstance(each, Device):
                device = each
                continue
            try:
                dtype = dtype_of(each)
            except InvalidArgumentError:
                if not isinstance(each, str):
                    raise
                device = each
        made = self
        if state.trace is not None:
            return state.trace.converted(self, device, None if dtype is None else dtype_of(dtype))
        if dtype is not None and dtype_of(dtype).code != made._info.dtype:
            made = _wrap(object_of(lib.tenon_tensor_to_dtype, made.handle, dtype_of(dtype).code), made._device)
        where = device_of(device)
        if where is not None:
            made = _wrap(object_of(lib.tenon_tensor_to_device, made.handle, where.handle), where)
        return made

    def astype(self, dtype: DTypeLike) -> "Tensor":
        """The tensor in a dtype, as to()."""
        return self.to(dtype=dtype_of(dtype))

    def cpu(self) -> "Tensor":
        """The tensor in memory of the host: itself, or a dense copy."""
        if self._info.is_on_host:
            return self
        return _wrap(object_of(lib.tenon_tensor_to_device, self.handle, None), None)

    def clone(self) -> "Tensor":
        """A dense copy in the same memory."""
        if state.trace is not None:
            return state.trace.lift(self)
        made = empty(self.shape, self.dtype, self.device)
        return made.copy_(self)

    def contiguous(self) -> "Tensor":
        """The tensor with dense elements in row-major order: itself, or a copy."""
        return self if self._info.is_dense else self._view(lib.tenon_tensor_contiguous)

    def copy_(self, source: TensorLike) -> "Tensor":
        """Sets the elements to those of another tensor, which is converted and broadcast. Errors: a read-only tensor; shapes that do not fit."""
        if state.trace is not None:
            state.trace.expect_known(source, "copy_()")
            with suspended():
                return self.copy_(source)
        value = asarray(source, dtype=self.dtype)
        if value.shape != self.shape:
            value = value.expand(self.shape)
        check(lib.tenon_tensor_assign(self.handle, value.handle))
        return self

    def fill_(self, value: Scalar) -> "Tensor":
        """Sets every element. Errors: a read-only tensor; a value that an integer dtype cannot hold."""
        if _needs_all_digits(value, self.dtype):
            with suspended():
                return self.copy_(full((), value, self.dtype))
        check(lib.tenon_tensor_fill(self.handle, float(value)))
        return self

    def _view(self, function: Any, *arguments: Any) -> "Tensor":
        if state.trace is not None:
            return state.trace.lift(self)._view(function, *arguments)
        out = _c_void_p()
        check(function(self.handle, *arguments, _byref(out)))
        return _wrap(out.value or 0, self._device)

    def reshape(self, *shape: Any) -> "Tensor":
        """The elements with another shape, one size of which may be -1. It shares memory if the tensor is dense."""
        sizes = _shape_of(shape)
        if -1 in sizes:
            rest = 1
            for size in sizes:
                rest *= size if size != -1 else 1
            if sizes.count(-1) > 1 or rest == 0 or self.size % rest:
                raise InvalidArgumentError(f"reshape: expected sizes whose product is {self.size}, got {sizes} for shape {self.shape}")
            sizes = tuple(self.size // rest if size == -1 else size for size in sizes)
        return self.contiguous()._view(lib.tenon_tensor_reshape, len(sizes), integers(sizes))

    def flatten(self) -> "Tensor":
        """The elements in one dimension."""
        return self.reshape(-1) if self.size else self.reshape(0)

    def permute(self, *axes: Any) -> "Tensor":
        """A view whose axis i is axis axes[i] of this tensor."""
        order = _shape_of(axes)
        if len(order) != self.ndim:
            raise InvalidArgumentError(f"permute: expected {self.ndim} axes, got {order}")
        return self._view(lib.tenon_tensor_permute, len(order), integers(order))

    def transpose(self, a: int = -2, b: int = -1) -> "Tensor":
        """A view with two axes exchanged."""
        order = list(range(self.ndim))
        try:
            order[a], order[b] = order[b], order[a]
        except IndexError:
            raise InvalidArgumentError(f"transpose: expected two axes of {self.shape}, got {a} and {b}") from None
        return self.permute(order)

    @property
    def T(self) -> "Tensor":  # noqa: N802 - NumPy's name
        """A view with the axes reversed."""
        return self.permute(tuple(reversed(range(self.ndim))))

    def expand(self, *shape: Any) -> "Tensor":
        """A view with axes of size 1, and new leading ones, broadcast to a shape. Errors: sizes that do not fit."""
        sizes = _shape_of(shape)
        return self._view(lib.tenon_tensor_expand, len(sizes), integers(sizes))

    def unsqueeze(self, axis: int) -> "Tensor":
        """A view with an axis of size 1 before `axis`; -1 puts it last."""
        return self._view(lib.tenon_tensor_unsqueeze, axis)

    def squeeze(self, axis: Optional[int] = None) -> "Tensor":
        """A view without the axes of size 1, or without this one."""
        made, axes = self, range(self.ndim) if axis is None else [axis if axis >= 0 else axis + self.ndim]
        for each in sorted(axes, reverse=True):
            if not 0 <= each < self.ndim or (axis is not None and self.shape[each] != 1):
                raise InvalidArgumentError(f"squeeze: expected an axis of size 1 of {self.shape}, got {axis}")
            if self.shape[each] == 1:
                made = made._view(lib.tenon_tensor_select, each, 0)
        return made

    def __getitem__(self, index: Any) -> "Tensor":
        indices = index if isinstance(index, tuple) else (index,)
        if not _is_basic(indices):
            from ._indexing import gathered
            return gathered(self, indices)
        if sum(each is Ellipsis for each in indices) > 1:
            raise IndexError("index: expected at most one Ellipsis")
        taken = sum(each is not None and each is not Ellipsis for each in indices)
        if taken > self.ndim:
            raise IndexError(f"index: expected at most {self.ndim} indices for {self.shape}, got {taken}")
        made, axis = self, 0
        for place, each in enumerate(indices):
            if each is Ellipsis:
                axis = made.ndim - sum(later is not None for later in indices[place + 1:])
            elif each is None:
                made, axis = made._view(lib.tenon_tensor_unsqueeze, axis), axis + 1
            elif isinstance(each, slice):
                made, axis = made._slice(axis, each), axis + 1
            else:
                number, size = each.__index__(), made.shape[axis]
                if not -size <= number < size:  # IndexError, which ends iterations
                    raise IndexError(f"index {number} is out of range for axis {axis} of {self.shape}")
                made = made._view(lib.tenon_tensor_select, axis, number)
        return made if made is not self else self._view(lib.tenon_tensor_expand, self.ndim, integers(self.shape))

    def _slice(self, axis: int, part: slice) -> "Tensor":
        begin, end, step = part.indices(self.shape[axis])
        if not range(begin, end, step):
            begin, end, step = 0, 0, 1
        return self._view(lib.tenon_tensor_slice, axis, begin, end, step)

    def __setitem__(self, index: Any, value: TensorLike) -> None:
        indices = index if isinstance(index, tuple) else (index,)
        if state.trace is not None:
            for each in (value, *indices):
                state.trace.expect_known(each, "assignment to an index")
            with suspended():
                self[index] = value
        elif _is_basic(indices):
            self[index].copy_(value)
        else:
            from ._indexing import assigned
            assigned(self, indices, value)

    def nonzero(self) -> "Tensor":
        """The indices of the elements that are not 0, int64 (count, ndim), in row-major order, on the host. NaN is not 0."""
        return _wrap(object_of(lib.tenon_tensor_nonzero, self.handle), None).T

    # -------------------------------------------------------------- arithmetic

    def _operands(self, other: Any) -> "Tuple[Tensor, Tensor]":
        if isinstance(other, (bool, int, float)):
            if isinstance(other, float) and not self.dtype.is_floating:
                return self.to(float32), full((), other, float32)
            if not isinstance(other, bool) and self.dtype == bool_:
                return self.to(int64), full((), other, int64)
            return self, full((), other, self.dtype)
        other = asarray(other)
        if other._info.dtype == self._info.dtype:
            return self, other
        dtype = promoted(self.dtype, other.dtype)
        return self.to(dtype), other.to(dtype)

    def _apply(self, op: str, other: Any, reverse: bool = False) -> "Tensor":
        if isinstance(other, (str, bytes)) or other is None:
            return NotImplemented  # type: ignore[no-any-return]
        from . import ops
        a, b = self._operands(other)
        result: Tensor = getattr(ops, op)(b, a) if reverse else getattr(ops, op)(a, b)
        return result

    def __add__(self, other: Any) -> "Tensor":
        return self._apply("add", other)

    def __radd__(self, other: Any) -> "Tensor":
        return self._apply("add", other, True)

    def __sub__(self, other: Any) -> "Tensor":
        return self._apply("sub", other)

    def __rsub__(self, other: Any) -> "Tensor":
        return self._apply("sub", other, True)

    def __mul__(self, other: Any) -> "Tensor":
        return self._apply("mul", other)

    def __rmul__(self, other: Any) -> "Tensor":
        return self._apply("mul", other, True)

    def _floating(self) -> "Tensor":
        return self if self.dtype.is_floating else self.to(float32)

    def __truediv__(self, other: Any) -> "Tensor":
        return self._floating()._apply("div", other if isinstance(other, (int, float)) else asarray(other)._floating())

    def __rtruediv__(self, other: Any) -> "Tensor":
        return self._floating()._apply("div", other if isinstance(other, (int, float)) else asarray(other)._floating(), True)

    def __floordiv__(self, other: Any) -> "Tensor":
        from . import ops
        a, b = self._operands(other)
        quotient = ops.div(a, b)
        if a.dtype.is_floating:
            return ops.floor(quotient)
        negative = (a < 0) ^ (b < 0)
        inexact: Tensor = quotient * b != a
        return quotient - (inexact & negative).to(quotient.dtype)

    def __mod__(self, other: Any) -> "Tensor":
        a, b = self._operands(other)
        return a - (a // b) * b

    def __pow__(self, other: Any) -> "Tensor":
        if isinstance(other, int) and other == 2:
            return self * self
        return self._floating()._apply("pow", other)

    def __rpow__(self, other: Any) -> "Tensor":
        return self._floating()._apply("pow", other, True)

    def __matmul__(self, other: Any) -> "Tensor":
        return self._apply("matmul", other)

    def __rmatmul__(self, other: Any) -> "Tensor":
        return self._apply("matmul", other, True)

    def __neg__(self) -> "Tensor":
        from .ops import neg
        return neg(self)

    def __abs__(self) -> "Tensor":
        from .ops import abs as absolute
        return absolute(self)

    def __invert__(self) -> "Tensor":
        from .ops import logical_not
        return logical_not(self)

    def __and__(self, other: Any) -> "Tensor":
        return self._apply("logical_and", other)

    def __or__(self, other: Any) -> "Tensor":
        return self._apply("logical_or", other)

    def __xor__(self, other: Any) -> "Tensor":
        return self._apply("logical_xor", other)

    def __eq__(self, other: Any) -> Any:
        return self._apply("equal", other)

    def __ne__(self, other: Any) -> Any:
        equal_elements = self._apply("equal", other)
        return equal_elements if equal_elements is NotImplemented else ~equal_elements

    def __lt__(self, other: Any) -> "Tensor":
        return self._apply("less", other)

    def __le__(self, other: Any) -> "Tensor":
        return self._apply("less_equal", other)

    def __gt__(self, other: Any) -> "Tensor":
        return self._apply("greater", other)

    def __ge__(self, other: Any) -> "Tensor":
        return self._apply("greater_equal", other)

    __hash__ = object.__hash__

    def _reduce(self, op: str, axis: Optional[Shape], keepdims: bool) -> "Tensor":
        from . import ops
        axes = () if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
        return getattr(ops, op)(self, axes=axes, keepdims=keepdims)  # type: ignore[no-any-return]

    def sum(self, axis: Optional[Shape] = None, keepdims: bool = False) -> "Tensor":
        """The sum over axes; None: over all."""
        return self._reduce("reduce_sum", axis, keepdims)

    def mean(self, axis: Optional[Shape] = None, keepdims: bool = False) -> "Tensor":
        """The mean over axes; None: over all."""
        return self._floating()._reduce("reduce_mean", axis, keepdims)

    def max(self, axis: Optional[Shape] = None, keepdims: bool = False) -> "Tensor":
        """The largest element over axes; None: over all. NaN propagates."""
        return self._reduce("reduce_max", axis, keepdims)

    def min(self, axis: Optional[Shape] = None, keepdims: bool = False) -> "Tensor":
        """The smallest element over axes; None: over all. NaN propagates."""
        return self._reduce("reduce_min", axis, keepdims)

    def prod(self, axis: Optional[Shape] = None, keepdims: bool = False) -> "Tensor":
        """The product over axes; None: over all."""
        return self._reduce("reduce_prod", axis, keepdims)

    def all(self, axis: Optional[Shape] = None, keepdims: bool = False) -> "Tensor":
        """Whether all elements are true, over axes; None: over all."""
        return (self if self.dtype == bool_ else self != 0).to("int32")._reduce("reduce_min", axis, keepdims).to(bool_)

    def any(self, axis: Optional[Shape] = None, keepdims: bool = False) -> "Tensor":
        """Whether any element is true, over axes; None: over all."""
        return (self if self.dtype == bool_ else self != 0).to("int32")._reduce("reduce_max", axis, keepdims).to(bool_)

    def argmax(self, axis: Optional[int] = None, keepdims: bool = False) -> "Tensor":
        """The index of the largest element along an axis, int64; None: of the flattened tensor."""
        from . import ops
        return ops.arg_max(self.flatten(), axis=0) if axis is None else ops.arg_max(self, axis=axis, keepdims=keepdims)

    def argmin(self, axis: Optional[int] = None, keepdims: bool = False) -> "Tensor":
        """The index of the smallest element along an axis, int64; None: of the flattened tensor."""
        from . import ops
        return ops.arg_min(self.flatten(), axis=0) if axis is None else ops.arg_min(self, axis=axis, keepdims=keepdims)


class _ArrayInterface:
    """What NumPy makes an array of, and what keeps the tensor alive as the array's base."""

    __slots__ = ("owner", "__array_interface__")

    def __init__(self, tensor: Tensor, typestr: str):
        self.owner = _Owner.of(tensor)
        info = tensor._info
        width = int(typestr[2:])
        self.__array_interface__ = {
            "version": 3, "shape": tensor.shape, "typestr": typestr, "data": (info.address, bool(info.flags & _api.TENSOR_READ_ONLY)),
            "strides": None if info.is_dense else tuple(stride * width for stride in tensor.strides)
        }


class _Owner:
    """Keeps the memory of a tensor, and releases its handle at the end."""

    __slots__ = ("handle", "born")

    def __init__(self, handle: Optional[int]):
        self.handle, self.born = handle, generation()

    @classmethod
    def of(cls, tensor: Tensor) -> "_Owner":
        """An owner of the memory that the tensor has now; a tensor may get other memory."""
        lib.tenon_retain(tensor.handle)
        return cls(tensor.handle)

    def __del__(self) -> None:
        if self.born == generation():
            lib.tenon_release(self.handle)


class ArrayMaker:
    """Makes arrays of NumPy of tensors' handles, which it takes over: wrap(handle).numpy(), sooner. It is used by one thread at a time."""

    def __init__(self, numpy: Any) -> None:
        self._array: Any = numpy.ndarray
        self._dtypes = {code: numpy.dtype(each.typestr) for code, each in BY_CODE.items() if each.typestr is not None}
        self._info = _api.TenonTensorInfo(struct_size=_info_size)
        self._shape = self._info.shape
        self._address = ctypes.addressof(self._info)

    def __call__(self, handle: Optional[int]) -> Any:
        info = self._info
        error = lib.tenon_tensor_info(handle, self._address)
        dtype = self._dtypes.get(info.dtype)
        if error is not None or dtype is None or not info.is_dense or not info.is_on_host or not info.element_count:
            tensor = _wrap(handle, None)
            check(error)
            return tensor.numpy()
        buffer: Any = (ctypes.c_char * info.size_bytes).from_address(info.address)
        buffer.owner = _Owner(handle)  # lives as long as the array's base
        return self._array(self._shape[:info.rank], dtype, buffer)


_new = Tensor.__new__


def _wrap(handle: Optional[int], device: Optional[Device]) -> Tensor:
    """The tensor of a handle, which it owns."""
    tensor = _new(Tensor)
    tensor._handle = handle or 0
    tensor._born = _library._generation
    tensor._device = device
    tensor._known = None
    return tensor


wrap = _wrap


def _empty_lists(shape: Tuple[int, ...]) -> Any:
    return [_empty_lists(shape[1:]) for _ in range(shape[0])] if len(shape) > 1 else []


def _from_lists(data: Any, dtype: Optional[DType]) -> int:
    """A tensor with a copy of nested lists of numbers."""
    shape: List[int] = []
    level: List[Any] = [data]
    while level and isinstance(level[0], (list, tuple)):
        length = len(level[0])
        if any(not isinstance(each, (list, tuple)) or len(each) != length for each in level):
            raise InvalidArgumentError(f"tensor: expected lists of one length in dimension {len(shape)}, got different ones")
        shape.append(length)
        level = [item for each in level for item in each]
    if level and isinstance(level[0], Tensor):
        level = [each.item() for each in level]
    wrong = next((each for each in level if not isinstance(each, (bool, int, float)) and not hasattr(each, "__float__")), None)
    if wrong is not None:
        raise InvalidArgumentError(f"tensor: expected numbers, got {type(wrong).__name__}: {wrong!r}")
    natural = (bool_ if all(isinstance(each, bool) for each in level) else int64
               if all(isinstance(each, int) or hasattr(each, "__index__") for each in level) else float32) if level else float32
    target = dtype or natural
    code = {"b1": "b"}.get((target.typestr or "")[1:], target.format or "")
    if code in ("b", "h", "i", "q", "B", "H", "I", "Q", "f", "d"):
        try:
            values = array(code, [int(each) for each in level] if code not in "fd" else level)
        except OverflowError as error:
            raise InvalidArgumentError(f"tensor: expected numbers that {target} holds: {error}") from None
        address, _ = values.buffer_info()
        return object_of(lib.tenon_tensor_copy_of, address if level else None, target.code, len(shape), integers(shape), None)
    wide = array("d", level)
    made = _wrap(object_of(lib.tenon_tensor_copy_of, wide.buffer_info()[0], dtype_of("float64").code, len(shape), integers(shape), None), None)
    return object_of(lib.tenon_tensor_to_dtype, made.handle, target.code)


def asarray(data: TensorLike, dtype: Optional[DTypeLike] = None, device: DeviceLike = None) -> Tensor:
    """A tensor for an array, in the same memory where dtype and device allow it; a tensor is itself.

    Errors  as those of Tensor.
    """
    target = None if dtype is None else dtype_of(dtype)
    if isinstance(data, Tensor):
        made = data
    elif isinstance(data, (bool, int, float)):
        made = full((), data, target or (bool_ if isinstance(data, bool) else int64 if isinstance(data, int) else float32))
    elif isinstance(data, (list, tuple)):
        if data and hasattr(data[0], "__array__") and not isinstance(data[0], (int, float)):
            import numpy
            made = asarray(numpy.stack([numpy.asarray(each) for each in data]))
        else:
            made = _wrap(_from_lists(data, target), None)
    elif isinstance(data, str):
        raise InvalidArgumentError(f"tensor: expected an array or numbers, got the text {data!r}")
    elif _exchange.has_buffer(data):
        made = _wrap(_exchange.from_array(data), None)
    elif hasattr(data, "__dlpack__"):
        handle, where = _exchange.from_dlpack(data, default_context().device)
        made = _wrap(handle, where)
    elif hasattr(data, "__array__"):  # pandas, and what else makes arrays of NumPy
        import numpy
        made = asarray(numpy.asarray(data))
    elif hasattr(data, "__float__"):
        made = full((), float(data), target or float32)
    else:
        raise InvalidArgumentError(f"tensor: expected a number, lists of numbers, or an array with DLPack or the buffer protocol, got {type(data).__name__}")
    if target is None and device is None:
        return made
    return made.to(device=device, dtype=target)


def tensor(data: TensorLike, dtype: Optional[DTypeLike] = None, device: DeviceLike = None) -> Tensor:
    """A tensor with a copy of an array or of nested lists of numbers."""
    source = asarray(data)
    made = source.to(device=device, dtype=dtype)
    shares = made.address == source.address and not isinstance(data, (bool, int, float, list, tuple))
    return made.clone() if shares else made


def from_dlpack(data: Any) -> Tensor:
    """A tensor in the memory of an object with __dlpack__, or of a DLPack capsule.

    Errors  UnsupportedError: memory that neither the host nor a device of Tenon can use.
    """
    handle, device = _exchange.from_dlpack(data, default_context().device)
    return _wrap(handle, device)


def empty(shape: Shape, dtype: DTypeLike = float32, device: DeviceLike = None) -> Tensor:
    """A dense tensor with uninitialised elements, in memory of the host or a device. Errors: OutOfMemoryError."""
    sizes = _shape_of((shape,))
    where = device_of(device)
    return _wrap(object_of(lib.tenon_tensor_empty, None if where is None else where.handle, dtype_of(dtype).code, len(sizes), integers(sizes)), where)


def _needs_all_digits(value: Any, dtype: DType) -> bool:
    """Whether this is an integer that a double may not hold, for a dtype that does."""
    return isinstance(value, int) and dtype.is_integer and abs(value) > 2**53


def full(shape: Shape, value: Scalar, dtype: Optional[DTypeLike] = None, device: DeviceLike = None) -> Tensor:
    """A dense tensor with `value` in every element; the dtype is that of the value if None."""
    sizes = _shape_of((shape,))
    where = device_of(device)
    kind = dtype_of(type(value) if dtype is None else dtype)
    if _needs_all_digits(value, kind):
        with suspended():
            made = _wrap(_from_lists(value, kind), None).expand(sizes).contiguous().to(device=where)
    else:
        out = _c_void_p()
        check(lib.tenon_tensor_full(None if where is None else where.handle, kind.code, len(sizes), integers(sizes), value, _byref(out)))
        made = _wrap(out.value or 0, where)
    return made if sizes or state.trace is None else state.trace.constant(made)


def zeros(shape: Shape, dtype: DTypeLike = float32, device: DeviceLike = None) -> Tensor:
    """A dense tensor of zeros."""
    return full(shape, 0, dtype, device)


def ones(shape: Shape, dtype: DTypeLike = float32, device: DeviceLike = None) -> Tensor:
    """A dense tensor of ones."""
    return full(shape, 1, dtype, device)


def arange(start: Scalar, stop: Optional[Scalar] = None, step: Scalar = 1, dtype: Optional[DTypeLike] = None) -> Tensor:
    """start, start + step, ... before stop; with one argument from 0 to it."""
    if stop is None:
        start, stop = 0, start
    if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int):
        return asarray(array("q", range(start, stop, step))).to(dtype=dtype or int64)
    count = max(0, -int(-(stop - start) // step))
    return asarray([start + i * step for i in range(count)], dtype or float32)


def equal(a: TensorLike, b: TensorLike) -> bool:
    """Whether two tensors have the same dtype, shape and bits, on any device."""
    result = ctypes.c_uint32()
    a, b = asarray(a), asarray(b)
    check(lib.tenon_tensor_equal(a.handle, b.handle, _byref(result)))
    return bool(result.value)


def stack(tensors: Sequence[TensorLike], axis: int = 0) -> Tensor:
    """Tensors of one shape along a new axis."""
    from .ops import concat
    parts = [asarray(each) for each in tensors]
    return concat(*[each.unsqueeze(axis) for each in parts], axis=axis)
