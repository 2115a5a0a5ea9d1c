# SPDX-License-Identifier: Apache-2.0
"""Tensors: what they are made of, views, operators. NumPy is the oracle."""
import gc

import numpy
import pytest

import tenon


def values(shape, dtype="float32", seed=1):
    random = numpy.random.default_rng(seed)
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(dtype)
    return random.integers(-9, 9, shape).astype(dtype) if numpy.dtype(dtype).kind == "i" else random.uniform(-2, 2, shape).astype(dtype)


@pytest.mark.parametrize("data, dtype, shape", [
    (3, "int64", ()), (2.5, "float32", ()), (True, "bool", ()), ([1, 2], "int64", (2,)), ([[1, 2.5], [3, 4]], "float32", (2, 2)),
    ([[True], [False]], "bool", (2, 1)), ([], "float32", (0,)), ([[], []], "float32", (2, 0)), ((1, 2, 3), "int64", (3,)),
])
def test_numbers_and_lists_become_tensors(data, dtype, shape):
    made = tenon.Tensor(data)
    assert (made.dtype, made.shape) == (dtype, shape)
    assert made.tolist() == (list(data) if isinstance(data, tuple) else data)


def test_lists_take_a_dtype_and_wrong_ones_are_errors():
    assert tenon.Tensor([1, 2], "float16").tolist() == [1, 2]
    assert tenon.Tensor([1.5, 2], tenon.bfloat16).to("float32").tolist() == [1.5, 2]
    assert tenon.Tensor([[1.5, numpy.float32(2)]], float).tolist() == [[1.5, 2]]
    for wrong, text in (([[1], [2, 3]], "lists of one length in dimension 1"), ([1, "a"], "expected numbers, got str"), ("ab", "got the text 'ab'"),
                        (object(), "with DLPack or the buffer protocol, got object")):
        with pytest.raises(tenon.InvalidArgumentError, match=text):
            tenon.Tensor(wrong)
    with pytest.raises(ValueError, match="numbers that int8 holds"):
        tenon.Tensor([300], "int8")
    with pytest.raises(ValueError, match="dtype: expected one of .*float32.*, got 'float33'"):
        tenon.Tensor([1], "float33")


def test_dtypes_have_the_names_of_other_packages():
    assert tenon.float32 == "float32" == tenon.float32 and tenon.float32 == "f32" and tenon.float32 == numpy.dtype("float32")
    assert tenon.float32 == numpy.float32 and tenon.bool_ == bool and tenon.float32 != tenon.float64 and tenon.int64 == int
    assert repr(tenon.bfloat16) == "tenon.bfloat16" and str(tenon.bool_) == "bool" and tenon.float16.itemsize == 2
    assert len({tenon.float32, tenon.float32, tenon.float64}) == 2


@pytest.mark.parametrize("index", [
    0, -1, (1, 2), slice(None), slice(1, None), slice(None, None, -1), slice(None, None, 2), (slice(None), 1), (Ellipsis, 0), (0, Ellipsis),
    (slice(None), None, slice(0, 2)), (slice(2, 0, -1), Ellipsis, slice(None, None, -2)), slice(3, 1), slice(9, 20), (None, Ellipsis, None),
    [2, 0, 2], (slice(None), [1, 1]), numpy.array([[0, 1], [2, 0]]), (0, [1, 0]),
], ids=str)
def test_indexing_is_that_of_numpy(index):
    array = values((3, 4, 5))
    made = tenon.asarray(array)[index]
    assert numpy.array_equal(made.numpy(), array[index])
    assert made.shape == array[index].shape


def test_arrays_and_masks_as_indices_are_those_of_numpy():
    array = values((2, 3, 4))
    mask, rows, pairs = array > 0, numpy.array([True, False]), numpy.array([[True, False, True], [False, True, True]])
    for index in (mask, rows, pairs, tenon.asarray(pairs), (slice(None), pairs[0]), (rows, 0), (rows, slice(None), 1), (0, slice(None), [1, 2]), ([0, 1], [1, 2]),
                  ([0, 1], slice(None), [1, 2]), (Ellipsis, [0, 3]), (pairs, [1]), (None, rows), (numpy.array([[0, 1], [1, 0]]), [[1], [-2]]), (-1, [-1, -2]), array > 99):
        expected = array[index if not isinstance(index, tenon.Tensor) else index.numpy()]
        made = tenon.asarray(array)[index]
        assert made.shape == expected.shape and numpy.array_equal(made.numpy(), expected), index
    for index, value in ((mask, 0), (rows, 5), (pairs, numpy.arange(4)), (([0, 1], [1, 2]), 7), ((slice(None), [0, 0]), numpy.ones(4)), ([1, 1], 3),
                         (([0, 1], slice(None), [1, 2]), [[1, 2, 3], [4, 5, 6]]), (mask, numpy.arange(mask.sum()))):
        expected, made = array.copy(), tenon.asarray(array.copy())
        expected[index] = value
        made[index] = value
        assert numpy.array_equal(made.numpy(), expected), index
    assert tenon.asarray(mask).nonzero().tolist() == numpy.argwhere(mask).tolist()
    assert numpy.array_equal(tenon.asarray(array, device="reference:0")[mask].numpy(), array[mask])


def test_views_share_memory_and_assignment_writes_to_it():
    array = values((3, 4))
    made = tenon.asarray(array)
    assert made[1].address == array[1].ctypes.data
    assert made.T.strides == (1, 4) and made.T.address == made.address
    made[1, 1:] = [5, 6, 7]
    made[:, 0] = 9
    made[2][3] = tenon.Tensor(1)
    assert array[1].tolist() == [9, 5, 6, 7] and array[:, 0].tolist() == [9, 9, 9] and array[2, 3] == 1
    copy = made.clone()
    copy.fill_(0)
    assert array[2, 3] == 1
    assert made[...].address == made.address and made[...] is not made


def test_wrong_indices_are_errors():
    made = tenon.zeros((2, 3))
    with pytest.raises(IndexError, match="index 2 is out of range for axis 0"):
        made[2]
    with pytest.raises(IndexError, match="at most 2 indices"):
        made[0, 0, 0]
    with pytest.raises(IndexError, match=r"expected a mask of the shape \(2,\) of the axes that it selects from, got \(3,\)"):
        made[numpy.array([True, False, True])]
    with pytest.raises(tenon.UnsupportedError, match="got a single bool"):
        made[True]
    with pytest.raises(IndexError, match="integers, slices or a mask of bool, got float32"):
        made[[0.5]]
    with pytest.raises(tenon.InvalidArgumentError, match="index 2 at position 0 is out of range"):
        made[[2]]
    with pytest.raises(tenon.InvalidArgumentError, match="out of range"):
        made[[0, 5], [0, 1]]
    with pytest.raises(tenon.InvalidArgumentError, match="."):
        made[0] = [1, 2]
    assert [each.tolist() for each in made] == [[0, 0, 0]] * 2


def test_shapes_are_changed_by_views():
    array = values((2, 3, 4))
    made = tenon.asarray(array)
    assert numpy.array_equal(made.reshape(6, -1).numpy(), array.reshape(6, -1))
    assert numpy.array_equal(made.permute(2, 0, 1).numpy(), array.transpose(2, 0, 1))
    assert numpy.array_equal(made.transpose(0, 1).numpy(), array.swapaxes(0, 1))
    assert numpy.array_equal(made.T.reshape(-1).numpy(), array.T.reshape(-1))
    assert made.unsqueeze(-1).shape == (2, 3, 4, 1) and made.unsqueeze(0).squeeze().shape == (2, 3, 4)
    assert made[:, :1].squeeze(1).shape == (2, 4) and made.flatten().shape == (24,)
    assert tenon.Tensor([[1.0], [2.0]]).expand(2, 3).tolist() == [[1, 1, 1], [2, 2, 2]]
    with pytest.raises(ValueError, match="sizes whose product is 24"):
        made.reshape(5, -1)
    with pytest.raises(ValueError, match="an axis of size 1"):
        made.squeeze(0)


BINARY = ["a + b", "a - b", "a * b", "a / b", "a < b", "a <= b", "a > b", "a >= b", "a == b", "a != b"]


@pytest.mark.parametrize("expression", [*BINARY, "a + 2", "2 - a", "a * 0.5", "1 / (a + 3)", "a ** 2", "-a", "abs(a)", "a @ b.T", "2 ** a", "a // b",
                                        "a % b", "a % 0.75"])
def test_operators_are_those_of_numpy(expression):
    a, b = values((3, 4)), values((3, 4), seed=2)
    b[0, 0] = a[0, 0]
    expected = eval(expression, {"a": a, "b": b})
    got = eval(expression, {"a": tenon.asarray(a), "b": tenon.asarray(b)})
    assert got.dtype == expected.dtype
    numpy.testing.assert_allclose(got.numpy(), expected, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("expression", ["a + b", "a - 3", "a * b", "a // b", "a % b", "a // 2", "a == b", "a < 2"])
def test_operators_on_integers_are_those_of_numpy(expression):
    a, b = values((5, 6), "int64"), values((5, 6), "int64", seed=2)
    b[b == 0] = 4
    expected = eval(expression, {"a": a, "b": b})
    got = eval(expression, {"a": tenon.asarray(a), "b": tenon.asarray(b)})
    assert got.dtype == expected.dtype and numpy.array_equal(got.numpy(), expected)


def test_mixed_operands_are_promoted_as_in_pytorch():
    i, f = tenon.Tensor([1, 2]), tenon.Tensor([0.5, 1.5])
    assert (i + f).dtype == "float32" and (i * 0.5).tolist() == [0.5, 1] and (i / 2).tolist() == [0.5, 1]
    assert (f.to("float16") + f).dtype == "float32" and (f.to("float16") + f.to("bfloat16")).dtype == "float32"
    assert (tenon.Tensor([1], "int8") + tenon.Tensor([2], "uint8")).dtype == "int32"
    assert (f + numpy.array([1, 1], "float32")).tolist() == [1.5, 2.5]
    assert isinstance(numpy.array([1, 1], "float32") + f, tenon.Tensor)
    assert (tenon.Tensor([True, False]) & tenon.Tensor([True, True])).tolist() == [True, False]
    assert (~tenon.Tensor([True, False])).tolist() == [False, True]
    assert (f == "text") is False and (f != None) is True  # noqa: E711


def test_reductions_are_those_of_numpy():
    array = values((3, 4, 2))
    made = tenon.asarray(array)
    for name in ("sum", "mean", "max", "min", "prod"):
        for axis in (None, 1, (0, -1)):
            expected = getattr(array, name)(axis=axis)
            numpy.testing.assert_allclose(getattr(made, name)(axis).numpy(), expected, rtol=1e-5)
        assert getattr(made, name)(1, keepdims=True).shape == (3, 1, 2)
    assert made.argmax(1).tolist() == array.argmax(1).tolist() and made.argmin().item() == array.argmin()
    assert (made > -5).all() and not (made > 5).any() and (made > 0).any(0).tolist() == (array > 0).any(0).tolist()
    assert tenon.Tensor([1, 2]).mean().item() == 1.5


def test_op_functions_check_their_operands():
    x = tenon.asarray(values((2, 3)))
    assert tenon.ops.softmax(x).sum(-1).tolist() == pytest.approx([1, 1])
    assert tenon.ops.softmax([[1.0, 1.0]]).tolist() == [[0.5, 0.5]]
    parts = tenon.ops.split(x, axis=1, sizes=[1, 2])
    assert [part.shape for part in parts] == [(2, 1), (2, 2)]
    assert tenon.equal(tenon.ops.concat(*parts, axis=1), x)
    assert tenon.ops.clip(x, low=0).numpy().min() >= 0
    best, where = tenon.ops.top_k(x, k=1)
    assert numpy.array_equal(where.numpy()[:, 0], x.numpy().argmax(1)) and best.shape == (2, 1)
    assert tenon.ops.pad(x, shape=(2, 4), value=7, before=(0, 1))[0, 0].item() == 7
    assert tenon.ops.apply_op("LeakyRelu", x, alpha=0.5)[0].shape == (2, 3)
    with pytest.raises(tenon.InvalidArgumentError, match="no_such|unknown|NoSuch"):
        tenon.ops.apply_op("NoSuch", x)
    with pytest.raises(tenon.InvalidArgumentError, match="(?s)matmul.*f32\\(2,3\\)"):
        tenon.ops.matmul(x, x)
    with pytest.raises(TypeError):
        tenon.ops.leaky_relu(x)


def test_ops_take_any_number_of_operands():
    rows = [tenon.full((2,), i) for i in range(100)]
    expected = numpy.repeat(numpy.arange(100), 2).reshape(100, 2)
    assert numpy.array_equal(tenon.stack(rows).numpy(), expected) and numpy.array_equal(tenon.ops.concat(*rows, axis=0).numpy(), expected.ravel())


def test_ops_run_where_their_operands_are_or_where_they_are_told():
    x = tenon.ones(3, device="reference:0")
    assert x.device.name == "reference:0" and (x + 1).device.name == "reference:0"
    assert tenon.ops.relu([1.0], device="reference").device.name == "reference:0"
    assert tenon.ops.relu([1.0]).device.name == tenon.device().name
    assert tenon.zeros(2).device is None
    assert x.to("cpu").to("float16").dtype == "float16" and x.to(tenon.device("reference:0")).device.name == "reference:0"
    assert x.cpu().numpy().tolist() == [1, 1, 1]
    with pytest.raises(tenon.DeviceNotFoundError, match="available"):
        x.to("nowhere:0")
    with pytest.raises(TypeError, match="device: expected"):
        tenon.zeros(2, device=3)


def test_a_tensor_is_shown():
    assert repr(tenon.Tensor([[1.0, 2.0], [3.0, 4.0]])) == "Tensor([[1, 2],\n        [3, 4]], dtype=float32)"
    assert "shape=(10,)" in repr(tenon.zeros(10)) and "..." in repr(tenon.zeros(10))
    assert "device='reference:0'" in repr(tenon.zeros(1, device="reference:0"))
    assert "<pre>" in tenon.zeros(1)._repr_html_()


def test_a_closed_tensor_is_an_error_and_its_views_stay():
    made = tenon.ones((2, 2))
    view = made[0]
    made.close()
    assert repr(made) == "<tenon.Tensor, closed>"
    for use in (lambda: made.shape, lambda: made + 1, lambda: made.numpy(), lambda: made[0]):
        with pytest.raises(ValueError, match="Tensor: expected an open object"):
            use()
    assert view.tolist() == [1, 1]


def test_a_context_may_be_closed_before_its_tensors():
    with tenon.Context() as context:
        x = tenon.ones(2, device=context.device("reference:0"))
        y = tenon.ops.relu(x)
    gc.collect()
    assert y.tolist() == [1, 1] and x.numpy().tolist() == [1, 1]


def test_conversions_to_python():
    assert float(tenon.Tensor(2.5)) == 2.5 and int(tenon.Tensor([3])) == 3 and [1, 2][tenon.Tensor(1)] == 2 and len(tenon.zeros((3, 1))) == 3
    with pytest.raises(ValueError, match="one element"):
        bool(tenon.zeros(2))
    with pytest.raises(tenon.InvalidArgumentError, match="item: expected a tensor of one element"):
        tenon.zeros(2).item()
    with pytest.raises(TypeError, match="cannot be pickled"):
        __import__("pickle").dumps(tenon.zeros(2))
    assert tenon.arange(2, 8, 3).tolist() == [2, 5] and tenon.stack([[1.0], [2.0]]).shape == (2, 1)
    assert tenon.full((2,), 7).dtype == "int64"


def test_integers_beyond_doubles_keep_all_digits():
    large = 2**53 + 1
    assert tenon.asarray(large).item() == large
    assert tenon.full((2, 2), large).tolist() == [[large, large], [large, large]]
    assert tenon.full((), 2**63 - 1, "int64").item() == 2**63 - 1
    assert tenon.full((3,), 2**64 - 1, "uint64").tolist() == [2**64 - 1] * 3
    assert tenon.full((0,), large).shape == (0,)
    x = tenon.tensor([2**53, large])
    assert (x == large).tolist() == [False, True]
    assert (x - large).tolist() == [-1, 0]
    assert tenon.ops.maximum(x, large).tolist() == [large, large]
    x[0] = large
    assert x.tolist() == [large, large]
    assert x.fill_(-large).tolist() == [-large, -large]
    with pytest.raises(tenon.InvalidArgumentError, match="int64"):
        tenon.full((), 2**63, "int64")


def test_integers_beyond_doubles_are_constants_of_traced_functions():
    large = 2**53 + 1
    f = tenon.function(lambda x: x + large)
    assert f(tenon.tensor([1, 2])).tolist() == [large + 1, large + 2]
