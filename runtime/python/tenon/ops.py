# SPDX-License-Identifier: Apache-2.0
# Written by tools/python/generate.py from the ops of the library; a test checks that it is up to date.
"""A function for each op, which runs it at once on its operands' device, or on the default one.

Operands are tensors, arrays of other packages, or numbers, which become tensors of the first tensor's dtype. In the line "Operands", T is
one dtype, ? marks an operand that may be None, and (...)* repeats. plugins/ops.md has dtypes and tolerances. Errors are
InvalidArgumentError for operands and attributes that do not fit, UnsupportedError for what the device does not compute.
"""
from typing import Optional, Sequence, Tuple

from ._apply import apply, apply_op, listed
from ._context import DeviceLike
from ._dtypes import DTypeLike, dtype_of
from ._tensor import Tensor, TensorLike

__all__ = [
    "apply_op", "add", "sub", "mul", "div", "pow", "maximum", "minimum", "equal", "less", "less_equal", "greater", "greater_equal",
    "logical_and", "logical_or", "logical_xor", "logical_not", "is_nan", "is_inf", "where", "neg", "relu", "relu_grad", "sigmoid",
    "sigmoid_grad", "tanh", "tanh_grad", "abs", "sign", "ceil", "floor", "round", "sqrt", "rsqrt", "reciprocal", "clip", "exp",
    "expm1", "log", "log2", "log1p", "erf", "sin", "cos", "atan", "leaky_relu", "elu", "softplus", "mish", "gelu", "silu", "cast",
    "reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod", "reduce_l1", "reduce_l2", "reduce_sum_square",
    "reduce_log_sum_exp", "arg_max", "arg_min", "reshape", "flatten", "transpose", "expand", "slice", "pad", "concat", "split",
    "gather", "gather_elements", "scatter_elements", "scatter_add", "scatter_slices", "one_hot", "matmul", "gemm", "conv",
    "conv_input_grad", "conv_weight_grad", "conv_transpose", "im2col", "col2im", "max_pool", "max_pool_grad", "average_pool",
    "average_pool_grad", "resize", "resize_grad", "batch_norm", "batch_norm_train", "batch_norm_train_grad", "layer_norm",
    "layer_norm_grad", "rms_norm", "rms_norm_grad", "lrn", "lrn_grad", "rnn", "rnn_grad", "gru", "gru_grad", "lstm", "lstm_grad",
    "attention", "attention_grad", "top_k", "cum_sum", "softmax", "softmax_grad", "log_softmax", "log_softmax_grad",
    "quantize_linear", "dequantize_linear", "dynamic_quantize_linear", "matmul_integer", "conv_integer", "qlinear_matmul",
    "qlinear_conv", "matmul_nbits", "softmax_cross_entropy", "softmax_cross_entropy_grad", "random_uniform", "random_normal",
    "random_bernoulli", "random_permutation", "dropout", "sgd_step", "adam_step", "rmsprop_step", "amsgrad_step", "adagrad_step",
    "adadelta_step",
]


def add(a: TensorLike, b: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = a + b, shapes broadcast. Integers wrap.

    Operands  a:T b:T -> y:T
    """
    return apply(1, b"Add", (a, b), None, device)[0]


def sub(a: TensorLike, b: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = a - b, shapes broadcast. Integers wrap.

    Operands  a:T b:T -> y:T
    """
    return apply(2, b"Sub", (a, b), None, device)[0]


def mul(a: TensorLike, b: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = a * b, shapes broadcast. Integers wrap.

    Operands  a:T b:T -> y:T
    """
    return apply(3, b"Mul", (a, b), None, device)[0]


def div(a: TensorLike, b: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = a / b, shapes broadcast. Floats divide by zero as in IEEE 754; integers truncate, and division by zero is an error at execution.

    Operands  a:T b:T -> y:T
    """
    return apply(4, b"Div", (a, b), None, device)[0]


def pow(a: TensorLike, b: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = a^b as IEEE 754's pow, shapes broadcast. A negative a gives NaN unless b is an integer.

    Operands  a:T b:T -> y:T
    """
    return apply(5, b"Pow", (a, b), None, device)[0]


def maximum(a: TensorLike, b: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = the larger of a and b, shapes broadcast. NaN propagates; equal operands share the gradient.

    Operands  a:T b:T -> y:T
    """
    return apply(6, b"Max", (a, b), None, device)[0]


def minimum(a: TensorLike, b: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = the smaller of a and b, shapes broadcast. NaN propagates; equal operands share the gradient.

    Operands  a:T b:T -> y:T
    """
    return apply(7, b"Min", (a, b), None, device)[0]


def equal(a: TensorLike, b: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = (a == b) as bool, shapes broadcast. NaN equals nothing; -0 equals 0.

    Operands  a:T b:T -> y:bool
    """
    return apply(20, b"Equal", (a, b), None, device)[0]


def less(a: TensorLike, b: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = (a < b) as bool, shapes broadcast. False if either is NaN; false is less than true.

    Operands  a:T b:T -> y:bool
    """
    return apply(21, b"Less", (a, b), None, device)[0]


def less_equal(a: TensorLike, b: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = (a <= b) as bool, shapes broadcast. False if either is NaN; false is less than true.

    Operands  a:T b:T -> y:bool
    """
    return apply(22, b"LessOrEqual", (a, b), None, device)[0]


def greater(a: TensorLike, b: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = (a > b) as bool, shapes broadcast. False if either is NaN; true is greater than false.

    Operands  a:T b:T -> y:bool
    """
    return apply(23, b"Greater", (a, b), None, device)[0]


def greater_equal(a: TensorLike, b: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = (a >= b) as bool, shapes broadcast. False if either is NaN; true is greater than false.

    Operands  a:T b:T -> y:bool
    """
    return apply(24, b"GreaterOrEqual", (a, b), None, device)[0]


def logical_and(a: TensorLike, b: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = a and b, shapes broadcast.

    Operands  a:T b:T -> y:bool
    """
    return apply(25, b"And", (a, b), None, device)[0]


def logical_or(a: TensorLike, b: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = a or b, shapes broadcast.

    Operands  a:T b:T -> y:bool
    """
    return apply(26, b"Or", (a, b), None, device)[0]


def logical_xor(a: TensorLike, b: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = a or b but not both, shapes broadcast.

    Operands  a:T b:T -> y:bool
    """
    return apply(27, b"Xor", (a, b), None, device)[0]


def logical_not(x: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = not x.

    Operands  x:T -> y:bool
    """
    return apply(28, b"Not", (x,), None, device)[0]


def is_nan(x: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = whether x is NaN.

    Operands  x:T -> y:bool
    """
    return apply(29, b"IsNaN", (x,), None, device)[0]


def is_inf(x: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = whether x is infinite, of either sign.

    Operands  x:T -> y:bool
    """
    return apply(30, b"IsInf", (x,), None, device)[0]


def where(condition: TensorLike, a: TensorLike, b: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = a where the condition holds, else b; shapes broadcast.

    Operands  condition:bool a:T b:T -> y:T
    """
    return apply(31, b"Where", (condition, a, b), None, device)[0]


def neg(x: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = -x. The lowest integer wraps to itself.

    Operands  x:T -> y:T
    """
    return apply(40, b"Neg", (x,), None, device)[0]


def relu(x: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = max(0, x). NaN propagates; the derivative at 0 is 0.

    Operands  x:T -> y:T
    """
    return apply(41, b"Relu", (x,), None, device)[0]


def relu_grad(dy: TensorLike, y: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """dx = dy where y > 0, else 0.

    Operands  dy:T y:T -> dx:T
    """
    return apply(42, b"ReluGrad", (dy, y), None, device)[0]


def sigmoid(x: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = 1 / (1 + exp(-x)).

    Operands  x:T -> y:T
    """
    return apply(43, b"Sigmoid", (x,), None, device)[0]


def sigmoid_grad(dy: TensorLike, y: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """dx = dy y (1 - y).

    Operands  dy:T y:T -> dx:T
    """
    return apply(44, b"SigmoidGrad", (dy, y), None, device)[0]


def tanh(x: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = tanh(x).

    Operands  x:T -> y:T
    """
    return apply(45, b"Tanh", (x,), None, device)[0]


def tanh_grad(dy: TensorLike, y: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """dx = dy (1 - y^2).

    Operands  dy:T y:T -> dx:T
    """
    return apply(46, b"TanhGrad", (dy, y), None, device)[0]


def abs(x: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = |x|. The lowest integer wraps to itself; the derivative at 0 is 0.

    Operands  x:T -> y:T
    """
    return apply(50, b"Abs", (x,), None, device)[0]


def sign(x: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = -1, 0 or 1 for a negative, zero or positive x. NaN propagates; the derivative is 0.

    Operands  x:T -> y:T
    """
    return apply(51, b"Sign", (x,), None, device)[0]


def ceil(x: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = the smallest integer not below x. The derivative is 0.

    Operands  x:T -> y:T
    """
    return apply(52, b"Ceil", (x,), None, device)[0]


def floor(x: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = the largest integer not above x. The derivative is 0.

    Operands  x:T -> y:T
    """
    return apply(53, b"Floor", (x,), None, device)[0]


def round(x: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = the nearest integer, ties to even. The derivative is 0.

    Operands  x:T -> y:T
    """
    return apply(54, b"Round", (x,), None, device)[0]


def sqrt(x: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = the square root of x; NaN below 0.

    Operands  x:T -> y:T
    """
    return apply(55, b"Sqrt", (x,), None, device)[0]


def rsqrt(x: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = 1 / sqrt(x); infinite at 0, NaN below.

    Operands  x:T -> y:T
    """
    return apply(56, b"Rsqrt", (x,), None, device)[0]


def reciprocal(x: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = 1 / x.

    Operands  x:T -> y:T
    """
    return apply(57, b"Reciprocal", (x,), None, device)[0]


def clip(x: TensorLike, *, low: Optional[float] = None, high: Optional[float] = None, device: DeviceLike = None) -> Tensor:
    """y = min(max(x, low), high). NaN propagates; low above high gives high. The derivative is 1 in [low, high], the ends included, and 0
    outside.

    Operands  x:T -> y:T
    """
    return apply(58, b"Clip", (x,), (("low", low), ("high", high)), device)[0]


def exp(x: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = e^x.

    Operands  x:T -> y:T
    """
    return apply(60, b"Exp", (x,), None, device)[0]


def expm1(x: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = e^x - 1, accurate for small x.

    Operands  x:T -> y:T
    """
    return apply(61, b"Expm1", (x,), None, device)[0]


def log(x: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = the natural logarithm of x; -inf at 0, NaN below.

    Operands  x:T -> y:T
    """
    return apply(62, b"Log", (x,), None, device)[0]


def log2(x: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = the logarithm of x to base 2; -inf at 0, NaN below.

    Operands  x:T -> y:T
    """
    return apply(63, b"Log2", (x,), None, device)[0]


def log1p(x: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = log(1 + x), accurate for small x; -inf at -1, NaN below.

    Operands  x:T -> y:T
    """
    return apply(64, b"Log1p", (x,), None, device)[0]


def erf(x: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = 2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x.

    Operands  x:T -> y:T
    """
    return apply(65, b"Erf", (x,), None, device)[0]


def sin(x: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = sin x, x in radians and of any magnitude; NaN for infinite x.

    Operands  x:T -> y:T
    """
    return apply(66, b"Sin", (x,), None, device)[0]


def cos(x: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = cos x, x in radians and of any magnitude; NaN for infinite x.

    Operands  x:T -> y:T
    """
    return apply(67, b"Cos", (x,), None, device)[0]


def atan(x: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = the angle in [-pi/2, pi/2] whose tangent is x.

    Operands  x:T -> y:T
    """
    return apply(68, b"Atan", (x,), None, device)[0]


def leaky_relu(x: TensorLike, *, alpha: float, device: DeviceLike = None) -> Tensor:
    """y = x where x > 0, else alpha x. The derivative at 0 is alpha.

    Operands  x:T -> y:T
    """
    return apply(70, b"LeakyRelu", (x,), (("alpha", alpha),), device)[0]


def elu(x: TensorLike, *, alpha: float, device: DeviceLike = None) -> Tensor:
    """y = x where x > 0, else alpha (e^x - 1). The derivative at 0 is alpha.

    Operands  x:T -> y:T
    """
    return apply(71, b"Elu", (x,), (("alpha", alpha),), device)[0]


def softplus(x: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = log(1 + e^x) without overflow.

    Operands  x:T -> y:T
    """
    return apply(72, b"Softplus", (x,), None, device)[0]


def mish(x: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = x tanh(softplus(x)); 0, its limit, at minus infinity.

    Operands  x:T -> y:T
    """
    return apply(73, b"Mish", (x,), None, device)[0]


def gelu(x: TensorLike, *, approximate_tanh: bool = False, device: DeviceLike = None) -> Tensor:
    """y = x Phi(x), Phi the normal distribution; with approximate_tanh x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). Its limit 0 at minus
    infinity.

    Operands  x:T -> y:T
    """
    return apply(74, b"Gelu", (x,), (("approximate_tanh", bool(approximate_tanh)),), device)[0]


def silu(x: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = x sigmoid(x); 0, its limit, at minus infinity.

    Operands  x:T -> y:T
    """
    return apply(75, b"Silu", (x,), None, device)[0]


def cast(x: TensorLike, *, to: DTypeLike, device: DeviceLike = None) -> Tensor:
    """y = x converted to another real dtype. Float to integer truncates and saturates, NaN becomes 0; integer to a narrower one keeps the
    low bits; to bool is x != 0; to a float rounds once, to nearest, ties to even. Between floats the gradient is cast back; integers
    have no gradient.

    Operands  x:T -> y:U
    """
    return apply(90, b"Cast", (x,), (("to", dtype_of(to).short),), device)[0]


def reduce_sum(x: TensorLike, *, keepdims: bool = False, axes: Sequence[int] = (), device: DeviceLike = None) -> Tensor:
    """y = sum of x over axes; no axes: all of them. The sum of no elements is 0. Integers wrap.

    Operands  x:T -> y:T
    """
    return apply(100, b"ReduceSum", (x,), (("keepdims", bool(keepdims)), ("axes", listed(axes))), device)[0]


def reduce_mean(x: TensorLike, *, keepdims: bool = False, axes: Sequence[int] = (), device: DeviceLike = None) -> Tensor:
    """y = mean of x over axes; no axes: all of them. The mean of no elements is NaN.

    Operands  x:T -> y:T
    """
    return apply(101, b"ReduceMean", (x,), (("keepdims", bool(keepdims)), ("axes", listed(axes))), device)[0]


def reduce_max(x: TensorLike, *, keepdims: bool = False, axes: Sequence[int] = (), device: DeviceLike = None) -> Tensor:
    """y = the largest x over axes; no axes: all of them. NaN propagates; reducing no elements is an error. Equal elements share the
    gradient.

    Operands  x:T -> y:T
    """
    return apply(102, b"ReduceMax", (x,), (("keepdims", bool(keepdims)), ("axes", listed(axes))), device)[0]


def reduce_min(x: TensorLike, *, keepdims: bool = False, axes: Sequence[int] = (), device: DeviceLike = None) -> Tensor:
    """y = the smallest x over axes; no axes: all of them. NaN propagates; reducing no elements is an error. Equal elements share the
    gradient.

    Operands  x:T -> y:T
    """
    return apply(103, b"ReduceMin", (x,), (("keepdims", bool(keepdims)), ("axes", listed(axes))), device)[0]


def reduce_prod(x: TensorLike, *, keepdims: bool = False, axes: Sequence[int] = (), device: DeviceLike = None) -> Tensor:
    """y = product of x over axes; no axes: all of them. The product of no elements is 1. Integers wrap.

    Operands  x:T -> y:T
    """
    return apply(104, b"ReduceProd", (x,), (("keepdims", bool(keepdims)), ("axes", listed(axes))), device)[0]


def reduce_l1(x: TensorLike, *, keepdims: bool = False, axes: Sequence[int] = (), device: DeviceLike = None) -> Tensor:
    """y = sum |x| over axes; no axes: all of them. The result for no elements is 0.

    Operands  x:T -> y:T
    """
    return apply(105, b"ReduceL1", (x,), (("keepdims", bool(keepdims)), ("axes", listed(axes))), device)[0]


def reduce_l2(x: TensorLike, *, keepdims: bool = False, axes: Sequence[int] = (), device: DeviceLike = None) -> Tensor:
    """y = sqrt(sum x^2) over axes; no axes: all of them. Squares neither overflow nor underflow. The result for no elements is 0.

    Operands  x:T -> y:T
    """
    return apply(106, b"ReduceL2", (x,), (("keepdims", bool(keepdims)), ("axes", listed(axes))), device)[0]


def reduce_sum_square(x: TensorLike, *, keepdims: bool = False, axes: Sequence[int] = (), device: DeviceLike = None) -> Tensor:
    """y = sum x^2 over axes; no axes: all of them. The result for no elements is 0.

    Operands  x:T -> y:T
    """
    return apply(107, b"ReduceSumSquare", (x,), (("keepdims", bool(keepdims)), ("axes", listed(axes))), device)[0]


def reduce_log_sum_exp(x: TensorLike, *, keepdims: bool = False, axes: Sequence[int] = (), device: DeviceLike = None) -> Tensor:
    """y = m + log(sum exp(x - m)) over axes, m the largest x: no exponential overflows; no axes: all of them. The result for no elements
    is -inf.

    Operands  x:T -> y:T
    """
    return apply(108, b"ReduceLogSumExp", (x,), (("keepdims", bool(keepdims)), ("axes", listed(axes))), device)[0]


def arg_max(x: TensorLike, *, keepdims: bool = False, axis: int = -1, device: DeviceLike = None) -> Tensor:
    """y = index of the largest x along axis, as i64. Ties: the first; NaN counts as the largest.

    Operands  x:T -> y:i64
    """
    return apply(130, b"ArgMax", (x,), (("keepdims", bool(keepdims)), ("axis", axis)), device)[0]


def arg_min(x: TensorLike, *, keepdims: bool = False, axis: int = -1, device: DeviceLike = None) -> Tensor:
    """y = index of the smallest x along axis, as i64. Ties: the first; NaN counts as the smallest.

    Operands  x:T -> y:i64
    """
    return apply(131, b"ArgMin", (x,), (("keepdims", bool(keepdims)), ("axis", axis)), device)[0]


def reshape(x: TensorLike, *, shape: Sequence[int], device: DeviceLike = None) -> Tensor:
    """y = x in row-major order with another shape of the same count.

    Operands  x:T -> y:T
    """
    return apply(150, b"Reshape", (x,), (("shape", listed(shape)),), device)[0]


def flatten(x: TensorLike, *, axis: int, device: DeviceLike = None) -> Tensor:
    """y = x as (d0 ... d[axis-1], d[axis] ...); axis may be the rank.

    Operands  x:T -> y:T
    """
    return apply(151, b"Flatten", (x,), (("axis", axis),), device)[0]


def transpose(x: TensorLike, *, perm: Sequence[int], device: DeviceLike = None) -> Tensor:
    """Axis i of y is axis perm[i] of x; no perm: the axes are reversed.

    Operands  x:T -> y:T
    """
    return apply(152, b"Transpose", (x,), (("perm", listed(perm)),), device)[0]


def expand(x: TensorLike, *, shape: Sequence[int], device: DeviceLike = None) -> Tensor:
    """y = x broadcast to a shape.

    Operands  x:T -> y:T
    """
    return apply(153, b"Expand", (x,), (("shape", listed(shape)),), device)[0]


def slice(x: TensorLike, *, shape: Sequence[int], starts: Sequence[int], steps: Sequence[int], device: DeviceLike = None) -> Tensor:
    """y[i, ...] = x[starts + i steps, ...], with the sizes of the result; steps may be negative.

    Operands  x:T -> y:T
    """
    return apply(160, b"Slice", (x,), (("starts", listed(starts)), ("steps", listed(steps)), ("shape", listed(shape))), device)[0]


def pad(x: TensorLike, *, shape: Sequence[int], value: float, before: Sequence[int], mode: str = 'constant', device: DeviceLike = None) -> Tensor:
    """y = x padded before and after: a value (constant), x mirrored at its ends without repeating them (reflect), or its last elements
    (edge).

    Operands  x:T -> y:T
    Names     mode: constant, reflect, edge
    """
    return apply(161, b"Pad", (x,), (("value", value), ("before", listed(before)), ("mode", mode), ("shape", listed(shape))), device)[0]


def concat(*x: TensorLike, axis: int = 0, device: DeviceLike = None) -> Tensor:
    """y = the operands joined along axis.

    Operands  (x:T)* -> y:T
    """
    return apply(162, b"Concat", (*x,), (("axis", axis),), device)[0]


def split(x: TensorLike, *, sizes: Sequence[int], axis: int = 0, device: DeviceLike = None) -> Tuple[Tensor, ...]:
    """The results are consecutive parts of x along axis; their sizes add up to that of x.

    Operands  x:T -> (y:T)*
    """
    return tuple(apply(163, b"Split", (x,), (("axis", axis), ("sizes", listed(sizes))), device))


def gather(x: TensorLike, indices: TensorLike, *, axis: int = 0, device: DeviceLike = None) -> Tensor:
    """y = the slices of x along axis at indices, arranged in the shape of indices. Indices are in [-n, n), negative from the end; others
    are an error at execution.

    Operands  x:T indices:i32|i64 -> y:T
    """
    return apply(170, b"Gather", (x, indices), (("axis", axis),), device)[0]


def gather_elements(x: TensorLike, indices: TensorLike, *, axis: int = 0, device: DeviceLike = None) -> Tensor:
    """y[i, j] = x[indices[i, j], j] for axis 0, and so on for others. Indices are in [-n, n), negative from the end; others are an error
    at execution.

    Operands  x:T indices:i32|i64 -> y:T
    """
    return apply(171, b"GatherElements", (x, indices), (("axis", axis),), device)[0]


def scatter_elements(x: TensorLike, indices: TensorLike, updates: TensorLike, *, axis: int, reduction: str = 'none', device: DeviceLike = None) -> Tensor:
    """y = x, then y[indices[i, j], j] = updates[i, j] (axis 0), or reduced with the update, in row-major order, so the last one replaces.
    Indices are in [-n, n), negative from the end; others are an error at execution.

    Operands  x:T indices:i32|i64 updates:T -> y:T
    Names     reduction: none, add, mul, max, min
    """
    return apply(172, b"ScatterElements", (x, indices, updates), (("axis", axis), ("reduction", reduction)), device)[0]


def scatter_add(x: TensorLike, indices: TensorLike, updates: TensorLike, *, axis: int, device: DeviceLike = None) -> Tensor:
    """y = x with slice k of updates added to slice indices[k] along axis, in the order of k: the transpose of gather. Indices are in [-n,
    n), negative from the end; others are an error at execution.

    Operands  x:T indices:i32|i64 updates:T -> y:T
    """
    return apply(173, b"ScatterAdd", (x, indices, updates), (("axis", axis),), device)[0]


def scatter_slices(x: TensorLike, indices: TensorLike, updates: TensorLike, *, axis: int, reduction: str = 'none', device: DeviceLike = None) -> Tensor:
    """y = x with slice k of updates in the place of slice indices[k] along axis, or reduced with it, in the order of k, so the last one
    replaces. Indices are in [-n, n), negative from the end; others are an error at execution.

    Operands  x:T indices:i32|i64 updates:T -> y:T
    Names     reduction: none, add, mul, max, min
    """
    return apply(175, b"ScatterSlices", (x, indices, updates), (("axis", axis), ("reduction", reduction)), device)[0]


def one_hot(indices: TensorLike, *, shape: Sequence[int], dtype: DTypeLike, axis: int, off: float, on: float, device: DeviceLike = None) -> Tensor:
    """y has one more dimension than indices, at axis: on where the index equals the position, else off. A negative index counts from the
    end; one outside [-depth, depth) gives only off.

    Operands  indices:i32|i64 -> y:T
    """
    return apply(174, b"OneHot", (indices,), (("dtype", dtype_of(dtype).short), ("axis", axis), ("off", off), ("on", on), ("shape", listed(shape))), device)[0]


def matmul(a: TensorLike, b: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = a b, (..., m, k) by (..., k, n); batch dimensions broadcast. A 1-D a is a row, a 1-D b a column, and their added dimension is
    removed from y.

    Operands  a:T b:T -> y:T
    """
    return apply(200, b"MatMul", (a, b), None, device)[0]


def gemm(a: TensorLike, b: TensorLike, c: TensorLike = None, *, trans_a: bool = False, trans_b: bool = False, alpha: float = 1.0, beta: float = 1.0, device: DeviceLike = None) -> Tensor:
    """y = alpha op(a) op(b) + beta c, op(a) (m, k), op(b) (k, n); c broadcasts to (m, n). With beta 0, c is not read.

    Operands  a:T b:T c:T? -> y:T
    """
    return apply(201, b"Gemm", (a, b, c), (("trans_a", bool(trans_a)), ("trans_b", bool(trans_b)), ("alpha", alpha), ("beta", beta)), device)[0]


def conv(x: TensorLike, w: TensorLike, b: TensorLike = None, *, groups: int = 1, strides: Optional[Sequence[int]] = None, dilations: Optional[Sequence[int]] = None, pads_before: Optional[Sequence[int]] = None, pads_after: Optional[Sequence[int]] = None, device: DeviceLike = None) -> Tensor:
    """Cross-correlation: y[n, o, i...] = b[o] + sum over c, k... of x[n, c, i strides + k dilations - pads_before] w[o, c, k...], zeros
    outside of x. x (N, C, d...), w (O, C / groups, k...), b (O); each group of filters reads one group of channels.

    Operands  x:T w:T b:T? -> y:T
    """
    return apply(220, b"Conv", (x, w, b), (("groups", groups), ("strides", listed(strides)), ("dilations", listed(dilations)), ("pads_before", listed(pads_before)), ("pads_after", listed(pads_after))), device)[0]


def conv_input_grad(dy: TensorLike, w: TensorLike, *, shape: Sequence[int], groups: int = 1, strides: Optional[Sequence[int]] = None, dilations: Optional[Sequence[int]] = None, pads_before: Optional[Sequence[int]] = None, pads_after: Optional[Sequence[int]] = None, device: DeviceLike = None) -> Tensor:
    """dx of Conv for filters w and an image of the given shape. Linear in dy and in w.

    Operands  dy:T w:T -> dx:T
    """
    return apply(221, b"ConvInputGrad", (dy, w), (("groups", groups), ("strides", listed(strides)), ("dilations", listed(dilations)), ("pads_before", listed(pads_before)), ("pads_after", listed(pads_after)), ("shape", listed(shape))), device)[0]


def conv_weight_grad(dy: TensorLike, x: TensorLike, *, shape: Sequence[int], groups: int = 1, strides: Optional[Sequence[int]] = None, dilations: Optional[Sequence[int]] = None, pads_before: Optional[Sequence[int]] = None, pads_after: Optional[Sequence[int]] = None, device: DeviceLike = None) -> Tensor:
    """dw of Conv for an image x and filters of the given shape. Linear in dy and in x.

    Operands  dy:T x:T -> dw:T
    """
    return apply(222, b"ConvWeightGrad", (dy, x), (("groups", groups), ("strides", listed(strides)), ("dilations", listed(dilations)), ("pads_before", listed(pads_before)), ("pads_after", listed(pads_after)), ("shape", listed(shape))), device)[0]


def conv_transpose(x: TensorLike, w: TensorLike, b: TensorLike = None, *, shape: Sequence[int], groups: int = 1, strides: Optional[Sequence[int]] = None, dilations: Optional[Sequence[int]] = None, pads_before: Optional[Sequence[int]] = None, pads_after: Optional[Sequence[int]] = None, device: DeviceLike = None) -> Tensor:
    """y[n, o, i strides + k dilations - pads_before] gets x[n, c, i...] w[c, o, k...], summed over c, i and k, plus b[o]. x (N, C, d...),
    w (C, O / groups, k...), b (O), y of the given shape, for which Conv with the same attributes returns the shape of x.

    Operands  x:T w:T b:T? -> y:T
    """
    return apply(223, b"ConvTranspose", (x, w, b), (("groups", groups), ("strides", listed(strides)), ("dilations", listed(dilations)), ("pads_before", listed(pads_before)), ("pads_after", listed(pads_after)), ("shape", listed(shape))), device)[0]


def im2col(x: TensorLike, *, kernel: Sequence[int], strides: Optional[Sequence[int]] = None, dilations: Optional[Sequence[int]] = None, pads_before: Optional[Sequence[int]] = None, pads_after: Optional[Sequence[int]] = None, device: DeviceLike = None) -> Tensor:
    """y[n, (c, k...), (i...)] = x[n, c, i strides + k dilations - pads_before], zeros outside of x: (N, C, d...) to (N, C * product of
    kernel, windows), row-major within the parentheses.

    Operands  x:T -> y:T
    """
    return apply(225, b"Im2Col", (x,), (("kernel", listed(kernel)), ("strides", listed(strides)), ("dilations", listed(dilations)), ("pads_before", listed(pads_before)), ("pads_after", listed(pads_after))), device)[0]


def col2im(x: TensorLike, *, shape: Sequence[int], kernel: Sequence[int], strides: Optional[Sequence[int]] = None, dilations: Optional[Sequence[int]] = None, pads_before: Optional[Sequence[int]] = None, pads_after: Optional[Sequence[int]] = None, device: DeviceLike = None) -> Tensor:
    """The transpose of Im2Col: each element of y, of the given shape, is the sum of the elements of x that Im2Col copies from it.

    Operands  x:T -> y:T
    """
    return apply(226, b"Col2Im", (x,), (("kernel", listed(kernel)), ("strides", listed(strides)), ("dilations", listed(dilations)), ("pads_before", listed(pads_before)), ("pads_after", listed(pads_after)), ("shape", listed(shape))), device)[0]


def max_pool(x: TensorLike, *, kernel: Sequence[int], ceil_mode: bool = False, strides: Optional[Sequence[int]] = None, dilations: Optional[Sequence[int]] = None, pads_before: Optional[Sequence[int]] = None, pads_after: Optional[Sequence[int]] = None, device: DeviceLike = None) -> Tuple[Tensor, ...]:
    """y = the largest x of each window, ignoring padding; NaN wins. indices are positions in x in the order (N, C, d...), the first in
    case of a tie.

    Operands  x:T -> y:T indices:i64?
    """
    return tuple(apply(230, b"MaxPool", (x,), (("kernel", listed(kernel)), ("ceil_mode", bool(ceil_mode)), ("strides", listed(strides)), ("dilations", listed(dilations)), ("pads_before", listed(pads_before)), ("pads_after", listed(pads_after))), device))


def max_pool_grad(dy: TensorLike, indices: TensorLike, *, shape: Sequence[int], device: DeviceLike = None) -> Tensor:
    """dx = 0, then dx[indices] += dy: each result's gradient goes to the position of its maximum.

    Operands  dy:T indices:i64 -> dx:T
    """
    return apply(231, b"MaxPoolGrad", (dy, indices), (("shape", listed(shape)),), device)[0]


def average_pool(x: TensorLike, *, kernel: Sequence[int], ceil_mode: bool = False, count_include_pad: bool = False, strides: Optional[Sequence[int]] = None, dilations: Optional[Sequence[int]] = None, pads_before: Optional[Sequence[int]] = None, pads_after: Optional[Sequence[int]] = None, device: DeviceLike = None) -> Tensor:
    """y = sum of x over each window, divided by the number of its elements within the padded image, or only within x.

    Operands  x:T -> y:T
    """
    return apply(232, b"AveragePool", (x,), (("kernel", listed(kernel)), ("ceil_mode", bool(ceil_mode)), ("count_include_pad", bool(count_include_pad)), ("strides", listed(strides)), ("dilations", listed(dilations)), ("pads_before", listed(pads_before)), ("pads_after", listed(pads_after))), device)[0]


def average_pool_grad(dy: TensorLike, *, shape: Sequence[int], kernel: Sequence[int], count_include_pad: bool = False, strides: Optional[Sequence[int]] = None, dilations: Optional[Sequence[int]] = None, pads_before: Optional[Sequence[int]] = None, pads_after: Optional[Sequence[int]] = None, device: DeviceLike = None) -> Tensor:
    """dx = sum of dy over the windows that cover it, divided as in the forward op.

    Operands  dy:T -> dx:T
    """
    return apply(233, b"AveragePoolGrad", (dy,), (("kernel", listed(kernel)), ("count_include_pad", bool(count_include_pad)), ("strides", listed(strides)), ("dilations", listed(dilations)), ("pads_before", listed(pads_before)), ("pads_after", listed(pads_after)), ("shape", listed(shape))), device)[0]


def resize(x: TensorLike, *, scales: Sequence[int], mode: str = 'nearest', coordinates: str = 'half_pixel', rounding: str = 'prefer_floor', device: DeviceLike = None) -> Tensor:
    """y[..., i, ...] = x at the coordinate that i maps to: its nearest element, or the interpolation of its two neighbours; beyond the
    ends, the last element.

    Operands  x:T -> y:T
    Names     mode: nearest, linear
    Names     coordinates: half_pixel, asymmetric, align_corners, pytorch_half_pixel
    Names     rounding: prefer_floor, prefer_ceil, floor, ceil
    """
    return apply(240, b"Resize", (x,), (("scales", listed(scales)), ("mode", mode), ("coordinates", coordinates), ("rounding", rounding)), device)[0]


def resize_grad(dy: TensorLike, *, scales: Sequence[int], mode: str = 'nearest', coordinates: str = 'half_pixel', rounding: str = 'prefer_floor', device: DeviceLike = None) -> Tensor:
    """dx[k] = sum over y of the weight that x[k] has in y, times dy.

    Operands  dy:T -> dx:T
    Names     mode: nearest, linear
    Names     coordinates: half_pixel, asymmetric, align_corners, pytorch_half_pixel
    Names     rounding: prefer_floor, prefer_ceil, floor, ceil
    """
    return apply(241, b"ResizeGrad", (dy,), (("scales", listed(scales)), ("mode", mode), ("coordinates", coordinates), ("rounding", rounding)), device)[0]


def batch_norm(x: TensorLike, scale: TensorLike, bias: TensorLike, mean: TensorLike, var: TensorLike, *, axis: int, epsilon: float = 1e-5, device: DeviceLike = None) -> Tensor:
    """y = (x - mean) / sqrt(var + epsilon) scale + bias for each channel along axis; scale, bias, mean, var (channels), of f32 for f16 and
    bf16.

    Operands  x:T scale:S bias:S mean:S var:S -> y:T
    """
    return apply(250, b"BatchNormalization", (x, scale, bias, mean, var), (("axis", axis), ("epsilon", epsilon)), device)[0]


def batch_norm_train(x: TensorLike, scale: TensorLike, bias: TensorLike, running_mean: TensorLike, running_var: TensorLike, *, axis: int, epsilon: float, momentum: float, biased: bool = False, device: DeviceLike = None) -> Tuple[Tensor, ...]:
    """mean and var of each channel's n elements, var over n; y = (x - mean) inverse_std scale + bias, inverse_std = 1 / sqrt(var +
    epsilon); running = (1 - momentum) running + momentum (mean or var n / (n - 1); var itself if biased). n >= 2.

    Operands  x:T scale:S bias:S running_mean:S running_var:S -> y:T running_mean:S running_var:S mean:S inverse_std:S
    """
    return tuple(apply(251, b"BatchNormTrain", (x, scale, bias, running_mean, running_var), (("axis", axis), ("epsilon", epsilon), ("momentum", momentum), ("biased", bool(biased))), device))


def batch_norm_train_grad(dy: TensorLike, x: TensorLike, scale: TensorLike, mean: TensorLike, inverse_std: TensorLike, *, axis: int, device: DeviceLike = None) -> Tuple[Tensor, ...]:
    """With x' = (x - mean) inverse_std: dbias = sum(dy), dscale = sum(dy x'), dx = scale inverse_std / n (n dy - dbias - x' dscale).

    Operands  dy:T x:T scale:S mean:S inverse_std:S -> dx:T dscale:S dbias:S
    """
    return tuple(apply(252, b"BatchNormTrainGrad", (dy, x, scale, mean, inverse_std), (("axis", axis),), device))


def layer_norm(x: TensorLike, scale: TensorLike = None, bias: TensorLike = None, *, axis: int = -1, epsilon: float = 1e-5, device: DeviceLike = None) -> Tuple[Tensor, ...]:
    """y = (x - mean) inverse_std scale + bias, with mean and inverse_std = 1 / sqrt(var + epsilon) over the dimensions from axis on; scale
    and bias have their shape.

    Operands  x:T scale:T? bias:T? -> y:T mean:T? inverse_std:T?
    """
    return tuple(apply(255, b"LayerNormalization", (x, scale, bias), (("axis", axis), ("epsilon", epsilon)), device))


def layer_norm_grad(dy: TensorLike, x: TensorLike, scale: TensorLike = None, mean: TensorLike = None, inverse_std: TensorLike = None, *, axis: int, epsilon: float, device: DeviceLike = None) -> Tuple[Tensor, ...]:
    """With x' = (x - mean) inverse_std and g = dy scale: dx = inverse_std (g - mean(g) - x' mean(g x')), dscale = sum(dy x'), dbias =
    sum(dy) over the lines.

    Operands  dy:T x:T scale:T? mean:T inverse_std:T -> dx:T dscale:T? dbias:T?
    """
    return tuple(apply(256, b"LayerNormalizationGrad", (dy, x, scale, mean, inverse_std), (("axis", axis), ("epsilon", epsilon)), device))


def rms_norm(x: TensorLike, scale: TensorLike = None, *, axis: int = -1, epsilon: float = 1e-5, device: DeviceLike = None) -> Tuple[Tensor, ...]:
    """y = x inverse_rms scale, inverse_rms = 1 / sqrt(mean(x^2) + epsilon) over the dimensions from axis on; scale has their shape.

    Operands  x:T scale:T? -> y:T inverse_rms:T?
    """
    return tuple(apply(257, b"RMSNormalization", (x, scale), (("axis", axis), ("epsilon", epsilon)), device))


def rms_norm_grad(dy: TensorLike, x: TensorLike, scale: TensorLike = None, inverse_rms: TensorLike = None, *, axis: int, epsilon: float, device: DeviceLike = None) -> Tuple[Tensor, ...]:
    """With x' = x inverse_rms and g = dy scale: dx = inverse_rms (g - x' mean(g x')), dscale = sum(dy x') over the lines.

    Operands  dy:T x:T scale:T? inverse_rms:T -> dx:T dscale:T?
    """
    return tuple(apply(258, b"RMSNormalizationGrad", (dy, x, scale, inverse_rms), (("axis", axis), ("epsilon", epsilon)), device))


def lrn(x: TensorLike, *, size: int, alpha: float, beta: float, bias: float, device: DeviceLike = None) -> Tensor:
    """y = x / (bias + alpha / size sum x^2)^beta, the sum over the channels c - floor((size - 1) / 2) ... c + ceil((size - 1) / 2).

    Operands  x:T -> y:T
    """
    return apply(260, b"LRN", (x,), (("size", size), ("alpha", alpha), ("beta", beta), ("bias", bias)), device)[0]


def lrn_grad(dy: TensorLike, x: TensorLike, *, size: int, alpha: float, beta: float, bias: float, device: DeviceLike = None) -> Tensor:
    """With d = bias + alpha / size sum x^2: dx = dy d^-beta - 2 alpha beta / size x sum(dy x d^(-beta - 1)), the last sum over the
    channels whose windows contain this one.

    Operands  dy:T x:T -> dx:T
    """
    return apply(261, b"LRNGrad", (dy, x), (("size", size), ("alpha", alpha), ("beta", beta), ("bias", bias)), device)[0]


def rnn(x: TensorLike, w: TensorLike, r: TensorLike, b: TensorLike = None, h0: TensorLike = None, *, direction: str = 'forward', activation: str = 'tanh', device: DeviceLike = None) -> Tuple[Tensor, ...]:
    """h_t = f(x_t w' + h_(t-1) r' + bw + br), f tanh or relu, b = (bw, br): x (T, B, I), w (D, H, I), r (D, H, H), y (T, D, B, H) all h,
    y_h (D, B, H) the last. Direction `reverse` reads x from its end; of `both`, direction 1 does.

    Operands  x:T w:T r:T b:T? h0:T? -> y:T? y_h:T?
    Names     direction: forward, reverse, both
    Names     activation: tanh, relu
    """
    return tuple(apply(270, b"RNN", (x, w, r, b, h0), (("direction", direction), ("activation", activation)), device))


def rnn_grad(dy: TensorLike = None, dy_h: TensorLike = None, x: TensorLike = None, w: TensorLike = None, r: TensorLike = None, b: TensorLike = None, h0: TensorLike = None, y: TensorLike = None, *, direction: str = 'forward', activation: str = 'tanh', device: DeviceLike = None) -> Tuple[Tensor, ...]:
    """The gradients of rnn through all steps, from its results y. db holds the same values twice.

    Operands  dy:T? dy_h:T? x:T w:T r:T b:T? h0:T? y:T -> dx:T dw:T dr:T db:T? dh0:T?
    Names     direction: forward, reverse, both
    Names     activation: tanh, relu
    """
    return tuple(apply(271, b"RNNGrad", (dy, dy_h, x, w, r, b, h0, y), (("direction", direction), ("activation", activation)), device))


def gru(x: TensorLike, w: TensorLike, r: TensorLike, b: TensorLike = None, h0: TensorLike = None, *, direction: str = 'forward', linear_before_reset: bool = False, device: DeviceLike = None) -> Tuple[Tensor, ...]:
    """z = s(x wz' + h rz' + bz), r = s(x wr' + h rr' + br), h~ = tanh(x wh' + (r h) rh' + bh), or tanh(x wh' + bwh + r (h rh' + brh)) with
    linear_before_reset, h_t = (1 - z) h~ + z h_(t-1), s the sigmoid: x (T, B, I), w (D, 3 H, I), r (D, 3 H, H), b (D, 6 H) = (bw, br),
    y (T, D, B, H), y_h (D, B, H). gates (T, B, D, 4 H) = (z, r, h~, q), q = r h, or h rh' + brh with linear_before_reset.

    Operands  x:T w:T r:T b:T? h0:T? -> y:T? y_h:T? gates:T?
    Names     direction: forward, reverse, both
    """
    return tuple(apply(272, b"GRU", (x, w, r, b, h0), (("direction", direction), ("linear_before_reset", bool(linear_before_reset))), device))


def gru_grad(dy: TensorLike = None, dy_h: TensorLike = None, x: TensorLike = None, w: TensorLike = None, r: TensorLike = None, b: TensorLike = None, h0: TensorLike = None, y: TensorLike = None, gates: TensorLike = None, *, direction: str = 'forward', linear_before_reset: bool = False, device: DeviceLike = None) -> Tuple[Tensor, ...]:
    """The gradients of gru through all steps, from its results y and gates.

    Operands  dy:T? dy_h:T? x:T w:T r:T b:T? h0:T? y:T gates:T -> dx:T dw:T dr:T db:T? dh0:T?
    Names     direction: forward, reverse, both
    """
    return tuple(apply(273, b"GRUGrad", (dy, dy_h, x, w, r, b, h0, y, gates), (("direction", direction), ("linear_before_reset", bool(linear_before_reset))), device))


def lstm(x: TensorLike, w: TensorLike, r: TensorLike, b: TensorLike = None, h0: TensorLike = None, c0: TensorLike = None, *, direction: str = 'forward', device: DeviceLike = None) -> Tuple[Tensor, ...]:
    """i, o, f = s(x w' + h r' + b), g = tanh(x w' + h r' + b), each by its own H rows of w, r and b, s the sigmoid; c_t = f c_(t-1) + i g,
    h_t = o tanh(c_t): x (T, B, I), w (D, 4 H, I), r (D, 4 H, H), b (D, 8 H) = (bw, br), y (T, D, B, H) all h, y_h and y_c (D, B, H) the
    last states. gates (T, B, D, 4 H) = (i, o, f, g) and cells (T, D, B, H) hold all steps.

    Operands  x:T w:T r:T b:T? h0:T? c0:T? -> y:T? y_h:T? y_c:T? gates:T? cells:T?
    Names     direction: forward, reverse, both
    """
    return tuple(apply(274, b"LSTM", (x, w, r, b, h0, c0), (("direction", direction),), device))


def lstm_grad(dy: TensorLike = None, dy_h: TensorLike = None, dy_c: TensorLike = None, x: TensorLike = None, w: TensorLike = None, r: TensorLike = None, b: TensorLike = None, h0: TensorLike = None, c0: TensorLike = None, y: TensorLike = None, gates: TensorLike = None, cells: TensorLike = None, *, direction: str = 'forward', device: DeviceLike = None) -> Tuple[Tensor, ...]:
    """The gradients of lstm through all steps, from its results y, gates and cells. db holds the same values twice.

    Operands  dy:T? dy_h:T? dy_c:T? x:T w:T r:T b:T? h0:T? c0:T? y:T gates:T cells:T -> dx:T dw:T dr:T db:T? dh0:T? dc0:T?
    Names     direction: forward, reverse, both
    """
    return tuple(apply(275, b"LSTMGrad", (dy, dy_h, dy_c, x, w, r, b, h0, c0, y, gates, cells), (("direction", direction),), device))


def attention(q: TensorLike, k: TensorLike, v: TensorLike, mask: TensorLike = None, *, scale: float, causal: bool = False, device: DeviceLike = None) -> Tuple[Tensor, ...]:
    """y = softmax(scale q k' + mask) v, rows over the keys; causal: query s attends to keys l <= s. q (B, H, S, D), k (B, G, L, D), v (B,
    G, L, E), head h of q with head h G / H of k and v; mask broadcast to (B, H, S, L). log_sum (B, H, S) = log sum exp of each row's
    scores. A row without keys is 0, its log_sum -inf.

    Operands  q:T k:T v:T mask:T? -> y:T log_sum:S?
    """
    return tuple(apply(280, b"Attention", (q, k, v, mask), (("scale", scale), ("causal", bool(causal))), device))


def attention_grad(dy: TensorLike, q: TensorLike, k: TensorLike, v: TensorLike, mask: TensorLike = None, y: TensorLike = None, log_sum: TensorLike = None, *, scale: float, causal: bool = False, device: DeviceLike = None) -> Tuple[Tensor, ...]:
    """With p = exp(scale q k' + mask - log_sum) and ds = p (dy v' - sum(dy y)): dq = scale ds k, dk = scale ds' q, dv = p' dy, summed over
    the heads of q that share one of k and v.

    Operands  dy:T q:T k:T v:T mask:T? y:T log_sum:S -> dq:T dk:T dv:T
    """
    return tuple(apply(281, b"AttentionGrad", (dy, q, k, v, mask, y, log_sum), (("scale", scale), ("causal", bool(causal))), device))


def top_k(x: TensorLike, *, k: int, largest: bool = True, sorted: bool = True, axis: int = -1, device: DeviceLike = None) -> Tuple[Tensor, ...]:
    """The k largest (or smallest) elements of each line along axis, and their indices; sorted: best first. Equal elements: the smaller
    index first. NaN is larger than every number.

    Operands  x:T -> values:T indices:i64
    """
    return tuple(apply(290, b"TopK", (x,), (("k", k), ("largest", bool(largest)), ("sorted", bool(sorted)), ("axis", axis)), device))


def cum_sum(x: TensorLike, *, exclusive: bool = False, reverse: bool = False, axis: int = -1, device: DeviceLike = None) -> Tensor:
    """y[i] = x[0] + ... + x[i] along axis; exclusive: without x[i]; reverse: from the end to x[i].

    Operands  x:T -> y:T
    """
    return apply(291, b"CumSum", (x,), (("exclusive", bool(exclusive)), ("reverse", bool(reverse)), ("axis", axis)), device)[0]


def softmax(x: TensorLike, *, axis: int = -1, device: DeviceLike = None) -> Tensor:
    """y = exp(x - max x) / sum exp(x - max x), along axis.

    Operands  x:T -> y:T
    """
    return apply(300, b"Softmax", (x,), (("axis", axis),), device)[0]


def softmax_grad(dy: TensorLike, y: TensorLike, *, axis: int, device: DeviceLike = None) -> Tensor:
    """dx = y (dy - sum(dy y)), sums along axis.

    Operands  dy:T y:T -> dx:T
    """
    return apply(301, b"SoftmaxGrad", (dy, y), (("axis", axis),), device)[0]


def log_softmax(x: TensorLike, *, axis: int = -1, device: DeviceLike = None) -> Tensor:
    """y = x - max x - log sum exp(x - max x), along axis.

    Operands  x:T -> y:T
    """
    return apply(302, b"LogSoftmax", (x,), (("axis", axis),), device)[0]


def log_softmax_grad(dy: TensorLike, y: TensorLike, *, axis: int, device: DeviceLike = None) -> Tensor:
    """dx = dy - exp(y) sum(dy), sums along axis.

    Operands  dy:T y:T -> dx:T
    """
    return apply(303, b"LogSoftmaxGrad", (dy, y), (("axis", axis),), device)[0]


def quantize_linear(x: TensorLike, scale: TensorLike, zero_point: TensorLike = None, *, to: DTypeLike, device: DeviceLike = None) -> Tensor:
    """y = saturate(round(x / scale) + zero_point), ties to even; NaN becomes 0. The quotient is rounded to T, or to f32 if T has 16 bits.
    scale and zero_point broadcast to x, as ONNX's of a tensor, an axis or blocks do after Reshape or Expand.

    Operands  x:T scale:T zero_point:i8|u8|i16|u16? -> y:i8|u8|i16|u16
    """
    return apply(320, b"QuantizeLinear", (x, scale, zero_point), (("to", dtype_of(to).short),), device)[0]


def dequantize_linear(x: TensorLike, scale: TensorLike, zero_point: TensorLike = None, *, device: DeviceLike = None) -> Tensor:
    """y = (x - zero_point) scale, x and zero_point converted to T first, or to f32 if T has 16 bits. scale and zero_point broadcast to x.

    Operands  x:i8|u8|i16|u16|i32 scale:T zero_point:i8|u8|i16|u16|i32? -> y:T
    """
    return apply(321, b"DequantizeLinear", (x, scale, zero_point), None, device)[0]


def dynamic_quantize_linear(x: TensorLike, *, device: DeviceLike = None) -> Tuple[Tensor, ...]:
    """scale = (high - low) / 255, low = min(0, min x) and high = max(0, max x), 1 / 255 if both are 0; zero_point = round(-low / scale)
    saturated to [0, 255]; y = saturate(round(x / scale) + zero_point). Ties are rounded to even. x is finite.

    Operands  x:T -> y:u8 scale:T zero_point:u8
    """
    return tuple(apply(322, b"DynamicQuantizeLinear", (x,), None, device))


def matmul_integer(a: TensorLike, b: TensorLike, a_zero_point: TensorLike = None, b_zero_point: TensorLike = None, *, device: DeviceLike = None) -> Tensor:
    """y = (a - a_zero_point) (b - b_zero_point) as exact sums in i32, modulo 2^32; shapes as of MatMul. a_zero_point is a scalar or has
    one element for each row, b_zero_point a scalar or one for each column; absent ones are 0.

    Operands  a:T b:i8|u8 a_zero_point:T? b_zero_point:i8|u8? -> y:i32
    """
    return apply(325, b"MatMulInteger", (a, b, a_zero_point, b_zero_point), None, device)[0]


def conv_integer(x: TensorLike, w: TensorLike, x_zero_point: TensorLike = None, w_zero_point: TensorLike = None, *, groups: int = 1, strides: Optional[Sequence[int]] = None, dilations: Optional[Sequence[int]] = None, pads_before: Optional[Sequence[int]] = None, pads_after: Optional[Sequence[int]] = None, device: DeviceLike = None) -> Tensor:
    """Conv of x - x_zero_point and w - w_zero_point as exact sums in i32, modulo 2^32; the padding is 0, as if x had x_zero_point there.
    w_zero_point is a scalar or has one element for each filter; absent ones are 0.

    Operands  x:T w:i8|u8 x_zero_point:T? w_zero_point:i8|u8? -> y:i32
    """
    return apply(326, b"ConvInteger", (x, w, x_zero_point, w_zero_point), (("groups", groups), ("strides", listed(strides)), ("dilations", listed(dilations)), ("pads_before", listed(pads_before)), ("pads_after", listed(pads_after))), device)[0]


def qlinear_matmul(a: TensorLike, a_scale: TensorLike, a_zero_point: TensorLike, b: TensorLike, b_scale: TensorLike, b_zero_point: TensorLike, y_scale: TensorLike, y_zero_point: TensorLike, *, device: DeviceLike = None) -> Tensor:
    """y = saturate(round(f32(sum) factor) + y_zero_point), ties to even, of the sums of MatMulInteger, with factor = a_scale b_scale /
    y_scale; products and quotient are rounded to f32, and NaN, as of 0 times an infinite factor, becomes 0. b_scale and b_zero_point
    are scalars or have one element for each column.

    Operands  a:T a_scale:f32 a_zero_point:T b:i8|u8 b_scale:f32 b_zero_point:i8|u8 y_scale:f32 y_zero_point:i8|u8 -> y:i8|u8
    """
    return apply(327, b"QLinearMatMul", (a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point), None, device)[0]


def qlinear_conv(x: TensorLike, x_scale: TensorLike, x_zero_point: TensorLike, w: TensorLike, w_scale: TensorLike, w_zero_point: TensorLike, y_scale: TensorLike, y_zero_point: TensorLike, bias: TensorLike = None, *, groups: int = 1, strides: Optional[Sequence[int]] = None, dilations: Optional[Sequence[int]] = None, pads_before: Optional[Sequence[int]] = None, pads_after: Optional[Sequence[int]] = None, device: DeviceLike = None) -> Tensor:
    """y = saturate(round(f32(sum + bias) factor) + y_zero_point), ties to even, of the sums of ConvInteger, with factor = x_scale w_scale
    / y_scale; products and quotient are rounded to f32, and NaN, as of 0 times an infinite factor, becomes 0. w_scale and w_zero_point
    are scalars or have one element for each filter.

    Operands  x:T x_scale:f32 x_zero_point:T w:i8|u8 w_scale:f32 w_zero_point:i8|u8 y_scale:f32 y_zero_point:i8|u8 bias:i32? -> y:i8|u8
    """
    return apply(328, b"QLinearConv", (x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, bias), (("groups", groups), ("strides", listed(strides)), ("dilations", listed(dilations)), ("pads_before", listed(pads_before)), ("pads_after", listed(pads_after))), device)[0]


def matmul_nbits(a: TensorLike, b: TensorLike, scales: TensorLike, zero_points: TensorLike = None, bias: TensorLike = None, *, bits: int, block_size: int, device: DeviceLike = None) -> Tensor:
    """y = a w' + bias, w (N, K) with w[n, k] = (b[n, k] - zero_points[n, i]) scales[n, i], i = k / block_size. b and zero_points have
    `bits` bits for each element, the first in the lowest bits of a byte; elements of b from K on are not read. Absent zero points are
    2^(bits - 1). The op is com.microsoft's.

    Operands  a:T b:u8 scales:T zero_points:u8? bias:T? -> y:T
    """
    return apply(330, b"MatMulNBits", (a, b, scales, zero_points, bias), (("bits", bits), ("block_size", block_size)), device)[0]


def softmax_cross_entropy(scores: TensorLike, labels: TensorLike, weights: TensorLike = None, *, reduction: str = 'none', ignore_index: Optional[int] = None, device: DeviceLike = None) -> Tuple[Tensor, ...]:
    """loss = -weights[label] log_prob[label], reduced; log_prob = log softmax(scores) over the classes. The mean divides by the sum of the
    weights of the labels that are not ignored. Ignored labels have no loss; a label that is neither in [0, C) nor ignored is an error.

    Operands  scores:T labels:i32|i64 weights:T? -> loss:T log_prob:T?
    Names     reduction: none, mean, sum
    """
    return tuple(apply(400, b"SoftmaxCrossEntropyLoss", (scores, labels, weights), (("reduction", reduction), ("ignore_index", ignore_index)), device))


def softmax_cross_entropy_grad(dloss: TensorLike, log_prob: TensorLike, labels: TensorLike, weights: TensorLike = None, *, reduction: str = 'none', ignore_index: Optional[int] = None, device: DeviceLike = None) -> Tensor:
    """dscores = dloss weights[label] (exp(log_prob) - onehot(label)), divided as in the mean; 0 for ignored labels.

    Operands  dloss:T log_prob:T labels:i32|i64 weights:T? -> dscores:T
    Names     reduction: none, mean, sum
    """
    return apply(401, b"SoftmaxCrossEntropyLossGrad", (dloss, log_prob, labels, weights), (("reduction", reduction), ("ignore_index", ignore_index)), device)[0]


def random_uniform(key: TensorLike, *, shape: Sequence[int], stream: int, low: float, high: float, dtype: DTypeLike, device: DeviceLike = None) -> Tensor:
    """y uniform in [low, high), a function of key, stream and index.

    Operands  key:u64 -> y:T
    """
    return apply(500, b"RandomUniform", (key,), (("stream", stream), ("low", low), ("high", high), ("dtype", dtype_of(dtype).short), ("shape", listed(shape))), device)[0]


def random_normal(key: TensorLike, *, shape: Sequence[int], stream: int, mean: float, deviation: float, dtype: DTypeLike, device: DeviceLike = None) -> Tensor:
    """y normal with a mean and a standard deviation, a function of key, stream and index.

    Operands  key:u64 -> y:T
    """
    return apply(501, b"RandomNormal", (key,), (("stream", stream), ("mean", mean), ("deviation", deviation), ("dtype", dtype_of(dtype).short), ("shape", listed(shape))), device)[0]


def random_bernoulli(key: TensorLike, *, shape: Sequence[int], stream: int, probability: float, dtype: DTypeLike, device: DeviceLike = None) -> Tensor:
    """y = 1 with a probability, else 0, a function of key, stream and index.

    Operands  key:u64 -> y:T
    """
    return apply(502, b"RandomBernoulli", (key,), (("stream", stream), ("probability", probability), ("dtype", dtype_of(dtype).short), ("shape", listed(shape))), device)[0]


def random_permutation(key: TensorLike, *, shape: Sequence[int], stream: int, device: DeviceLike = None) -> Tensor:
    """y = 0 .. n-1 in random order, a function of key and stream.

    Operands  key:u64 -> y:i64
    """
    return apply(503, b"RandomPermutation", (key,), (("stream", stream), ("shape", listed(shape))), device)[0]


def dropout(x: TensorLike, key: TensorLike, *, stream: int, probability: float, device: DeviceLike = None) -> Tensor:
    """y = x mask / (1 - p), mask 0 with probability p, else 1: a function of key, stream and index.

    Operands  x:T key:u64 -> y:T
    """
    return apply(510, b"Dropout", (x, key), (("stream", stream), ("probability", probability)), device)[0]


def sgd_step(lr: TensorLike, *groups: Sequence[TensorLike], momentum: float, weight_decay: float, nesterov: bool = False, device: DeviceLike = None) -> Tuple[Tensor, ...]:
    """g' = g + weight_decay w; velocity = momentum velocity + g'; w -= lr (nesterov ? g' + momentum velocity : velocity). With momentum 0
    groups are (w, g) and w -= lr g'.

    Operands  lr:f32|f64 (w:T g:T velocity:T?)* -> (w:T velocity:T?)*
    """
    return tuple(apply(600, b"SgdStep", (lr, *[each for group in groups for each in group],), (("momentum", momentum), ("weight_decay", weight_decay), ("nesterov", bool(nesterov))), device))


def adam_step(lr: TensorLike, step: TensorLike, *groups: Sequence[TensorLike], beta1: float, beta2: float, epsilon: float, weight_decay: float, device: DeviceLike = None) -> Tuple[Tensor, ...]:
    """m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; w -= lr (m / (1 - beta1^step) / (sqrt(v / (1 - beta2^step)) + epsilon) +
    weight_decay w). step counts from 1.

    Operands  lr:f32|f64 step:i64 (w:T g:T m:T v:T)* -> (w:T m:T v:T)*
    """
    return tuple(apply(601, b"AdamStep", (lr, step, *[each for group in groups for each in group],), (("beta1", beta1), ("beta2", beta2), ("epsilon", epsilon), ("weight_decay", weight_decay)), device))


def rmsprop_step(lr: TensorLike, *groups: Sequence[TensorLike], rho: float, epsilon: float, epsilon_outside: bool = False, device: DeviceLike = None) -> Tuple[Tensor, ...]:
    """v = rho v + (1 - rho) g^2; w -= lr g / sqrt(v + epsilon), or lr g / (sqrt(v) + epsilon) if epsilon_outside.

    Operands  lr:f32|f64 (w:T g:T v:T)* -> (w:T v:T)*
    """
    return tuple(apply(602, b"RmsPropStep", (lr, *[each for group in groups for each in group],), (("rho", rho), ("epsilon", epsilon), ("epsilon_outside", bool(epsilon_outside))), device))


def amsgrad_step(lr: TensorLike, step: TensorLike, *groups: Sequence[TensorLike], beta1: float, beta2: float, epsilon: float, weight_decay: float, device: DeviceLike = None) -> Tuple[Tensor, ...]:
    """As AdamStep with the largest v so far instead of v: peak = max(peak, v); w -= lr (m / (1 - beta1^step) / (sqrt(peak / (1 -
    beta2^step)) + epsilon) + weight_decay w).

    Operands  lr:f32|f64 step:i64 (w:T g:T m:T v:T peak:T)* -> (w:T m:T v:T peak:T)*
    """
    return tuple(apply(603, b"AmsGradStep", (lr, step, *[each for group in groups for each in group],), (("beta1", beta1), ("beta2", beta2), ("epsilon", epsilon), ("weight_decay", weight_decay)), device))


def adagrad_step(lr: TensorLike, *groups: Sequence[TensorLike], epsilon: float, weight_decay: float, device: DeviceLike = None) -> Tuple[Tensor, ...]:
    """h = g + weight_decay w; sum += h^2; w -= lr h / (sqrt(sum) + epsilon).

    Operands  lr:f32|f64 (w:T g:T sum:T)* -> (w:T sum:T)*
    """
    return tuple(apply(604, b"AdagradStep", (lr, *[each for group in groups for each in group],), (("epsilon", epsilon), ("weight_decay", weight_decay)), device))


def adadelta_step(lr: TensorLike, *groups: Sequence[TensorLike], rho: float, epsilon: float, weight_decay: float, device: DeviceLike = None) -> Tuple[Tensor, ...]:
    """h = g + weight_decay w; v = rho v + (1 - rho) h^2; d = h sqrt(delta + epsilon) / sqrt(v + epsilon); delta = rho delta + (1 - rho)
    d^2; w -= lr d.

    Operands  lr:f32|f64 (w:T g:T v:T delta:T)* -> (w:T v:T delta:T)*
    """
    return tuple(apply(605, b"AdadeltaStep", (lr, *[each for group in groups for each in group],), (("rho", rho), ("epsilon", epsilon), ("weight_decay", weight_decay)), device))
