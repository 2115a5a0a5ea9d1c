# SPDX-License-Identifier: Apache-2.0
# Written by tools/python/generate.py from tenon_blas_routines; a test checks that it is up to date.
"""BLAS, on tensors and arrays: the routines of tenon/blas.def, with the arguments of scipy.linalg.blas and without letters for dtypes.

Operands are vectors of rank 1 with any stride and matrices of rank 2, of float32, float64, complex64 or complex128. They are used in place on the
device of the first tensor among them, or the default one; matrices without contiguous rows are copied. The result is a new tensor; with
overwrite_y=True (and likewise) it is the operand itself, changed. Packed and banded matrices have the form that they have in SciPy.

    trans, trans_a, trans_b  0: the matrix, 1: its transpose, 2: its conjugate transpose
    lower                    0: the upper triangle of the matrix is used, 1: the lower one
    side                     0: the matrix is on the left, 1: on the right
    diag                     1: the diagonal is one, whatever it has

Errors  InvalidArgumentError: other ranks or sizes; UnsupportedError: a routine or dtype that the backend does not offer.
"""
from typing import Tuple, Union

from . import _blas
from ._tensor import Tensor, TensorLike

Number = Union[int, float, complex]

__all__ = [
    "rotg", "rotmg", "rot", "rotm", "swap", "scal", "rscal", "copy", "axpy", "axpby", "dot", "dotu", "dotc", "sdsdot", "dsdot",
    "nrm2", "asum", "iamax", "iamin", "gemv", "gbmv", "symv", "hemv", "sbmv", "hbmv", "spmv", "hpmv", "trmv", "tbmv", "tpmv",
    "trsv", "tbsv", "tpsv", "ger", "geru", "gerc", "syr", "her", "spr", "hpr", "syr2", "her2", "spr2", "hpr2", "gemm", "gemmt",
    "symm", "hemm", "syrk", "herk", "syr2k", "her2k", "trmm", "trsm", "geam", "dgmm", "gemm_strided_batched",
]


def rotg(a: Number, b: Number) -> Tuple[Number, Number]:
    """[c s; -conj(s) c] [a; b] = [r; 0], c real, c^2 + |s|^2 = 1; a becomes r, and b, for real numbers, a z that encodes c and s"""
    result: Tuple[Number, Number] = _blas.rotg("rotg", a, b)
    return result


def rotmg(d1: Number, d2: Number, x1: Number, y1: Number) -> Tensor:
    """H [x1; y1] = [x1'; 0] and H' diag(d1', d2') H = diag(d1, d2); param is the flag, h11, h21, h12, h22; d1 < 0 makes all of them
    0"""
    result: Tensor = _blas.rotmg("rotmg", d1, d2, x1, y1)
    return result


def rot(x: TensorLike, y: TensorLike, c: Number, s: Number, *, overwrite_x: bool = False, overwrite_y: bool = False) -> Tuple[Tensor,
        Tensor]:
    """x, y = c x + s y, c y - conj(s) x; c is real"""
    result: Tuple[Tensor, Tensor] = _blas.rot("rot", x, y, c, s, overwrite_x, overwrite_y)
    return result


def rotm(x: TensorLike, y: TensorLike, param: TensorLike, *, overwrite_x: bool = False, overwrite_y: bool = False) -> Tuple[Tensor, Tensor]:
    """x, y = h11 x + h12 y, h21 x + h22 y; param is the flag, h11, h21, h12, h22"""
    result: Tuple[Tensor, Tensor] = _blas.rotm("rotm", x, y, param, overwrite_x, overwrite_y)
    return result


def swap(x: TensorLike, y: TensorLike, *, overwrite_x: bool = False, overwrite_y: bool = False) -> Tuple[Tensor, Tensor]:
    """x, y = y, x"""
    result: Tuple[Tensor, Tensor] = _blas.xy("swap", x, y, overwrite_x, overwrite_y)
    return result


def scal(alpha: Number, x: TensorLike, *, overwrite_x: bool = False) -> Tensor:
    """x = alpha x; 0 times NaN is NaN"""
    result: Tensor = _blas.scal("scal", alpha, x, overwrite_x)
    return result


def rscal(alpha: Number, x: TensorLike, *, overwrite_x: bool = False) -> Tensor:
    """x = alpha x, alpha real"""
    result: Tensor = _blas.scal("rscal", alpha, x, overwrite_x)
    return result


def copy(x: TensorLike, y: TensorLike, *, overwrite_y: bool = False) -> Tensor:
    """y = x"""
    result: Tensor = _blas.xy("copy", x, y, overwrite_y)
    return result


def axpy(x: TensorLike, y: TensorLike, *, alpha: Number = 1, overwrite_y: bool = False) -> Tensor:
    """y = alpha x + y"""
    result: Tensor = _blas.axpy("axpy", x, y, alpha, overwrite_y)
    return result


def axpby(x: TensorLike, y: TensorLike, *, alpha: Number = 1, beta: Number = 1, overwrite_y: bool = False) -> Tensor:
    """y = alpha x + beta y"""
    result: Tensor = _blas.axpby("axpby", x, y, alpha, beta, overwrite_y)
    return result


def dot(x: TensorLike, y: TensorLike) -> Number:
    """result = x' y"""
    result: Number = _blas.dot("dot", x, y)
    return result


def dotu(x: TensorLike, y: TensorLike) -> Number:
    """result = x' y"""
    result: Number = _blas.dot("dotu", x, y)
    return result


def dotc(x: TensorLike, y: TensorLike) -> Number:
    """result = conj(x)' y"""
    result: Number = _blas.dot("dotc", x, y)
    return result


def sdsdot(x: TensorLike, y: TensorLike, *, alpha: Number = 0) -> Number:
    """result = alpha + x' y, summed in f64, returned in f32"""
    result: Number = _blas.dot("sdsdot", x, y, alpha)
    return result


def dsdot(x: TensorLike, y: TensorLike) -> Number:
    """result = x' y of f32, summed and returned in f64"""
    result: Number = _blas.dot("dsdot", x, y)
    return result


def nrm2(x: TensorLike) -> Number:
    """result = sqrt(sum |x|^2), without intermediate overflow or underflow"""
    result: Number = _blas.reduce("nrm2", x)
    return result


def asum(x: TensorLike) -> Number:
    """result = sum of |re x| + |im x|"""
    result: Number = _blas.reduce("asum", x)
    return result


def iamax(x: TensorLike) -> int:
    """result = the first i of the largest |re x[i]| + |im x[i]|, from 0; -1 for n = 0"""
    result: int = _blas.reduce("iamax", x)
    return result


def iamin(x: TensorLike) -> int:
    """result = the first i of the smallest |re x[i]| + |im x[i]|, from 0; -1 for n = 0"""
    result: int = _blas.reduce("iamin", x)
    return result


def gemv(alpha: Number, a: TensorLike, x: TensorLike, *, beta: Number = 0, y: TensorLike = None, trans: int = 0,
         overwrite_y: bool = False) -> Tensor:
    """y = alpha op(A) x + beta y"""
    result: Tensor = _blas.gemv("gemv", alpha, a, x, beta, y, trans, overwrite_y)
    return result


def gbmv(m: int, n: int, kl: int, ku: int, alpha: Number, a: TensorLike, x: TensorLike, *, beta: Number = 0, y: TensorLike = None,
         trans: int = 0, overwrite_y: bool = False) -> Tensor:
    """y = alpha op(A) x + beta y, A with kl diagonals below and ku above the main one"""
    result: Tensor = _blas.gemv("gbmv", m, n, kl, ku, alpha, a, x, beta, y, trans, overwrite_y)
    return result


def symv(alpha: Number, a: TensorLike, x: TensorLike, *, beta: Number = 0, y: TensorLike = None, lower: int = 0,
         overwrite_y: bool = False) -> Tensor:
    """y = alpha A x + beta y, A symmetric"""
    result: Tensor = _blas.symv("symv", alpha, a, x, beta, y, lower, overwrite_y)
    return result


def hemv(alpha: Number, a: TensorLike, x: TensorLike, *, beta: Number = 0, y: TensorLike = None, lower: int = 0,
         overwrite_y: bool = False) -> Tensor:
    """y = alpha A x + beta y, A Hermitian"""
    result: Tensor = _blas.symv("hemv", alpha, a, x, beta, y, lower, overwrite_y)
    return result


def sbmv(alpha: Number, a: TensorLike, x: TensorLike, *, beta: Number = 0, y: TensorLike = None, lower: int = 0,
         overwrite_y: bool = False) -> Tensor:
    """y = alpha A x + beta y, A symmetric with k diagonals on each side of the main one"""
    result: Tensor = _blas.symv("sbmv", alpha, a, x, beta, y, lower, overwrite_y)
    return result


def hbmv(alpha: Number, a: TensorLike, x: TensorLike, *, beta: Number = 0, y: TensorLike = None, lower: int = 0,
         overwrite_y: bool = False) -> Tensor:
    """y = alpha A x + beta y, A Hermitian with k diagonals on each side of the main one"""
    result: Tensor = _blas.symv("hbmv", alpha, a, x, beta, y, lower, overwrite_y)
    return result


def spmv(alpha: Number, a: TensorLike, x: TensorLike, *, beta: Number = 0, y: TensorLike = None, lower: int = 0,
         overwrite_y: bool = False) -> Tensor:
    """y = alpha A x + beta y, A symmetric, packed"""
    result: Tensor = _blas.symv("spmv", alpha, a, x, beta, y, lower, overwrite_y)
    return result


def hpmv(alpha: Number, a: TensorLike, x: TensorLike, *, beta: Number = 0, y: TensorLike = None, lower: int = 0,
         overwrite_y: bool = False) -> Tensor:
    """y = alpha A x + beta y, A Hermitian, packed"""
    result: Tensor = _blas.symv("hpmv", alpha, a, x, beta, y, lower, overwrite_y)
    return result


def trmv(a: TensorLike, x: TensorLike, *, lower: int = 0, trans: int = 0, diag: int = 0, overwrite_x: bool = False) -> Tensor:
    """x = op(A) x, A triangular"""
    result: Tensor = _blas.trmv("trmv", a, x, lower, trans, diag, overwrite_x)
    return result


def tbmv(a: TensorLike, x: TensorLike, *, lower: int = 0, trans: int = 0, diag: int = 0, overwrite_x: bool = False) -> Tensor:
    """x = op(A) x, A triangular with k off-diagonals"""
    result: Tensor = _blas.trmv("tbmv", a, x, lower, trans, diag, overwrite_x)
    return result


def tpmv(a: TensorLike, x: TensorLike, *, lower: int = 0, trans: int = 0, diag: int = 0, overwrite_x: bool = False) -> Tensor:
    """x = op(A) x, A triangular, packed"""
    result: Tensor = _blas.trmv("tpmv", a, x, lower, trans, diag, overwrite_x)
    return result


def trsv(a: TensorLike, x: TensorLike, *, lower: int = 0, trans: int = 0, diag: int = 0, overwrite_x: bool = False) -> Tensor:
    """op(A) x' = x, x' replaces x, A triangular"""
    result: Tensor = _blas.trmv("trsv", a, x, lower, trans, diag, overwrite_x)
    return result


def tbsv(a: TensorLike, x: TensorLike, *, lower: int = 0, trans: int = 0, diag: int = 0, overwrite_x: bool = False) -> Tensor:
    """op(A) x' = x, x' replaces x, A triangular with k off-diagonals"""
    result: Tensor = _blas.trmv("tbsv", a, x, lower, trans, diag, overwrite_x)
    return result


def tpsv(a: TensorLike, x: TensorLike, *, lower: int = 0, trans: int = 0, diag: int = 0, overwrite_x: bool = False) -> Tensor:
    """op(A) x' = x, x' replaces x, A triangular, packed"""
    result: Tensor = _blas.trmv("tpsv", a, x, lower, trans, diag, overwrite_x)
    return result


def ger(alpha: Number, x: TensorLike, y: TensorLike, *, a: TensorLike = None, overwrite_a: bool = False) -> Tensor:
    """A = alpha x y' + A"""
    result: Tensor = _blas.ger("ger", alpha, x, y, a, overwrite_a)
    return result


def geru(alpha: Number, x: TensorLike, y: TensorLike, *, a: TensorLike = None, overwrite_a: bool = False) -> Tensor:
    """A = alpha x y' + A"""
    result: Tensor = _blas.ger("geru", alpha, x, y, a, overwrite_a)
    return result


def gerc(alpha: Number, x: TensorLike, y: TensorLike, *, a: TensorLike = None, overwrite_a: bool = False) -> Tensor:
    """A = alpha x conj(y)' + A"""
    result: Tensor = _blas.ger("gerc", alpha, x, y, a, overwrite_a)
    return result


def syr(alpha: Number, x: TensorLike, *, a: TensorLike = None, lower: int = 0, overwrite_a: bool = False) -> Tensor:
    """A = alpha x x' + A, one triangle"""
    result: Tensor = _blas.syr("syr", alpha, x, a, lower, overwrite_a)
    return result


def her(alpha: Number, x: TensorLike, *, a: TensorLike = None, lower: int = 0, overwrite_a: bool = False) -> Tensor:
    """A = alpha x conj(x)' + A, one triangle, alpha real"""
    result: Tensor = _blas.syr("her", alpha, x, a, lower, overwrite_a)
    return result


def spr(alpha: Number, x: TensorLike, *, a: TensorLike = None, lower: int = 0, overwrite_a: bool = False) -> Tensor:
    """A = alpha x x' + A, packed"""
    result: Tensor = _blas.syr("spr", alpha, x, a, lower, overwrite_a)
    return result


def hpr(alpha: Number, x: TensorLike, *, a: TensorLike = None, lower: int = 0, overwrite_a: bool = False) -> Tensor:
    """A = alpha x conj(x)' + A, packed, alpha real"""
    result: Tensor = _blas.syr("hpr", alpha, x, a, lower, overwrite_a)
    return result


def syr2(alpha: Number, x: TensorLike, y: TensorLike, *, a: TensorLike = None, lower: int = 0, overwrite_a: bool = False) -> Tensor:
    """A = alpha (x y' + y x') + A, one triangle"""
    result: Tensor = _blas.syr("syr2", alpha, x, y, a, lower, overwrite_a)
    return result


def her2(alpha: Number, x: TensorLike, y: TensorLike, *, a: TensorLike = None, lower: int = 0, overwrite_a: bool = False) -> Tensor:
    """A = alpha x conj(y)' + conj(alpha) y conj(x)' + A, one triangle"""
    result: Tensor = _blas.syr("her2", alpha, x, y, a, lower, overwrite_a)
    return result


def spr2(alpha: Number, x: TensorLike, y: TensorLike, *, a: TensorLike = None, lower: int = 0, overwrite_a: bool = False) -> Tensor:
    """A = alpha (x y' + y x') + A, packed"""
    result: Tensor = _blas.syr("spr2", alpha, x, y, a, lower, overwrite_a)
    return result


def hpr2(alpha: Number, x: TensorLike, y: TensorLike, *, a: TensorLike = None, lower: int = 0, overwrite_a: bool = False) -> Tensor:
    """A = alpha x conj(y)' + conj(alpha) y conj(x)' + A, packed"""
    result: Tensor = _blas.syr("hpr2", alpha, x, y, a, lower, overwrite_a)
    return result


def gemm(alpha: Number, a: TensorLike, b: TensorLike, *, beta: Number = 0, c: TensorLike = None, trans_a: int = 0, trans_b: int = 0,
         overwrite_c: bool = False) -> Tensor:
    """C = alpha op(A) op(B) + beta C"""
    result: Tensor = _blas.gemm("gemm", alpha, a, b, beta, c, trans_a, trans_b, overwrite_c)
    return result


def gemmt(alpha: Number, a: TensorLike, b: TensorLike, *, beta: Number = 0, c: TensorLike = None, trans_a: int = 0, trans_b: int = 0,
          lower: int = 0, overwrite_c: bool = False) -> Tensor:
    """C = alpha op(A) op(B) + beta C, one triangle of a square C"""
    result: Tensor = _blas.gemm("gemmt", alpha, a, b, beta, c, trans_a, trans_b, lower, overwrite_c)
    return result


def symm(alpha: Number, a: TensorLike, b: TensorLike, *, beta: Number = 0, c: TensorLike = None, side: int = 0, lower: int = 0,
         overwrite_c: bool = False) -> Tensor:
    """C = alpha A B + beta C (left) or alpha B A + beta C (right), A symmetric"""
    result: Tensor = _blas.symm("symm", alpha, a, b, beta, c, side, lower, overwrite_c)
    return result


def hemm(alpha: Number, a: TensorLike, b: TensorLike, *, beta: Number = 0, c: TensorLike = None, side: int = 0, lower: int = 0,
         overwrite_c: bool = False) -> Tensor:
    """C = alpha A B + beta C (left) or alpha B A + beta C (right), A Hermitian"""
    result: Tensor = _blas.symm("hemm", alpha, a, b, beta, c, side, lower, overwrite_c)
    return result


def syrk(alpha: Number, a: TensorLike, *, beta: Number = 0, c: TensorLike = None, trans: int = 0, lower: int = 0,
         overwrite_c: bool = False) -> Tensor:
    """C = alpha A A' + beta C (trans none) or alpha A' A + beta C, one triangle"""
    result: Tensor = _blas.syrk("syrk", alpha, a, beta, c, trans, lower, overwrite_c)
    return result


def herk(alpha: Number, a: TensorLike, *, beta: Number = 0, c: TensorLike = None, trans: int = 0, lower: int = 0,
         overwrite_c: bool = False) -> Tensor:
    """C = alpha A conj(A)' + beta C (trans none) or alpha conj(A)' A + beta C, one triangle, alpha and beta real"""
    result: Tensor = _blas.syrk("herk", alpha, a, beta, c, trans, lower, overwrite_c)
    return result


def syr2k(alpha: Number, a: TensorLike, b: TensorLike, *, beta: Number = 0, c: TensorLike = None, trans: int = 0, lower: int = 0,
          overwrite_c: bool = False) -> Tensor:
    """C = alpha (A B' + B A') + beta C (trans none) or alpha (A' B + B' A) + beta C, one triangle"""
    result: Tensor = _blas.syrk("syr2k", alpha, a, b, beta, c, trans, lower, overwrite_c)
    return result


def her2k(alpha: Number, a: TensorLike, b: TensorLike, *, beta: Number = 0, c: TensorLike = None, trans: int = 0, lower: int = 0,
          overwrite_c: bool = False) -> Tensor:
    """C = alpha A conj(B)' + conj(alpha) B conj(A)' + beta C (trans none) or alpha conj(A)' B + conj(alpha) conj(B)' A + beta C, one
    triangle, beta real"""
    result: Tensor = _blas.syrk("her2k", alpha, a, b, beta, c, trans, lower, overwrite_c)
    return result


def trmm(alpha: Number, a: TensorLike, b: TensorLike, *, side: int = 0, lower: int = 0, trans: int = 0, diag: int = 0,
         overwrite_b: bool = False) -> Tensor:
    """B = alpha op(A) B (left) or alpha B op(A) (right), A triangular"""
    result: Tensor = _blas.trmm("trmm", alpha, a, b, side, lower, trans, diag, overwrite_b)
    return result


def trsm(alpha: Number, a: TensorLike, b: TensorLike, *, side: int = 0, lower: int = 0, trans: int = 0, diag: int = 0,
         overwrite_b: bool = False) -> Tensor:
    """op(A) X = alpha B (left) or X op(A) = alpha B (right), X replaces B, A triangular"""
    result: Tensor = _blas.trmm("trsm", alpha, a, b, side, lower, trans, diag, overwrite_b)
    return result


def geam(alpha: Number, a: TensorLike, beta: Number, b: TensorLike, *, trans_a: int = 0, trans_b: int = 0) -> Tensor:
    """C = alpha op(A) + beta op(B)"""
    result: Tensor = _blas.geam("geam", alpha, a, beta, b, trans_a, trans_b)
    return result


def dgmm(a: TensorLike, x: TensorLike, *, side: int = 0) -> Tensor:
    """C = diag(x) A (left) or A diag(x) (right)"""
    result: Tensor = _blas.dgmm("dgmm", a, x, side)
    return result


def gemm_strided_batched(alpha: Number, a: TensorLike, b: TensorLike, *, beta: Number = 0, c: TensorLike = None, trans_a: int = 0,
                         trans_b: int = 0, overwrite_c: bool = False) -> Tensor:
    """C = alpha op(A) op(B) + beta C for each of `batch` triples, strides (in elements) apart"""
    result: Tensor = _blas.gemm_strided_batched("gemm_strided_batched", alpha, a, b, beta, c, trans_a, trans_b, overwrite_c)
    return result
