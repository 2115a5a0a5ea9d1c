# SPDX-License-Identifier: Apache-2.0
"""How the functions of tenon.blas call the library: sizes and strides of operands, and the record of each signature class."""
import ctypes
from functools import lru_cache
from typing import Any, Dict, List, Optional, Sequence, Tuple, Type

from ._blas_table import FIELDS, ROUTINES
from ._context import Device, default_context
from ._dtypes import DType, dtype_of
from ._errors import InvalidArgumentError
from ._library import check, lib
from ._tensor import Tensor, TensorLike, asarray, empty, zeros

_ROW_MAJOR, _COLUMN_MAJOR = 101, 102
_TRANS, _CONJUGATE_ONLY = (111, 112, 113), 114
_UPLO, _DIAG, _SIDE = (121, 122), (131, 132), (141, 142)


class _Scalar(ctypes.Structure):
    """tenon_scalar"""

    _fields_ = [("address", ctypes.c_uint64), ("on_device", ctypes.c_uint32), ("reserved", ctypes.c_uint32)]


_C_TYPES: Dict[str, Any] = {"flag": ctypes.c_uint32, "reserved": ctypes.c_uint32, "size": ctypes.c_int64, "in": ctypes.c_uint64, "out": ctypes.c_uint64}
_REAL_OF = {"float32": "float32", "float64": "float64", "complex64": "float32", "complex128": "float64"}


@lru_cache(maxsize=None)
def _record(signature: str) -> Type[ctypes.Structure]:
    """tenon_blas_<signature>_args"""
    fields = [("struct_size", ctypes.c_uint32), *((name, _C_TYPES.get(kind, _Scalar)) for name, kind in FIELDS[signature])]
    return type(f"tenon_blas_{signature}_args", (ctypes.Structure, ), {"_fields_": fields})


_on_host: Dict[str, bool] = {}  # by name of a device, whose description takes longer than a call


def _computes_on_host(device: Device) -> bool:
    name = device.name
    if name not in _on_host:
        _on_host[name] = device.info["kind"] == "cpu"
    return _on_host[name]


def _fail(routine: str, name: str, expected: str, got: Any) -> None:
    raise InvalidArgumentError(f"{routine}: {name}: expected {expected}, got {got}")


def _buffer(dtype: DType, values: Sequence[Any]) -> Any:
    """Numbers in memory, of a dtype of BLAS."""
    of = ctypes.c_float if _REAL_OF[dtype.name] == "float32" else ctypes.c_double
    if dtype.is_complex:
        parts = [part for each in values for part in (complex(each).real, complex(each).imag)]
        return (of * len(parts))(*parts)
    return (of * len(values))(*[float(each) for each in values])


def _numbers(dtype: DType, buffer: Any) -> List[Any]:
    if dtype.is_complex:
        return [complex(buffer[i], buffer[i + 1]) for i in range(0, len(buffer), 2)]
    return list(buffer)


class _Call:
    """Operands of one call, on one device and of one dtype."""

    def __init__(self, routine: str, **operands: Optional[TensorLike]):
        self.routine = routine
        given = {name: each if isinstance(each, Tensor) else asarray(each) for name, each in operands.items() if each is not None}
        where = next((each._device for each in given.values() if each._device is not None and not each._device.closed), None)
        self.device: Device = where or default_context().device()
        self.on_host = _computes_on_host(self.device)
        self.dtype = next(iter(given.values())).dtype
        for name, each in given.items():
            if each.dtype.code != self.dtype.code:
                _fail(routine, name, f"the dtype of the first operand, {self.dtype}", each.dtype)
        self.own = given
        self.tensors = {name: each if each.is_on_host and self.on_host else each.to(device=self.device) for name, each in given.items()}
        self.fields: Dict[str, Any] = {}
        self.kept: List[Any] = []  # what addresses of the record point to
        self.results: Dict[str, Tensor] = {}

    def vector(self, name: str, size: Optional[int] = None) -> int:
        """Adds a vector, and returns its length."""
        x = self.tensors[name]
        if x.ndim != 1 or (size is not None and x.shape[0] != size):
            _fail(self.routine, name, "a vector" if size is None else f"a vector of {size} elements", f"{x.dtype} {x.shape}")
        n, step = x.shape[0], x.strides[0]
        if step < 1:  # BLAS has the address of the first byte, a tensor that of element 0
            x, step = x.contiguous(), 1
            self.tensors[name] = x
        self.fields[name], self.fields[f"inc{name}"] = x.address, step
        self.kept.append(x)
        return n

    def matrix(self, name: str, shape: Optional[Tuple[int, int]] = None) -> Tuple[int, int]:
        """Adds a row-major matrix, and returns its sizes."""
        a = self.tensors[name]
        if a.ndim != 2 or (shape is not None and a.shape != shape):
            _fail(self.routine, name, "a matrix" if shape is None else f"a matrix of {shape[0]} x {shape[1]}", f"{a.dtype} {a.shape}")
        if a.strides[1] != 1 or a.strides[0] < max(1, a.shape[1]):
            self.tensors[name] = a = a.contiguous()
        self.fields[name], self.fields[f"ld{name}"] = a.address, max(a.strides[0], a.shape[1], 1)
        self.kept.append(a)
        return a.shape[0], a.shape[1]

    def transposable(self, name: str, trans: int, flag: str) -> Tuple[int, int]:
        """Adds a matrix with its flag, and returns the sizes of op(matrix). Contiguous columns are used in place, as rows of the transpose."""
        self.trans(flag, trans)
        a = self.tensors[name]
        if a.ndim == 2 and a.strides[0] == 1 and a.strides[1] >= max(1, a.shape[0]) and a.strides[1] != 1:
            self.tensors[name] = a.permute(1, 0)
            self.fields[flag] = (_TRANS[1], _TRANS[0], _CONJUGATE_ONLY)[trans]
        rows, columns = self.matrix(name)
        return (columns, rows) if self.fields[flag] in _TRANS[1:] else (rows, columns)

    def columns(self, name: str, rows: Optional[int] = None) -> Tuple[int, int]:
        """Adds the column-major matrix of the diagonals of a banded one, (diagonals, n), and returns its sizes."""
        a = self.tensors[name]
        if a.ndim != 2 or (rows is not None and a.shape[0] != rows):
            _fail(self.routine, name, f"a matrix of {'the' if rows is None else rows} diagonals, (diagonals, n)", f"{a.dtype} {a.shape}")
        held = a.permute(1, 0).contiguous()
        self.fields[name], self.fields[f"ld{name}"], self.fields["layout"] = held.address, max(a.shape[0], 1), _COLUMN_MAJOR
        self.kept.append(held)
        return a.shape[0], a.shape[1]

    def packed(self, name: str, n: int) -> None:
        """Adds the triangle of an n x n matrix, column by column."""
        if self.vector(name) != n * (n + 1) // 2:
            _fail(self.routine, name, f"the {n * (n + 1) // 2} elements of a triangle of {n} x {n}", self.tensors[name].shape)
        if self.fields.pop(f"inc{name}") != 1:
            held = self.tensors[name] = self.tensors[name].contiguous()
            self.fields[name] = held.address
            self.kept.append(held)
        self.fields["layout"] = _COLUMN_MAJOR

    def triangle(self, name: str, n: int) -> int:
        """Adds the n x n matrix of a routine in its form: whole, banded (diagonals, n) or packed, and returns n."""
        form = self.routine[1]  # "b" of sbmv and tbsv, "p" of spmv and tpsv
        if form == "p":
            self.packed(name, n)
            return n
        if form == "b":
            diagonals, columns = self.columns(name)
            self.fields["k"] = diagonals - 1
            return columns
        self.matrix(name, (n, n))
        return n

    def result(self, name: str, overwrite: bool, shape: Tuple[int, ...]) -> None:
        """An operand that the routine changes: the caller's if it may be overwritten, else a copy; zeros if there is none."""
        own = self.own.get(name)
        if own is None:
            where = None if self.on_host else self.device
            self.tensors[name] = self.results[name] = zeros(shape, self.dtype, where)
        elif overwrite:
            if own.is_read_only:
                _fail(self.routine, f"overwrite_{name}", "memory that may be written to", "a read-only operand")
            self.results[name] = own
        else:
            there = self.tensors[name]
            made = empty(there.shape, self.dtype, None if self.on_host else self.device)
            self.tensors[name] = self.results[name] = made.copy_(there)

    def _choose(self, flag: str, value: int, among: Sequence[int]) -> None:
        if value not in range(len(among)):
            _fail(self.routine, flag, f"one of {', '.join(map(str, range(len(among))))}", value)
        self.fields[flag] = among[value]

    def trans(self, flag: str, value: int) -> None:
        self._choose(flag, value, _TRANS)

    def flags(self, *, lower: Optional[int] = None, diag: Optional[int] = None, side: Optional[int] = None) -> None:
        for flag, value, among in (("uplo", lower, _UPLO), ("diag", diag, _DIAG), ("side", side, _SIDE)):
            if value is not None:
                self._choose(flag, int(value), among)

    def scalars(self, **values: Any) -> None:
        """Numbers that are read. Errors: a complex one where the routine takes a real one."""
        real = ROUTINES[self.routine].real
        kinds = dict(FIELDS[ROUTINES[self.routine].signature])
        for name, value in values.items():
            is_real = name in real or kinds[name].startswith("real")
            dtype = dtype_of(_REAL_OF[self.dtype.name]) if is_real and self.dtype.name in _REAL_OF else self.dtype
            if isinstance(value, Tensor):
                value = value.item()
            if isinstance(value, complex) and not dtype.is_complex:
                _fail(self.routine, name, "a real number", value)
            self.numbers(name, dtype, [value])

    def numbers(self, name: str, dtype: DType, values: Sequence[Any]) -> Any:
        """Memory with these numbers, which the record points to."""
        if dtype.name not in _REAL_OF:
            dtype = dtype_of("float64")  # the library refuses the dtype of the call
        buffer = _buffer(dtype, values)
        self.fields[name] = _Scalar(ctypes.addressof(buffer), 0, 0)
        self.kept.append(buffer)
        return buffer

    def run(self) -> None:
        routine = ROUTINES[self.routine]
        record = _record(routine.signature)
        arguments = record(struct_size=ctypes.sizeof(record), **{name: value for name, value in self.fields.items()})
        check(lib.tenon_blas(self.device.handle, routine.number, self.dtype.code, ctypes.addressof(arguments), None))
        if not self.on_host:
            self.device.synchronize()

    def give(self, *names: str) -> Any:
        """Runs, and returns the operands that were changed."""
        self.run()
        for name in names:
            target, written = self.results[name], self.tensors[name]
            if target is not written and target.address != written.address:
                target.copy_(written)
        made = tuple(self.results[name] for name in names)
        return made[0] if len(made) == 1 else made


# ------------------------------------------------------------------ one function for each signature class


def rotg(routine: str, a: Any, b: Any) -> Any:
    call = _Call(routine, a=asarray(a).reshape(1), b=asarray(b).reshape(1))
    for name in ("a", "b"):
        call.numbers(name, call.dtype, [call.tensors[name].item()])
    real = dtype_of(_REAL_OF.get(call.dtype.name, "float64"))
    c, s = call.numbers("c", real, [0]), call.numbers("s", call.dtype, [0])
    call.run()
    return _numbers(real, c)[0], _numbers(call.dtype, s)[0]


def rotmg(routine: str, d1: Any, d2: Any, x1: Any, y1: Any) -> Any:
    param = zeros(5, "float64" if not isinstance(d1, Tensor) else d1.dtype)
    call = _Call(routine, param=param)
    for name, value in (("d1", d1), ("d2", d2), ("x1", x1), ("y1", y1)):
        call.numbers(name, call.dtype, [float(value)])
    call.fields["param"] = _Scalar(param.address, 0, 0)
    call.run()
    return param


def rot(routine: str, x: Any, y: Any, c: Any, s: Any, overwrite_x: bool, overwrite_y: bool) -> Any:
    call = _Call(routine, x=x, y=y)
    call.result("x", overwrite_x, ())
    call.result("y", overwrite_y, ())
    call.fields["n"] = call.vector("x")
    call.vector("y", call.fields["n"])
    call.scalars(c=c, s=s)
    return call.give("x", "y")


def rotm(routine: str, x: Any, y: Any, param: Any, overwrite_x: bool, overwrite_y: bool) -> Any:
    call = _Call(routine, x=x, y=y)
    call.result("x", overwrite_x, ())
    call.result("y", overwrite_y, ())
    call.fields["n"] = call.vector("x")
    call.vector("y", call.fields["n"])
    values = asarray(param).tolist()
    if len(values) != 5:
        _fail(routine, "param", "5 numbers", len(values))
    call.numbers("param", call.dtype, values)
    return call.give("x", "y")


def xy(routine: str, x: Any, y: Any, overwrite: bool, overwrite_y: Optional[bool] = None) -> Any:
    call = _Call(routine, x=x, y=y)
    swaps = overwrite_y is not None
    if swaps:
        call.result("x", overwrite, ())
    call.result("y", bool(overwrite_y) if swaps else overwrite, ())
    call.fields["n"] = call.vector("x")
    call.vector("y", call.fields["n"])
    return call.give("x", "y") if swaps else call.give("y")


def scal(routine: str, alpha: Any, x: Any, overwrite_x: bool) -> Any:
    call = _Call(routine, x=x)
    call.result("x", overwrite_x, ())
    call.fields["n"] = call.vector("x")
    call.scalars(alpha=alpha)
    return call.give("x")


def axpy(routine: str, x: Any, y: Any, alpha: Any, overwrite_y: bool) -> Any:
    return axpby(routine, x, y, alpha, None, overwrite_y)


def axpby(routine: str, x: Any, y: Any, alpha: Any, beta: Any, overwrite_y: bool) -> Any:
    call = _Call(routine, x=x, y=y)
    call.result("y", overwrite_y, ())
    call.fields["n"] = call.vector("x")
    call.vector("y", call.fields["n"])
    call.scalars(alpha=alpha, **({} if beta is None else {"beta": beta}))
    return call.give("y")


def _number(call: _Call) -> Any:
    """Runs, and returns the number that the routine gives."""
    kind = ROUTINES[call.routine].result
    if kind == "i64":
        index = ctypes.c_int64(-1)
        call.fields["result"] = _Scalar(ctypes.addressof(index), 0, 0)
        call.run()
        return index.value
    name = {"real": _REAL_OF.get(call.dtype.name, "float64"), "f64": "float64"}.get(kind, call.dtype.name)
    buffer = call.numbers("result", dtype_of(name), [0])
    call.run()
    return _numbers(dtype_of(name), buffer)[0]


def dot(routine: str, x: Any, y: Any, alpha: Any = None) -> Any:
    call = _Call(routine, x=x, y=y)
    call.fields["n"] = call.vector("x")
    call.vector("y", call.fields["n"])
    if alpha is not None:
        call.scalars(alpha=alpha)
    return _number(call)


def reduce(routine: str, x: Any) -> Any:
    call = _Call(routine, x=x)
    call.fields["n"] = call.vector("x")
    return _number(call)


def gemv(routine: str, *arguments: Any) -> Any:
    if routine == "gbmv":
        m, n, kl, ku, alpha, a, x, beta, y, trans, overwrite_y = arguments
        call = _Call(routine, a=a, x=x, y=y)
        call.columns("a", kl + ku + 1)
        if call.tensors["a"].shape[1] != n:
            _fail(routine, "a", f"{n} columns", call.tensors["a"].shape)
        call.fields.update(m=m, n=n, kl=kl, ku=ku)
        call.trans("trans", trans)
        rows, columns = (n, m) if trans else (m, n)
    else:
        alpha, a, x, beta, y, trans, overwrite_y = arguments
        call = _Call(routine, a=a, x=x, y=y)
        rows, columns = call.transposable("a", trans, "trans")
        call.fields["m"], call.fields["n"] = call.tensors["a"].shape
    call.vector("x", columns)
    call.result("y", overwrite_y, (rows, ))
    call.vector("y", rows)
    call.scalars(alpha=alpha, beta=beta)
    return call.give("y")


def symv(routine: str, alpha: Any, a: Any, x: Any, beta: Any, y: Any, lower: int, overwrite_y: bool) -> Any:
    call = _Call(routine, a=a, x=x, y=y)
    n = call.triangle("a", call.vector("x"))
    call.vector("x", n)
    call.result("y", overwrite_y, (n, ))
    call.vector("y", n)
    call.fields["n"] = n
    call.flags(lower=lower)
    call.scalars(alpha=alpha, beta=beta)
    return call.give("y")


def trmv(routine: str, a: Any, x: Any, lower: int, trans: int, diag: int, overwrite_x: bool) -> Any:
    call = _Call(routine, a=a, x=x)
    call.result("x", overwrite_x, ())
    n = call.triangle("a", call.vector("x"))
    call.vector("x", n)
    call.fields["n"] = n
    call.trans("trans", trans)
    call.flags(lower=lower, diag=diag)
    return call.give("x")


def ger(routine: str, alpha: Any, x: Any, y: Any, a: Any, overwrite_a: bool) -> Any:
    call = _Call(routine, x=x, y=y, a=a)
    m, n = call.vector("x"), call.vector("y")
    call.result("a", overwrite_a, (m, n))
    call.matrix("a", (m, n))
    call.fields.update(m=m, n=n)
    call.scalars(alpha=alpha)
    return call.give("a")


def syr(routine: str, alpha: Any, x: Any, *others: Any) -> Any:
    y, a, lower, overwrite_a = others if len(others) == 4 else (None, *others)
    call = _Call(routine, x=x, y=y, a=a)
    n = call.vector("x")
    if y is not None:
        call.vector("y", n)
    packs = routine[1] == "p"
    call.result("a", overwrite_a, (n * (n + 1) // 2, ) if packs else (n, n))
    call.packed("a", n) if packs else call.matrix("a", (n, n))
    call.fields["n"] = n
    call.flags(lower=lower)
    call.scalars(alpha=alpha)
    return call.give("a")


def gemm(routine: str, alpha: Any, a: Any, b: Any, beta: Any, c: Any, trans_a: int, trans_b: int, *others: Any) -> Any:
    call = _Call(routine, a=a, b=b, c=c)
    (m, k), (inner, n) = call.transposable("a", trans_a, "trans_a"), call.transposable("b", trans_b, "trans_b")
    if inner != k:
        _fail(routine, "b", f"op(b) with the {k} rows that op(a) has columns", f"{inner} x {n}")
    if routine == "gemmt":
        if m != n:
            _fail(routine, "b", f"op(b) with {m} columns, for a square c", f"{inner} x {n}")
        call.flags(lower=others[0])
    else:
        call.fields["m"] = m
    call.result("c", others[-1], (m, n))
    call.matrix("c", (m, n))
    call.fields.update(n=n, k=k)
    call.scalars(alpha=alpha, beta=beta)
    return call.give("c")


def symm(routine: str, alpha: Any, a: Any, b: Any, beta: Any, c: Any, side: int, lower: int, overwrite_c: bool) -> Any:
    call = _Call(routine, a=a, b=b, c=c)
    m, n = call.matrix("b")
    call.matrix("a", (n, n) if side else (m, m))
    call.result("c", overwrite_c, (m, n))
    call.matrix("c", (m, n))
    call.fields.update(m=m, n=n)
    call.flags(side=side, lower=lower)
    call.scalars(alpha=alpha, beta=beta)
    return call.give("c")


def syrk(routine: str, alpha: Any, a: Any, *others: Any) -> Any:
    b, beta, c, trans, lower, overwrite_c = others if len(others) == 6 else (None, *others)
    call = _Call(routine, a=a, b=b, c=c)
    rows, columns = call.matrix("a")
    n, k = (columns, rows) if trans else (rows, columns)
    if b is not None:
        call.matrix("b", (rows, columns))
    call.result("c", overwrite_c, (n, n))
    call.matrix("c", (n, n))
    call.fields.update(n=n, k=k)
    call.trans("trans", trans)
    call.flags(lower=lower)
    call.scalars(alpha=alpha, beta=beta)
    return call.give("c")


def trmm(routine: str, alpha: Any, a: Any, b: Any, side: int, lower: int, trans: int, diag: int, overwrite_b: bool) -> Any:
    call = _Call(routine, a=a, b=b)
    call.result("b", overwrite_b, ())
    m, n = call.matrix("b")
    call.matrix("a", (n, n) if side else (m, m))
    call.fields.update(m=m, n=n)
    call.trans("trans", trans)
    call.flags(side=side, lower=lower, diag=diag)
    call.scalars(alpha=alpha)
    return call.give("b")


def geam(routine: str, alpha: Any, a: Any, beta: Any, b: Any, trans_a: int, trans_b: int) -> Any:
    call = _Call(routine, a=a, b=b)
    shape = call.transposable("a", trans_a, "trans_a")
    if call.transposable("b", trans_b, "trans_b") != shape:
        _fail(routine, "b", f"op(b) of {shape[0]} x {shape[1]}", call.own["b"].shape)
    call.result("c", False, shape)
    call.matrix("c", shape)
    call.fields.update(m=shape[0], n=shape[1])
    call.scalars(alpha=alpha, beta=beta)
    return call.give("c")


def dgmm(routine: str, a: Any, x: Any, side: int) -> Any:
    call = _Call(routine, a=a, x=x)
    m, n = call.matrix("a")
    call.vector("x", n if side else m)
    call.result("c", False, (m, n))
    call.matrix("c", (m, n))
    call.fields.update(m=m, n=n)
    call.flags(side=side)
    return call.give("c")


def gemm_strided_batched(routine: str, alpha: Any, a: Any, b: Any, beta: Any, c: Any, trans_a: int, trans_b: int, overwrite_c: bool) -> Any:
    call = _Call(routine, a=a, b=b, c=c)
    call.trans("trans_a", trans_a)
    call.trans("trans_b", trans_b)

    def stack(name: str, shape: Optional[Tuple[int, ...]] = None) -> Tuple[int, ...]:
        held = call.tensors[name]
        if held.ndim != 3 or (shape is not None and held.shape != shape):
            _fail(routine, name, "matrices (batch, rows, columns)" if shape is None else f"matrices {shape}", held.shape)
        if not held.is_dense:
            held = call.tensors[name] = held.contiguous()
        call.fields[name], call.fields[f"ld{name}"] = held.address, max(held.shape[2], 1)
        call.fields[f"stride_{name}"] = held.shape[1] * held.shape[2]
        call.kept.append(held)
        return held.shape

    batch, rows_a, columns_a = stack("a")
    batch_b, rows_b, columns_b = stack("b")
    (m, k), (inner, n) = (columns_a, rows_a) if trans_a else (rows_a, columns_a), (columns_b, rows_b) if trans_b else (rows_b, columns_b)
    if batch_b != batch or inner != k:
        _fail(routine, "b", f"op(b) ({batch}, {k}, n)", call.own["b"].shape)
    call.result("c", overwrite_c, (batch, m, n))
    stack("c", (batch, m, n))
    call.fields.update(m=m, n=n, k=k, batch=batch)
    call.scalars(alpha=alpha, beta=beta)
    return call.give("c")
