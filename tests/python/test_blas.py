# SPDX-License-Identifier: Apache-2.0
"""tenon.blas against the formulas of the routines, computed by NumPy."""
import cmath
import itertools

import numpy
import pytest

import tenon
from tenon import blas

N, M, K = 4, 3, 5
DTYPES = ["float32", "float64", "complex64", "complex128"]
REAL, COMPLEX = DTYPES[:2], DTYPES[2:]


@pytest.fixture
def rand():
    generator = numpy.random.default_rng(7)

    def make(dtype, *shape):
        values = generator.uniform(-1, 1, shape)
        return (values + (1j * generator.uniform(-1, 1, shape) if numpy.dtype(dtype).kind == "c" else 0)).astype(dtype)
    return make


def close(got, expected):
    expected = numpy.asarray(expected)
    tolerance = 1e-5 if expected.dtype.name in ("float32", "complex64") else 1e-12
    got = got.numpy() if isinstance(got, tenon.Tensor) else got
    numpy.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def op(a, trans):
    return [a, a.T, a.conj().T][trans]


def of_triangle(a, lower, form):
    """The symmetric or Hermitian matrix that has this triangle of `a`."""
    part = numpy.tril(a) if lower else numpy.triu(a)
    other = numpy.tril(part, -1) if lower else numpy.triu(part, 1)
    return part + (other.T if form == "symmetric" else other.conj().T)


def packed(a, lower):
    """Column by column, as in SciPy."""
    return numpy.concatenate([a[i:, i] if lower else a[:i + 1, i] for i in range(a.shape[0])])


def banded(a, kl, ku):
    """(kl + ku + 1, n), as in SciPy: row ku + i - j has element (i, j)."""
    rows, columns = a.shape
    made = numpy.zeros((kl + ku + 1, columns), a.dtype)
    for i in range(rows):
        for j in range(max(0, i - kl), min(columns, i + ku + 1)):
            made[ku + i - j, j] = a[i, j]
    return made


@pytest.mark.parametrize("dtype", DTYPES)
def test_vectors(rand, dtype):
    x, y = rand(dtype, N), rand(dtype, N)
    alpha, beta = (0.5, -2.0) if dtype in REAL else (0.5 - 1j, -2.0 + 0.25j)
    close(blas.axpy(x, y, alpha=alpha), x * numpy.dtype(dtype).type(alpha) + y)
    close(blas.axpby(x, y, alpha=alpha, beta=beta), (alpha * x + beta * y).astype(dtype))
    close(blas.scal(alpha, x), (alpha * x).astype(dtype))
    close(blas.copy(x, y), x)
    swapped = blas.swap(x, y)
    close(swapped[0], y)
    close(swapped[1], x)
    assert blas.nrm2(x) == pytest.approx(numpy.linalg.norm(x), rel=1e-5)
    assert blas.asum(x) == pytest.approx(numpy.abs(x.real).sum() + numpy.abs(x.imag).sum(), rel=1e-5)
    sizes = numpy.abs(x.real) + numpy.abs(x.imag)
    assert (blas.iamax(x), blas.iamin(x)) == (sizes.argmax(), sizes.argmin())
    c, s = 0.6, 0.8 if dtype in REAL else 0.8j
    rotated = blas.rot(x, y, c, s)
    close(rotated[0], (c * x + s * y).astype(dtype))
    close(rotated[1], (c * y - numpy.conj(s) * x).astype(dtype))
    made = blas.rotg(x[0], y[0])
    assert abs(made[0])**2 + abs(made[1])**2 == pytest.approx(1, rel=1e-5)
    assert abs(-numpy.conj(made[1]) * x[0] + made[0] * y[0]) < 1e-6


def test_dot_products(rand):
    for dtype in REAL:
        x, y = rand(dtype, N), rand(dtype, N)
        assert blas.dot(x, y) == pytest.approx(x @ y, rel=1e-5)
    for dtype in COMPLEX:
        x, y = rand(dtype, N), rand(dtype, N)
        assert cmath.isclose(blas.dotu(x, y), (x * y).sum(), rel_tol=1e-5)
        assert cmath.isclose(blas.dotc(x, y), numpy.vdot(x, y), rel_tol=1e-5)
        close(blas.rscal(2.0, x), 2 * x)
    x, y = rand("float32", N), rand("float32", N)
    assert blas.dsdot(x, y) == pytest.approx(x.astype(float) @ y.astype(float), rel=1e-12)
    assert blas.sdsdot(x, y, alpha=2) == pytest.approx(2 + x @ y, rel=1e-6)


def test_modified_rotations(rand):
    x, y = rand("float64", N), rand("float64", N)
    param = blas.rotmg(2.0, 3.0, x[0], y[0]).numpy()
    flag, h11, h21, h12, h22 = param
    h = {-1: [[h11, h12], [h21, h22]], 0: [[1, h12], [h21, 1]], 1: [[h11, 1], [-1, h22]]}[int(flag)]
    assert (numpy.array(h) @ [x[0], y[0]])[1] == pytest.approx(0, abs=1e-12)
    got = blas.rotm(x, y, param)
    close(got[0], h[0][0] * x + h[0][1] * y)
    close(got[1], h[1][0] * x + h[1][1] * y)


@pytest.mark.parametrize("dtype", DTYPES)
def test_general_matrices(rand, dtype):
    for trans in (0, 1, 2):
        general_matrices(rand, dtype, trans)


def general_matrices(rand, dtype, trans):
    a, b, c = rand(dtype, M, N), rand(dtype, N, K), rand(dtype, M, K)
    close(blas.gemm(2, op(a, trans).copy() if trans else a, b, beta=0.5, c=c, trans_a=trans), 2 * a @ b + c / 2)
    close(blas.gemm(1, a, op(b, trans).copy(), trans_b=trans), a @ b)
    close(blas.gemm(1, a.T.copy().T, b.T.copy().T), a @ b)  # columns are contiguous
    close(blas.gemm(1, a.T, b, trans_a=1), a @ b)
    if trans == 2:
        close(blas.gemm(1, a.T.copy().T.conj().T, b, trans_a=2), a @ b)
    x, y = rand(dtype, M if trans else N), rand(dtype, N if trans else M)
    close(blas.gemv(2, a, x, beta=3, y=y, trans=trans), 2 * op(a, trans) @ x + 3 * y)
    close(blas.gemv(1, numpy.asfortranarray(a), x, trans=trans), op(a, trans) @ x)
    band = numpy.triu(numpy.tril(a, 2), -1)
    close(blas.gbmv(M, N, 1, 2, 1, banded(band, 1, 2), x, trans=trans), op(band, trans) @ x)
    square = rand(dtype, N, M)
    close(blas.geam(2, a, 3, op(square, 1) if trans == 0 else square, trans_b=trans), 2 * a + 3 * (square.T if trans == 0 else op(square, trans)))
    d = rand(dtype, M)
    close(blas.dgmm(a, d), d[:, None] * a)
    stacks = rand(dtype, 2, M, N), rand(dtype, 2, N, K)
    close(blas.gemm_strided_batched(1, *stacks), stacks[0] @ stacks[1])
    p, q = rand(dtype, M, N), rand(dtype, N, M)
    close(blas.gemmt(1, p, q, lower=1), numpy.tril(p @ q))


@pytest.mark.parametrize("dtype", DTYPES)
def test_symmetric_and_hermitian_matrices(rand, dtype):
    for lower in (0, 1):
        symmetric_and_hermitian_matrices(rand, dtype, lower)


def symmetric_and_hermitian_matrices(rand, dtype, lower):
    real = dtype in REAL
    a, x, y = rand(dtype, N, N), rand(dtype, N), rand(dtype, N)
    form = "symmetric" if real else "hermitian"
    if not real:
        a[numpy.diag_indices(N)] = a.diagonal().real
    whole = of_triangle(a, lower, form)
    mv, bmv, pmv = (blas.symv, blas.sbmv, blas.spmv) if real else (blas.hemv, blas.hbmv, blas.hpmv)
    close(mv(2, a, x, beta=3, y=y, lower=lower), 2 * whole @ x + 3 * y)
    close(pmv(1, packed(a, lower), x, lower=lower), whole @ x)
    band = numpy.triu(numpy.tril(whole, 1), -1)
    close(bmv(1, banded(band, *((1, 0) if lower else (0, 1))), x, lower=lower), band @ x)
    b, c = rand(dtype, N, M), rand(dtype, N, M)
    symmetric = of_triangle(a, lower, "symmetric")
    close(blas.symm(2, a, b, beta=3, c=c, lower=lower), 2 * symmetric @ b + 3 * c)
    close(blas.symm(1, a, b.T.copy(), side=1, lower=lower), b.T @ symmetric)
    if not real:
        close(blas.hemm(1, a, b, lower=lower), whole @ b)
    triangle = numpy.tril if lower else numpy.triu

    def changed(got, expected):  # one triangle is written
        close(triangle(got.numpy()), triangle(expected))

    r1, r2, p1, p2 = (blas.syr, blas.syr2, blas.spr, blas.spr2) if real else (blas.her, blas.her2, blas.hpr, blas.hpr2)
    changed(r1(2, x, lower=lower), 2 * numpy.outer(x, x.conj()))
    two = 2 * numpy.outer(x, y.conj()) + 2 * numpy.outer(y, x.conj())
    changed(r2(2, x, y, a=a, lower=lower), two + a)
    close(p1(2, x, a=packed(a, lower), lower=lower), packed(2 * numpy.outer(x, x.conj()) + a, lower))
    close(p2(2, x, y, lower=lower), packed(two, lower))
    e, f = rand(dtype, N, K), rand(dtype, N, K)
    changed(blas.syrk(2, e, lower=lower), 2 * e @ e.T)
    changed(blas.syrk(1, e.T.copy(), trans=1, lower=lower), e @ e.T)
    changed(blas.syr2k(1, e, f, lower=lower), e @ f.T + f @ e.T)
    if not real:
        changed(blas.herk(2, e, lower=lower), 2 * e @ e.conj().T)
        changed(blas.her2k(1, e, f, lower=lower), e @ f.conj().T + f @ e.conj().T)


@pytest.mark.parametrize("dtype", DTYPES)
def test_triangular_matrices(rand, dtype):
    for lower, trans, diag in itertools.product((0, 1), (0, 1, 2), (0, 1)):
        triangular_matrices(rand, dtype, lower, trans, diag)


def triangular_matrices(rand, dtype, lower, trans, diag):
    a = rand(dtype, N, N) / 4 + numpy.eye(N, dtype=dtype)
    x, b = rand(dtype, N), rand(dtype, N, M)
    whole = numpy.tril(a) if lower else numpy.triu(a)
    band = numpy.triu(numpy.tril(whole, 1), -1)
    if diag:
        for each in (whole, band):
            each[numpy.diag_indices(N)] = 1
    keys = {"lower": lower, "trans": trans, "diag": diag}
    of_band = banded(numpy.triu(numpy.tril(a, 1), -1), *((1, 0) if lower else (0, 1)))
    close(blas.trmv(a, x, **keys), op(whole, trans) @ x)
    close(blas.tpmv(packed(a, lower), x, **keys), op(whole, trans) @ x)
    close(blas.tbmv(of_band, x, **keys), op(band, trans) @ x)
    close(op(whole, trans) @ blas.trsv(a, x, **keys).numpy(), x)
    close(op(whole, trans) @ blas.tpsv(packed(a, lower), x, **keys).numpy(), x)
    close(op(band, trans) @ blas.tbsv(of_band, x, **keys).numpy(), x)
    close(blas.trmm(2, a, b, **keys), 2 * op(whole, trans) @ b)
    close(blas.trmm(1, a, b.T.copy(), side=1, **keys), b.T @ op(whole, trans))
    close(op(whole, trans) @ blas.trsm(2, a, b, **keys).numpy(), 2 * b)


def test_outer_products(rand):
    for dtype in REAL:
        x, y, a = rand(dtype, M), rand(dtype, N), rand(dtype, M, N)
        close(blas.ger(2, x, y, a=a), 2 * numpy.outer(x, y) + a)
    for dtype in COMPLEX:
        x, y = rand(dtype, M), rand(dtype, N)
        close(blas.geru(1, x, y), numpy.outer(x, y))
        close(blas.gerc(1j, x, y), 1j * numpy.outer(x, y.conj()))


def test_operands_are_changed_only_where_that_is_said(rand):
    x, y, c = rand("float64", N), rand("float64", 2 * N), rand("float64", N, 2 * N)
    before = y.copy()
    close(blas.axpy(x, y[::2]), x + before[::2])
    numpy.testing.assert_array_equal(y, before)
    given = tenon.asarray(y)[::2]
    assert blas.axpy(x, given, overwrite_y=True) is given
    close(y[::2], x + before[::2])
    numpy.testing.assert_array_equal(y[1::2], before[1::2])
    inside, expected = c[:, ::2], c[:, ::2] + 2 * numpy.outer(x, x)  # no rows of BLAS: computed elsewhere, and copied
    blas.ger(2, x, x, a=inside, overwrite_a=True)
    close(inside, expected)
    close(blas.axpy(x[::-1], x), x[::-1] + x)
    frozen = x.copy()
    frozen.flags.writeable = False
    with pytest.raises(tenon.InvalidArgumentError, match="scal: overwrite_x: expected memory that may be written to, got a read-only operand"):
        blas.scal(2, frozen, overwrite_x=True)
    close(blas.scal(2, frozen), 2 * x)


def test_wrong_operands_are_errors(rand):
    a, x = rand("float64", M, N), rand("float64", N)
    for call, text in ((lambda: blas.gemv(1, a, x[:2]), r"gemv: x: expected a vector of 4 elements, got float64 \(2,\)"),
                       (lambda: blas.gemm(1, a, a), r"gemm: b: expected op\(b\) with the 4 rows that op\(a\) has columns, got 3 x 4"),
                       (lambda: blas.dot(a, x), r"dot: x: expected a vector, got float64 \(3, 4\)"),
                       (lambda: blas.dot(x, x.astype("float32")), "dot: y: expected the dtype of the first operand, float64, got float32"),
                       (lambda: blas.scal(1j, x), "scal: alpha: expected a real number, got 1j"),
                       (lambda: blas.gemv(1, a, x, trans=3), "gemv: trans: expected one of 0, 1, 2, got 3"),
                       (lambda: blas.symv(1, a, x), r"symv: a: expected a matrix of 4 x 4, got float64 \(3, 4\)"),
                       (lambda: blas.tpsv(x, x), r"tpsv: a: expected the 10 elements of a triangle of 4 x 4, got \(4,\)")):
        with pytest.raises(tenon.InvalidArgumentError, match=text):
            call()
    with pytest.raises(tenon.UnsupportedError, match="dotu: expected one of the dtypes cz"):
        blas.dotu(x, x)
    with pytest.raises(tenon.UnsupportedError, match="dot: expected one of the dtypes sd"):
        blas.dot(numpy.arange(3), numpy.arange(3))
