# SPDX-License-Identifier: Apache-2.0
"""tenon.grad: against finite differences in float64."""
import functools

import numpy
import pytest

import tenon
from tenon import ops


def numeric(f, x, step=1e-6):
    """Central differences of a function of one array."""
    result = numpy.zeros_like(x)
    for place in numpy.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[place] += step
        down[place] -= step
        result[place] = (f(tenon.asarray(up)).item() - f(tenon.asarray(down)).item()) / (2 * step)
    return result


W = numpy.random.default_rng(2).uniform(0.2, 1, (4, 3))
FUNCTIONS = {
    "polynomial": lambda x: (x * x * x - x / 3 + 2).sum(), "mlp": lambda x: (ops.tanh(x @ W) ** 2).mean(), "views": lambda x: (x[1:, ::2] * x.T[:3:2, :2].T[:1]).sum(),
    "index": lambda x: (x[[0, 2, 0]] * x[[0, 1, 2], [3, 2, 1]].unsqueeze(1)).sum(), "mask": lambda x: (x[numpy.array([True, False, True])] ** 2).sum(),
    "where": lambda x: ops.where(x > 0.5, x * x, ops.exp(x)).sum(), "softmax": lambda x: (ops.softmax(x) * tenon.asarray(W.T)).sum(),
    "reductions": lambda x: x.max(0).sum() + x.mean(1).prod() + ops.reduce_log_sum_exp(x),
    "cross entropy": lambda x: tenon.nn.functional.cross_entropy(x, [1, 0, 3]), "layer norm": lambda x: (ops.layer_norm(x)[0] * tenon.asarray(W.T)).sum(),
    "conv": lambda x: (ops.conv(x.reshape(1, 1, 3, 4), W[:2, :2].reshape(1, 1, 2, 2).copy()) ** 2).sum(), "gelu": lambda x: ops.gelu(x).sum(),
    "concat": lambda x: (tenon.stack([x, x * 2]) ** 2).sum(), "norm": lambda x: ops.sqrt((x ** 2).sum()),
}


def test_a_gradient_is_that_of_finite_differences():
    x = numpy.random.default_rng(1).uniform(0.2, 1.4, (3, 4))
    for name, f in FUNCTIONS.items():
        value, gradient = tenon.value_and_grad(lambda x: f(x))(x)
        assert value.item() == pytest.approx(f(tenon.asarray(x)).item(), rel=1e-9) and gradient.dtype == "float64", name
        numpy.testing.assert_allclose(gradient.numpy(), numeric(f, x), rtol=1e-5, atol=1e-7, err_msg=name)


def test_gradients_have_the_structure_of_arguments():
    def f(parameters, x, scale):
        return (parameters["w"] * x + parameters["b"][0]).sum() * scale

    parameters = {"w": tenon.ones(2), "b": (tenon.Tensor(1.0),)}
    x = tenon.Tensor([3.0, 4.0])
    got = tenon.grad(f)(parameters, x, 2)
    assert got["w"].tolist() == [6, 8] and got["b"][0].item() == 4
    by_x, by_scale = tenon.grad(f, argnums=(1, -1))(parameters, x, 2.0)
    assert by_x.tolist() == [2, 2] and by_scale.item() == 9
    (value, aux), gradient = tenon.value_and_grad(lambda x: ((x * x).sum(), {"x": x + 1}), has_aux=True)(x)
    assert value.item() == 25 and aux["x"].tolist() == [4, 5] and gradient.tolist() == [6, 8]
    gradient, aux = tenon.grad(lambda x: ((x * x).sum(), 7), has_aux=True)(x)
    assert gradient.tolist() == [6, 8] and aux == 7
    assert tenon.grad(lambda x, y: (y * y).sum())(x, x).tolist() == [0, 0]


def test_derivatives_of_derivatives_and_within_functions():
    cube = tenon.grad(lambda x: x * x * x)
    assert cube(2.0).item() == 12 and tenon.grad(cube)(2.0).item() == 12 and tenon.grad(tenon.grad(cube))(2.0).item() == 6

    @tenon.function
    def outer(x):
        z = x * 2  # a constant of what is differentiated
        return tenon.grad(lambda y: (y * z).sum())(x)

    assert outer(tenon.Tensor([1.0, 2.0])).tolist() == [2, 4]
    assert tenon.grad(lambda x: (x * tenon.stop_gradient(x * x)).sum())(tenon.Tensor([2.0, 3.0])).tolist() == [4, 9]
    x = tenon.ones(2)
    assert tenon.stop_gradient(x) is x

    calls = []

    def traced_once(x):
        calls.append(x)
        return (x * x).sum()

    for _ in range(3):
        assert tenon.grad(traced_once)(x).tolist() == [2, 2]
    assert len(calls) == 1 and tenon.grad(functools.wraps(traced_once)(lambda x: x.sum()))(x).tolist() == [1, 1]


def test_wrong_arguments_are_errors():
    x = tenon.ones(3)
    for wrong, text in (
        (lambda: tenon.grad(lambda x: x)(x), r"returns a floating scalar, got float32\(3,\): take its sum"), (lambda: tenon.grad(lambda x: 3)(x), "got int"),
        (lambda: tenon.grad(lambda x: x.sum())(tenon.arange(3)), "argument 0.*got a tensor of int64"), (lambda: tenon.grad(lambda x: x)(3), "got 3: choose others by argnums"),
        (lambda: tenon.grad(lambda x: x, argnums=1)(x), "among the 1 positional arguments, got 1"), (lambda: tenon.grad(lambda x: x.argmax())(x), "got int64"),
        (lambda: tenon.grad(lambda x: x.sum(), has_aux=True)(x), r"expected \(value, others\)"),
        (lambda: tenon.grad(lambda x: x.sum() if x.sum() > 0 else x.mean())(x), "bool: expected a tensor with elements"),
    ):
        with pytest.raises(tenon.InvalidArgumentError, match=f"(?s){text}"):
            wrong()
    with pytest.raises(tenon.UnsupportedError, match="(?s)without a gradient|has none"):
        tenon.grad(tenon.grad(lambda x: ops.relu(x) * x))(2.0)
