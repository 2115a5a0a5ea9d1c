# SPDX-License-Identifier: Apache-2.0
"""tenon.nn: layers against their formulas in NumPy, training, state."""
import math

import numpy
import pytest

import tenon
from tenon import nn
from tenon.nn import functional


def values(*shape, seed=1):
    return numpy.random.default_rng(seed).uniform(-2, 2, shape).astype("float32")


def erf(x):
    return numpy.vectorize(math.erf)(x)


def windows(x, size, step):
    return numpy.lib.stride_tricks.sliding_window_view(x, (size, size), (2, 3))[:, :, ::step, ::step]


FORMULAS = [
    (lambda: nn.ReLU(), lambda x: numpy.maximum(x, 0)), (lambda: nn.LeakyReLU(0.1), lambda x: numpy.where(x > 0, x, 0.1 * x)), (lambda: nn.ELU(), lambda x: numpy.where(x > 0, x, numpy.expm1(x))),
    (lambda: nn.GELU(), lambda x: x * (1 + erf(x / 2 ** 0.5)) / 2), (lambda: nn.SiLU(), lambda x: x / (1 + numpy.exp(-x))), (lambda: nn.Sigmoid(), lambda x: 1 / (1 + numpy.exp(-x))),
    (lambda: nn.Tanh(), numpy.tanh), (lambda: nn.Softplus(), lambda x: numpy.log1p(numpy.exp(x))), (lambda: nn.Mish(), lambda x: x * numpy.tanh(numpy.log1p(numpy.exp(x)))),
    (lambda: nn.Softmax(1), lambda x: numpy.exp(x) / numpy.exp(x).sum(1, keepdims=True)), (lambda: nn.Identity(), lambda x: x), (lambda: nn.Flatten(), lambda x: x.reshape(2, -1)),
    (lambda: nn.MaxPool2d(2), lambda x: windows(x, 2, 2).max((4, 5))), (lambda: nn.AvgPool2d(3, stride=1), lambda x: windows(x, 3, 1).mean((4, 5))),
    (lambda: nn.LayerNorm((4, 6)), lambda x: (x - x.mean((2, 3), keepdims=True)) / numpy.sqrt(x.var((2, 3), keepdims=True) + 1e-5)),
    (lambda: nn.RMSNorm(6), lambda x: x / numpy.sqrt((x * x).mean(3, keepdims=True) + 1e-6)),
    (lambda: nn.BatchNorm2d(3), lambda x: (x - x.mean((0, 2, 3), keepdims=True)) / numpy.sqrt(x.var((0, 2, 3), keepdims=True) + 1e-5)),
    (lambda: nn.Dropout(0.5).eval(), lambda x: x), (lambda: nn.Sequential(nn.Tanh(), tenon.ops.abs), lambda x: abs(numpy.tanh(x))),
]


def test_layers_without_weights_are_their_formulas():
    x = values(2, 3, 4, 6)
    for make, formula in FORMULAS:
        layer = make()
        numpy.testing.assert_allclose(layer(tenon.asarray(x)).numpy(), formula(x), rtol=2e-5, atol=2e-6, err_msg=repr(layer))


def test_layers_with_weights_are_their_formulas():
    x = values(5, 4)
    layer = nn.Linear(4, 3)
    assert layer.weight.shape == (3, 4) and abs(layer.weight.numpy()).max() <= 0.5 and len(set(layer.weight.numpy().ravel())) == 12
    expected = x @ layer.weight.numpy().T + layer.bias.numpy()
    numpy.testing.assert_allclose(layer(x).numpy(), expected, rtol=1e-5, atol=1e-6)
    numpy.testing.assert_allclose(layer(x.reshape(1, 5, 4)).numpy()[0], expected, rtol=1e-5, atol=1e-6)
    assert nn.Linear(4, 3, bias=False)(x).shape == (5, 3)
    with pytest.raises(ValueError, match=r"linear: expected x \(..., 4\)"):
        layer(values(5, 3))
    image = values(2, 4, 5, 5)
    convolution = nn.Conv2d(4, 6, 3, padding=1, groups=2)
    padded = numpy.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)))
    kernel, parts = convolution.weight.numpy(), windows(padded, 3, 1)
    expected = numpy.concatenate([numpy.einsum("nchwij,ocij->nohw", parts[:, 2 * g:2 * g + 2], kernel[3 * g:3 * g + 3]) for g in range(2)], 1)
    numpy.testing.assert_allclose(convolution(image).numpy(), expected + convolution.bias.numpy()[:, None, None], rtol=1e-4, atol=1e-5)
    assert nn.Conv1d(4, 2, 3, stride=2)(values(2, 4, 9)).shape == (2, 2, 4)
    embedding = nn.Embedding(7, 3)
    assert numpy.array_equal(embedding(tenon.Tensor([[1, 6]])).numpy(), embedding.weight.numpy()[[[1, 6]]])
    with pytest.raises(ValueError, match="groups divide"):
        nn.Conv2d(3, 4, 3, groups=2)
    with pytest.raises(ValueError, match="kernel_size: expected a number or 2 numbers"):
        nn.Conv2d(3, 4, (1, 2, 3))


def test_attention_is_its_formula():
    layer = nn.MultiheadAttention(6, 2)
    x, y = values(2, 3, 6), values(2, 5, 6, seed=2)
    w, b = layer.in_proj_weight.numpy(), layer.in_proj_bias.numpy()
    q, k, v = ((t @ w[i * 6:i * 6 + 6].T + b[i * 6:i * 6 + 6]).reshape(2, -1, 2, 3).transpose(0, 2, 1, 3) for i, t in enumerate((x, y, y)))
    scores = q @ k.transpose(0, 1, 3, 2) / 3 ** 0.5
    p = numpy.exp(scores) / numpy.exp(scores).sum(-1, keepdims=True)
    expected = (p @ v).transpose(0, 2, 1, 3).reshape(2, 3, 6) @ layer.out_proj.weight.numpy().T
    numpy.testing.assert_allclose(layer(tenon.asarray(x), tenon.asarray(y)).numpy(), expected, rtol=1e-4, atol=1e-5)
    causal = layer(tenon.asarray(x), causal=True)
    numpy.testing.assert_allclose(causal.numpy()[:, :1], layer(tenon.asarray(x[:, :1])).numpy(), rtol=1e-4, atol=1e-5)


def test_losses_are_their_formulas():
    scores, labels = values(4, 5), numpy.array([0, 4, 2, 2])
    logs = scores - numpy.log(numpy.exp(scores).sum(1, keepdims=True))
    each = -logs[range(4), labels]
    assert functional.cross_entropy(scores, labels).item() == pytest.approx(each.mean(), rel=1e-5)
    assert functional.cross_entropy(scores, labels.astype("uint8"), reduction="sum").item() == pytest.approx(each.sum(), rel=1e-5)
    assert functional.cross_entropy(scores, labels, ignore_index=2).item() == pytest.approx(each[:2].mean(), rel=1e-5)
    a, b = values(3, 2), values(3, 2, seed=2)
    assert functional.mse_loss(a, b).item() == pytest.approx(((a - b) ** 2).mean(), rel=1e-5)
    assert functional.l1_loss(a, b, reduction="none").shape == (3, 2)
    t = (b > 0).astype("float32")
    s = 1 / (1 + numpy.exp(-a))
    assert functional.binary_cross_entropy_with_logits(a, t).item() == pytest.approx(-(t * numpy.log(s) + (1 - t) * numpy.log(1 - s)).mean(), rel=1e-5)
    for wrong, text in ((lambda: functional.mse_loss(a, b[0]), r"mse_loss: expected a target of the shape \(3, 2\)"),
                        (lambda: functional.cross_entropy(scores, scores), "expected integer labels"), (lambda: functional.mse_loss(a, b, reduction="max"), "reduction")):
        with pytest.raises(tenon.InvalidArgumentError, match=text):
            wrong()


class Network(nn.Module):
    def __init__(self):
        self.blocks = [nn.Linear(4, 8), nn.BatchNorm1d(8)]
        self.heads = {"a": nn.Linear(8, 2)}
        self.scale = nn.Parameter(tenon.ones(2))
        self.shared = self.blocks[0]

    def forward(self, x):
        for block in self.blocks:
            x = tenon.ops.tanh(block(x))
        return self.heads["a"](x) * self.scale


def test_a_module_knows_what_belongs_to_it():
    model = Network()
    names = [name for name, _ in model.named_parameters()]
    assert names == ["scale", "blocks.0.weight", "blocks.0.bias", "blocks.1.weight", "blocks.1.bias", "heads.a.weight", "heads.a.bias"]
    assert [name for name, _ in model.named_buffers()] == [f"blocks.1.{each}" for each in ("running_mean", "running_var", "num_batches_tracked")]
    assert len(list(model.modules())) == 4 and sum(each.size for each in model.parameters()) == 76
    model.blocks[0].freeze()
    assert len(list(model.named_parameters(trainable=True))) == 5
    assert sorted(tenon.grad(lambda m, x: m(x).sum())(model, values(3, 4))) == sorted(set(names) - {"blocks.0.weight", "blocks.0.bias"})
    assert not model.eval().blocks[1].training and model.train().training
    assert repr(model).startswith("Network(\n  (blocks.0): Linear(4, 8)\n  (blocks.1): BatchNorm1d(8")
    with pytest.raises(AttributeError, match="Network has no attribute 'none'"):
        model.none
    with pytest.raises(AttributeError, match="train.. or eval"):
        model.training = False
    with pytest.raises(ValueError, match=r"scale: expected the shape \(2,\) that it has, got \(3,\)"):
        model.scale = tenon.ones(3)
    with pytest.raises(ValueError, match="a module with parameters that are not frozen"):
        tenon.grad(lambda m, x: m(x).sum())(model.freeze(), values(3, 4))


def test_state_is_saved_and_loaded(tmp_path):
    model, other = Network(), Network()
    model(values(6, 4))
    for name in ("w.safetensors", "w.npz"):
        model.save_weights(tmp_path / name)
        assert other.load_weights(tmp_path / name) == {"missing": [], "unexpected": []}
        assert all(tenon.equal(value, other.state_dict()[key]) for key, value in model.state_dict().items())
    before = model.state_dict()
    model.scale = [3.0, 4.0]
    assert before["scale"].tolist() == [1, 1] and model.scale.tolist() == [3, 4] and isinstance(model.scale, nn.Parameter)
    model.load_state_dict({key: value.numpy() for key, value in before.items()})
    with pytest.raises(ValueError, match="expected the names .*got none for .'scale'."):
        model.load_state_dict({key: value for key, value in before.items() if key != "scale"})
    with pytest.raises(ValueError, match=r"expected \(2,\) for scale, got \(1,\)"):
        model.load_state_dict({**before, "scale": [1.0]})
    assert model.load_state_dict({"scale": [5.0, 5.0], "more": 1}, strict=False)["unexpected"] == ["more"] and model.scale.tolist() == [5, 5]
    array = model.scale.numpy()
    model.scale = [6.0, 7.0]
    assert array.tolist() == [6, 7]
    predict = tenon.function(lambda x: model.eval()(x))
    assert predict(values(2, 4)).dtype == "float32"
    assert model.to("float64").scale.dtype == "float64" and model.blocks[1].num_batches_tracked.dtype == "int64"
    assert array.tolist() == [6, 7] and predict(values(2, 4).astype("float64")).dtype == "float64" and predict.program_count == 2


def test_modes_and_set_parameters_reach_traced_functions():
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    predict = tenon.function(lambda x: model(x))
    x = tenon.asarray(values(3, 4))
    a, b = predict(x), predict(x)
    assert not tenon.equal(a, b) and (a == 0).any().item()
    model.eval()
    assert tenon.equal(predict(x), predict(x)) and predict.program_count == 2
    model.to(device="reference:0")
    assert predict(x).device.name == "reference:0" and predict(x.to("openblas:0")).device.name == "openblas:0"
    model.to(device="openblas:0")
    predict.clear()
    predict(x)
    model.train()
    predict(x)
    assert predict.program_count == 2 and not tenon.equal(predict(x), predict(x)) and predict.program_count == 2
    model.eval()
    model[0].weight = tenon.zeros((4, 4))
    assert tenon.equal(predict(x), model[0].bias.expand(3, 4).contiguous())
    frozen = tenon.function(lambda x: nn.BatchNorm1d(4)(x), freeze=True)
    with pytest.raises(tenon.TraceError):
        frozen(x)
    norm = nn.BatchNorm1d(4)
    with pytest.raises(tenon.TraceError, match="freeze=True cannot change"):
        tenon.function(lambda x: norm(x), freeze=True)(x)
    with pytest.raises(tenon.TraceError, match="register_buffer"):
        tenon.function(lambda x: setattr(model, "last", x))(x)


def test_batch_norm_records_what_it_saw_also_in_a_traced_function():
    x = values(8, 3)
    layers = [nn.BatchNorm1d(3) for _ in range(2)]
    step = tenon.function(lambda x: layers[1](x))
    for _ in range(2):
        expected, got = layers[0](tenon.asarray(x)), step(x)
    numpy.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)
    for layer in layers:
        numpy.testing.assert_allclose(layer.running_mean.numpy(), 0.19 * x.mean(0), rtol=1e-5)
        numpy.testing.assert_allclose(layer.running_var.numpy(), 0.81 + 0.19 * x.var(0, ddof=1), rtol=1e-5)
        assert layer.num_batches_tracked.item() == 2


def adam_by_hand(w, g, steps, rate=0.1):
    m = v = numpy.zeros_like(w)
    for t in range(1, steps + 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        w = w - rate * (m / (1 - 0.9 ** t)) / (numpy.sqrt(v / (1 - 0.999 ** t)) + 1e-8)
    return w


def test_optimizers_take_their_steps():
    w, g = values(3), values(3, seed=2)
    adam = nn.Optimizer(tenon.optimizers.Adam(learning_rate=0.1))
    state, now = adam.init({"w": w}), {"w": tenon.asarray(w)}
    for _ in range(3):
        now, state = adam.apply_gradients({"w": g}, now, state)
    numpy.testing.assert_allclose(now["w"].numpy(), adam_by_hand(w, g, 3), rtol=1e-4)
    assert state["step"].item() == 3
    sgd = nn.Optimizer("sgd", learning_rate=0.5)
    assert sgd.apply_gradients([g], [w], sgd.init([w]))[0][0].tolist() == pytest.approx((w - 0.5 * g).tolist(), rel=1e-6)
    heavy = nn.Optimizer({"name": "sgd", "learning_rate": 1, "momentum": 0.5, "weight_decay": 0.1, "clip_global_norm": 1e-3})
    clipped = g * 1e-3 / numpy.linalg.norm(g)
    numpy.testing.assert_allclose(heavy.apply_gradients(g, w, heavy.init(w))[0].numpy(), w - clipped - 0.1 * w, rtol=1e-4)
    for name in ("adamw", "amsgrad", "rmsprop", "adagrad", "adadelta"):
        optimizer = nn.Optimizer({"name": name, "learning_rate": 0.1, "weight_decay": 0.01, "clip_value": 0.5, "clip_norm": 1.0})
        assert optimizer.apply_gradients(g, w, optimizer.init(w))[0].shape == (3,) and name in repr(optimizer)
    for wrong, text in (("adem", "expected one of adadelta"), ({"name": "sgd", "learnin_rate": 1}, "expected the keys"), ("adam", "expected a learning_rate above 0"),
                        ({"name": "radam", "learning_rate": 1}, "Model.compile has them"), (tenon.optimizers.SGD(learning_rate=1, preset="torch"), "preset"),
                        (tenon.optimizers.SGD(learning_rate=tenon.schedules.Step(initial=1)), "a schedule")):
        with pytest.raises(tenon.Error, match=text):
            nn.Optimizer(wrong)
    with pytest.raises(ValueError, match="for the structure of the parameters"):
        sgd.apply_gradients({"a": g}, [w], sgd.init([w]))
    with pytest.raises(ValueError, match="expected gradients by the names"):
        sgd.update(nn.Linear(2, 2), {"no": g})


def test_a_model_learns_in_one_program_a_step_and_by_hand_the_same():
    digits = tenon.datasets.digits(train_count=300, test_count=100)
    x, y = (each.numpy() for each in digits.train.numpy())
    results = []
    for traced in (True, False):
        tenon.random.seed(1)
        model = nn.Sequential(nn.Flatten(), nn.Linear(784, 32), nn.ReLU(), nn.Linear(32, 10))
        optimizer = nn.Optimizer("adam", learning_rate=0.01)

        def loss(model, x, y):
            return functional.cross_entropy(model(x), y)

        gradient = tenon.value_and_grad(loss)

        def step(x, y):
            value, gradients = gradient(model, x, y)
            optimizer.update(model, gradients)
            return value

        run = tenon.function(step) if traced else step
        losses = [run(x[i:i + 50], y[i:i + 50]).item() for _ in range(4) for i in range(0, 300, 50)]
        results.append(losses)
        optimizer.learning_rate = 0.001
        run(x[:50], y[:50])
        assert optimizer.state["step"].item() == 25 and round(optimizer.learning_rate, 6) == 0.001
    numpy.testing.assert_allclose(results[0], results[1], rtol=1e-3)
    again = nn.Optimizer("adam", learning_rate=0.001)
    again.load_state_dict(optimizer.state_dict())
    assert tenon.equal(again.state["1.bias"]["v"], optimizer.state["1.bias"]["v"]) and again.state["step"].item() == 25
    with pytest.raises(ValueError, match="expected the names 'step'"):
        again.load_state_dict({"1.bias/velocity": 0.0})
    xt, yt = digits.test.numpy()
    assert (model(xt).argmax(1) == yt).to("float32").mean().item() > 0.5


def test_a_loaded_state_reaches_a_traced_step():
    model = nn.Linear(2, 1)
    optimizer = nn.Optimizer("adam", learning_rate=0.1)
    gradient = tenon.value_and_grad(lambda model, x: model(x).sum())

    @tenon.function
    def step(x):
        value, gradients = gradient(model, x)
        optimizer.update(model, gradients)
        return value

    x = values(3, 2)
    step(x), step(x)
    saved = optimizer.state_dict()
    step(x), step(x)
    optimizer.load_state_dict(saved)
    step(x)
    assert optimizer.state["step"].item() == 3
    model.load_state_dict({name: numpy.zeros(tensor.shape) for name, tensor in model.state_dict().items()})
    optimizer.load_state_dict({})
    step(x)
    assert optimizer.state["step"].item() == 1
    numpy.testing.assert_allclose(model.weight.numpy(), adam_by_hand(numpy.zeros((1, 2)), x.sum(0), 1), rtol=1e-4)


def test_another_parameter_buffer_or_module_reaches_traced_functions():
    class Scaled(nn.Module):
        def __init__(self):
            self.scale = nn.Parameter(tenon.ones(2))
            self.register_buffer("offset", tenon.zeros(2))
            self.inner = nn.Identity()
            self.layers = [nn.Identity()]
            self.bias = None

        def forward(self, x):
            made = self.layers[0](self.inner(x)) * self.scale + self.offset
            return made if self.bias is None else made + self.bias

    model = Scaled()
    f = tenon.function(lambda x: model(x))
    x = tenon.Tensor([1.0, 2.0])
    assert f(x).tolist() == [1, 2]
    model.scale = nn.Parameter([2.0, 2.0])
    assert f(x).tolist() == [2, 4]
    model.register_buffer("offset", [1.0, 1.0])
    assert f(x).tolist() == [3, 5] and [name for name, _ in model.named_buffers()] == ["offset"]
    model.inner = nn.ReLU()
    assert f(-x).tolist() == [1, 1]
    model.layers = [nn.LeakyReLU(1.0), nn.Identity()]
    model.inner = nn.Tanh()
    model.inner = model.inner
    assert f(x).tolist() == pytest.approx((2 * numpy.tanh([1, 2]) + 1).tolist())
    model.bias = nn.Parameter([10.0, 10.0])
    model.offset = None if model.offset is None else tenon.zeros(2)
    assert f(x).tolist() == pytest.approx((2 * numpy.tanh([1, 2]) + 10).tolist())
    count = f.program_count
    model.note = "text"
    model.bias = [0.0, 0.0]
    f(x)
    assert f.program_count == count
