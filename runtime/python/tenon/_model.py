# SPDX-License-Identifier: Apache-2.0
"""Models: layers or an ONNX file with their training, in Keras's words."""
import ctypes
import json
import os
import signal
import threading
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union, cast

from . import _api
from ._callback import Callback, follows_batches
from ._context import Context, default_context
from ._data import Arrays, Data, data_of, named_tensors
from ._errors import InvalidArgumentError
from ._explanation import Explanation
from ._history import History
from ._interrupt import Interruptible
from ._library import (Callbacks, Definition, Object, PathLike, check, definition_of, encoded, handles, integers, json_of, lib, object_of, path_of,
                       plain, sized, text_of, texts)
from ._onnx import OnnxModel
from ._progress import NotebookProgress, Progress, progress_of
from ._tensor import Tensor, TensorLike, wrap

_byref = ctypes.byref
_c_void_p = ctypes.c_void_p
Outputs = Union[Tensor, Tuple[Tensor, ...]]


class Model(Object):
    """Layers with their parameters and their training.

    definition  the form of a model.yaml as a dict or YAML: {"layers": ["flatten", {"dense": {"units": 10}}]}, or {"onnx": FILE}.

    Errors  InvalidArgumentError with line and key. Threads: one at a time.
    """

    __slots__ = ("context", "_compiled", "_ready_to_predict", "_output_count", "_inference", "_path", "_stop")

    def __init__(self, definition: Definition, *, context: Optional[Context] = None):
        super().__init__(object_of(lib.tenon_model_create, definition_of(definition)))
        self._begin(context, compiled=False)

    def _begin(self, context: Optional[Context], compiled: bool) -> None:
        self.context = context or default_context()
        self._compiled = compiled
        self._ready_to_predict = compiled
        self._output_count = 0
        self._inference: Optional[OnnxModel] = None  # of a model of an ONNX file that is not compiled
        self._path: Optional[str] = None
        self._stop = False

    @classmethod
    def _of(cls, handle: int, context: Optional[Context]) -> "Model":
        model = cls.__new__(cls)
        Object.__init__(model, handle)
        model._begin(context, compiled=True)
        return model

    # -------------------------------------------------------------- training

    def compile(self, optimizer: Any = "adam", loss: Any = None, metrics: Any = None, **keys: Any) -> "Model":
        """Sets optimizer, loss and metrics: names, definitions of tenon.optimizers, losses and metrics, or dicts.

        loss  also a dict of outputs and their losses: {"start": "mse", "end": {"name": "mae", "weight": 0.5}}.
        keys  trainable, frozen (globs of parameters) and parallel, as in a train.yaml.
        Errors  InvalidArgumentError with the key.
        """
        definition: Dict[str, Any] = {"optimizer": optimizer, **keys}
        if loss is not None:
            definition["losses" if isinstance(loss, Mapping) and "name" not in loss else "loss"] = loss
        if metrics is not None:
            definition["metrics"] = [metrics] if isinstance(metrics, (str, Mapping)) else list(metrics)
        check(lib.tenon_model_compile(self.handle, self.context.handle, definition_of(definition)))
        self._compiled, self._ready_to_predict, self._output_count = True, True, 0
        return self

    def build(self, *shape: Any) -> "Model":
        """Creates the parameters for samples of this shape, without the batch axis; fit, evaluate and predict do so themselves."""
        sizes = tuple(shape[0]) if len(shape) == 1 and not hasattr(shape[0], "__index__") else shape
        self._ready()
        check(lib.tenon_model_build(self.handle, len(sizes), integers(sizes)))
        return self

    def _ready(self) -> None:
        """For a prediction of a model that is not compiled."""
        if not self._ready_to_predict:
            check(lib.tenon_model_compile(self.handle, self.context.handle, None))
            self._ready_to_predict = True

    def _expect_compiled(self, function: str) -> None:
        self.handle  # an error if it is closed
        if not self._compiled:
            raise InvalidArgumentError(f"{function}: expected a model with a loss and an optimizer: call compile(optimizer=..., loss=...) first")

    def fit(self, x: Any, y: Optional[Arrays] = None, *, epochs: int = 1, batch_size: int = 32, validation_data: Any = None,
            validation_split: float = 0.0, callbacks: Sequence[Any] = (), verbose: int = 1, shuffle: bool = True,
            sample_weight: Optional[TensorLike] = None, steps_per_epoch: Optional[int] = None, initial_epoch: int = 0, **options: Any) -> History:
        """Trains for epochs - initial_epoch epochs, whatever the model has been trained before.

        x, y             arrays, or dicts of arrays by name, whose first axis counts samples; or x alone: tenon.Data, a data set of
                         tenon.datasets, or batches (x, y): a list, a PyTorch DataLoader, an iterator, or a function that returns one.
        validation_data  (x, y), (x, y, sample_weight), or what x may be; it is evaluated after each epoch.
        callbacks        tenon.callbacks.Callback objects, and names or definitions of the library's: EarlyStopping(patience=2).
        verbose          0: nothing, 1: a progress bar, 2: a line for each epoch.
        initial_epoch    from where epochs are counted: to resume a training of 10 epochs, fit(..., epochs=10, initial_epoch=model.info["epochs"]).
        options          accumulate, workers, prefetch, pinned, shuffle_buffer, as in a train.yaml.

        Ctrl-C ends the fit after its step without an exception: History.end is "interrupted". An exception of a callback or of the data is
        raised.
        Errors  InternalError: a loss that is not finite; InvalidArgumentError: data that does not fit the model.
        """
        self._expect_compiled("fit")
        own: List[Callback] = []
        of_library: List[Any] = []
        for each in callbacks:
            if isinstance(each, Callback):
                own.append(each)
            elif isinstance(each, (str, Mapping)):
                of_library.append(each)
            else:
                raise TypeError(f"callbacks: expected tenon.callbacks.Callback objects, names or definitions, got {type(each).__name__}")
        data = data_of(x, y, sample_weight, steps_per_epoch)
        validation = None
        if isinstance(validation_data, (tuple, list)) and 2 <= len(validation_data) <= 3 and not isinstance(validation_data[0], (tuple, Data)):
            validation = data_of(*validation_data)
        elif validation_data is not None:
            validation = data_of(validation_data)
        chosen = plain({"epochs": epochs, "initial_epoch": initial_epoch, "batch_size": batch_size, "shuffle": shuffle,
                        "validation_split": validation_split, "callbacks": of_library, **options})
        if steps_per_epoch is not None:
            chosen["steps_per_epoch"] = steps_per_epoch
        if data.info["size"] is None:
            for key in ("shuffle", "batch_size", "validation_split"):  # batches come as they are
                if key != "validation_split" or not validation_split:
                    chosen.pop(key)
        with _Watching(self, own, progress_of(verbose)) as watching:
            out = _c_void_p()
            error = lib.tenon_model_fit(self.handle, data.handle, None if validation is None else validation.handle, json.dumps(chosen).encode(),
                                        _byref(watching.struct), None, _byref(out))
        for each_data in (data, validation):
            if error is not None and each_data is not None and each_data.callbacks is not None and each_data.callbacks.raised is not None:
                each_data.callbacks.check(error)
        watching.callbacks.check(error)
        report = json.loads(ctypes.string_at(out.value or 0))
        lib.tenon_string_free(out)
        if watching.interrupted:
            report["end"] = "interrupted"
        return History(report, table_is_shown=isinstance(watching.progress, NotebookProgress))

    @property
    def stop_training(self) -> bool:
        """Set it to True in a callback to end the fit after its step."""
        return self._stop

    @stop_training.setter
    def stop_training(self, value: bool) -> None:
        self._stop = bool(value)
        if value:
            check(lib.tenon_model_stop(self.handle, b"a callback set stop_training"))

    def evaluate(self, x: Any, y: Optional[Arrays] = None, *, batch_size: int = 32, sample_weight: Optional[TensorLike] = None) -> Dict[str, float]:
        """{"loss": ..., "accuracy": ...} of arrays or of what fit() takes as x. Ctrl-C ends it by KeyboardInterrupt. Errors: a model without
        a loss."""
        self._expect_compiled("evaluate")
        data = data_of(x, y, sample_weight)
        out = _c_void_p()
        with Interruptible() as running:
            error = lib.tenon_model_evaluate(self.handle, data.handle, batch_size, running.run_options, _byref(out))
            (data.callbacks or Callbacks()).check(error)
            report = json.loads(ctypes.string_at(out.value or 0))
            lib.tenon_string_free(out)  # here, since the end of the block may raise KeyboardInterrupt
        return {name: float("nan") if value is None else float(value) for name, value in report.items()}

    def train_on_batch(self, x: Arrays, y: Arrays) -> Dict[str, float]:
        """One step on one batch; {"loss": ..., "accuracy": ...} of it before the step."""
        self._expect_compiled("train_on_batch")
        (x_names, inputs), (y_names, targets) = named_tensors(x), named_tensors(y)
        return dict(json_of(lib.tenon_model_train_batch, self.handle, texts(x_names) if x_names else None, handles([*inputs]), len(inputs),
                            texts(y_names) if y_names else None, handles([*targets]), len(targets), None, None))

    @property
    def learning_rate(self) -> Optional[float]:
        """The rate of the next steps; None if the model is not compiled."""
        value = self.info["learning_rate"]
        return float(value) if self._compiled and value is not None else None

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        check(lib.tenon_model_set_learning_rate(self.handle, value))

    # -------------------------------------------------------------- prediction

    def __call__(self, x: Arrays) -> Outputs:
        """The outputs for one batch x (n, sample...): a tensor, or a tuple of them."""
        if type(x) is Tensor and self._output_count and self._ready_to_predict:
            tensors: Tuple[Tensor, ...] = (x,)
            names: Any = None
        else:
            found, listed = named_tensors(x)
            tensors, names = tuple(listed), (texts(found) if found else None)
            if not self._compiled and self._path is not None:
                return self._inferred(found, listed)
        return self._predict(names, tensors, max(1, tensors[0].shape[0]) if tensors[0].ndim else 1, 0)

    def predict(self, x: Arrays, *, batch_size: int = 32, probabilities: bool = False) -> Outputs:
        """The outputs for x (n, sample...), in batches: tensors of the host, or a tuple of them.

        probabilities  True turns scores into probabilities as the loss does.

        Ctrl-C ends it by KeyboardInterrupt. Errors: probabilities of a model of an ONNX file that is not compiled.
        """
        found, tensors = named_tensors(x)
        if not self._compiled and self._path is not None:
            if probabilities:
                raise InvalidArgumentError("predict: expected probabilities=False for a model of an ONNX file that is not compiled, since it has no loss "
                                           "that says how scores become probabilities: call compile(loss=...) first, or tenon.ops.softmax(outputs)")
            with Interruptible() as running:
                return self._inferred(found, tensors, running.run_options)
        with Interruptible() as running:
            return self._predict(texts(found) if found else None, tuple(tensors), batch_size, _api.PREDICT_PROBABILITIES if probabilities else 0,
                                 running.run_options)

    def _predict(self, names: Any, tensors: Tuple[Tensor, ...], batch_size: int, flags: int, run_options: Any = None) -> Outputs:
        if not self._output_count:
            self._ready()
            outputs = self.info["outputs"]
            if not outputs:  # known once the model is built
                check(lib.tenon_model_build(self.handle, tensors[0].ndim - 1, integers(tensors[0].shape[1:])))
                outputs = self.info["outputs"]
            self._output_count = len(outputs)
        count = self._output_count
        inputs = (_c_void_p * len(tensors))(*[each.handle for each in tensors])
        made = (_c_void_p * count)()
        error = lib.tenon_model_predict(self.handle, names, inputs, len(tensors), batch_size, flags, run_options, made, count)
        if error is not None:
            check(error)
        return wrap(made[0], None) if count == 1 else tuple(wrap(made[i], None) for i in range(count))

    def _inferred(self, names: List[str], tensors: List[Tensor], run_options: Any = None) -> Outputs:
        if self._inference is None:
            self._inference = OnnxModel(self._path or "", context=self.context)
        outputs = self._inference.run(names or self._inference.input_names[:1], tensors, run_options=run_options)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def freeze(self, batch_size: int) -> Any:
        """A tenon.Program that predicts for batches of this size with the present parameters; it outlives the model."""
        from ._program import Program
        self._ready()
        return Program(object_of(lib.tenon_model_freeze, self.handle, batch_size))

    # -------------------------------------------------------------- what it is

    @property
    def info(self) -> Dict[str, Any]:
        """{"name", "built", "inputs", "outputs", "layers", "step", "epochs", "learning_rate", "run"}; None for what is not known yet."""
        return dict(json_of(lib.tenon_model_describe, self.handle))

    def summary(self, batch_size: int = 0) -> str:
        """The layers as a table, which is printed and returned; batch_size > 0: with the memory that it needs."""
        self._ready()
        text = text_of(lib.tenon_model_summary, self.handle, batch_size)
        print(text)
        return text

    def explain(self, batch_size: int = 32) -> Explanation:
        """The placement report: device, kernel and reason of each node of a training step, or, without a loss, of a prediction."""
        self._ready()
        return Explanation(json_of(lib.tenon_model_explain, self.handle, batch_size), by_layer=True)

    @property
    def weights(self) -> Dict[str, Tensor]:
        """The parameters by name, "<layer>/kernel", as copies on the host; set_weights() changes them."""
        parameters = object_of(lib.tenon_model_parameters, self.handle)
        try:
            names = [each["name"] for each in json_of(lib.tenon_parameters_describe, parameters) if each["is_set"]]
            return {name: wrap(object_of(lib.tenon_parameters_get, parameters, encoded(name)), None).clone() for name in names}
        finally:
            lib.tenon_release(parameters)

    def set_weights(self, weights: Mapping[str, TensorLike]) -> None:
        """Sets parameters by name. Errors: an unknown name; another dtype or shape."""
        parameters = object_of(lib.tenon_model_parameters, self.handle)
        try:
            for name, value in weights.items():
                tensor = named_tensors(value)[1][0]
                check(lib.tenon_parameters_set(parameters, encoded(name), tensor.handle))
        finally:
            lib.tenon_release(parameters)

    @property
    def yaml(self) -> str:
        """The definition as a model.yaml."""
        return text_of(lib.tenon_model_yaml, self.handle)

    def __repr__(self) -> str:
        if self.closed:
            return "<tenon.Model, closed>"
        info = self.info
        layers = f"{len(info['layers'])} layers" if info.get("layers") else "not built"
        return f"<tenon.Model {info['name'] or ''}: {layers}>".replace(" :", ":")

    def _repr_html_(self) -> str:
        from html import escape
        if self.closed or not self._compiled:
            return escape(repr(self))
        try:
            return f"<pre>{escape(text_of(lib.tenon_model_summary, self.handle, 0))}</pre>"
        except InvalidArgumentError:  # the shape of a sample is not known yet
            return escape(repr(self))

    # -------------------------------------------------------------- files

    def save(self, folder: PathLike) -> None:
        """Writes the model, its weights and the state of its training to a folder, which tenon.load reads."""
        check(lib.tenon_model_save(self.handle, path_of(folder)))

    def save_weights(self, path: PathLike) -> None:
        """Writes the weights to a .safetensors or .npz file."""
        check(lib.tenon_model_export_weights(self.handle, path_of(path), None, 0))

    def load_weights(self, path: PathLike, *, name_map: Optional[PathLike] = None, transpose: bool = False, partial: bool = False) -> Dict[str, Any]:
        """Sets weights to those of a .safetensors or .npz file, and returns {"matched", "missing", "left_over"}.

        name_map   a file of rules that pair names (docs/yaml.md).
        transpose  the file has dense kernels as (out, in), as PyTorch.
        partial    missing and left over names are no error.
        """
        flags = (_api.WEIGHTS_TRANSPOSE if transpose else 0) | (_api.WEIGHTS_PARTIAL if partial else 0)
        return dict(json_of(lib.tenon_model_import_weights, self.handle, path_of(path), None if name_map is None else path_of(name_map), flags))

    def export(self, path: PathLike, **options: Any) -> None:
        """Writes what predict() computes as an ONNX file.

        options  opset, batch (0: any), inputs, outputs (names in the file), graph_name, metadata.
        """
        self._ready()
        check(lib.tenon_model_export_onnx(self.handle, path_of(path), json.dumps(plain(options)).encode() if options else None))


class _Watching:
    """The callbacks of a fit as a TenonFitCallbacks."""

    def __init__(self, model: Model, own: List[Callback], progress: Optional[Progress]):
        self.model, self.own, self.progress = model, own, progress
        self.callbacks = Callbacks()
        self.interrupted = False
        self.previous: Any = None  # handler of SIGINT
        fields: Dict[str, Any] = dict(cast(Any, _api.TenonFitCallbacks._fields_))
        self.struct = sized(_api.TenonFitCallbacks)
        for name in ("train_begin", "epoch_begin", "batch_end", "epoch_end", "train_end"):
            setattr(self.struct, name, fields[name](self.callbacks.guard(self._interruptible(getattr(self, "_" + name)))))
        self.struct.late_batch_end = 0 if any(follows_batches(each) for each in own) else 1  # the progress bar shows numbers only

    def __enter__(self) -> "_Watching":
        for each in self.own:
            each.model = self.model
        self.model._stop = False
        # Python's own handler would raise KeyboardInterrupt at any place of a callback, also where nothing can catch it.
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self.previous = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def _interrupt(self, *_: Any) -> None:
        self.interrupted = True

    def __exit__(self, *_: Any) -> None:
        if self.progress:
            self.progress.close()
        if self.previous is not None:
            signal.signal(signal.SIGINT, self.previous)
        for field, kind in cast(Any, _api.TenonFitCallbacks._fields_)[3:]:  # a cycle of references ends
            setattr(self.struct, field, kind())

    def _interruptible(self, function: Any) -> Any:
        def call(*arguments: Any) -> None:
            try:
                function(*arguments)
            except KeyboardInterrupt:  # of a callback, or of a handler of the caller
                self.interrupted = True
            if self.interrupted:
                check(lib.tenon_model_stop(self.model.handle, b"interrupted by Ctrl-C"))
        return call

    def _train_begin(self, user: Any, epochs: int, batches: int) -> None:
        if self.progress:
            self.progress.train_begin(epochs, batches)
        for each in self.own:
            each.on_train_begin({})

    def _epoch_begin(self, user: Any, epoch: int) -> None:
        if self.progress:
            self.progress.epoch_begin(epoch)
        for each in self.own:
            each.on_epoch_begin(epoch, {})

    def _batch_end(self, user: Any, address: int) -> None:
        if not self.own and not (self.progress and self.progress.is_due()):
            return
        batch = _api.TenonBatchEnd.from_address(address)
        count = batch.count
        names = (ctypes.c_char_p * count).from_address(batch.names)
        means = (ctypes.c_double * count).from_address(batch.means)
        logs = {(names[i] or b"").decode(): means[i] for i in range(count)}
        if self.progress and self.progress.is_due():
            self.progress.batch_end(batch.batch, logs)
        for each in self.own:
            each.on_train_batch_end(batch.batch, logs)

    def _epoch_end(self, user: Any, text: bytes) -> None:
        entry = json.loads(text)
        logs = {name: float("nan") if value is None else float(value) for name, value in entry["logs"].items()}
        if self.progress:
            self.progress.epoch_end(float(entry["seconds"]), logs)
        for each in self.own:
            each.on_epoch_end(int(entry["epoch"]), logs)

    def _train_end(self, user: Any) -> None:
        if self.progress:
            self.progress.train_end()
        for each in self.own:
            each.on_train_end({})


def Sequential(layers: Iterable[Any], *, input_shape: Optional[Sequence[int]] = None, name: Optional[str] = None, preset: Optional[str] = None,
               context: Optional[Context] = None, **keys: Any) -> Model:
    """A model of layers, one after the other: definitions of tenon.layers, names ("flatten"), or dicts.

    input_shape  of a sample, without the batch axis; None: that of the first data.
    preset       whose defaults layers have: "keras", "torch", "gorgonia".
    context      whose devices compute; None: the default context.
    keys         those of a model.yaml.
    Errors  InvalidArgumentError with line and key.
    """
    if isinstance(layers, (str, dict)):  # one layer, whose characters or keys would be taken for layers
        raise InvalidArgumentError(f"Sequential: expected a list of layers, got the layer {layers}; write Sequential([...])")
    if not isinstance(layers, Iterable):
        raise InvalidArgumentError(f"Sequential: expected a list of layers, got {layers!r}")
    definition: Dict[str, Any] = {"layers": list(layers), **keys}
    if name is not None:
        definition["name"] = name
    if preset is not None:
        definition["preset"] = preset
    if input_shape is not None:
        definition["input"] = {"shape": list(input_shape)}
    return Model(definition, context=context)


def load(path: PathLike, *, context: Optional[Context] = None) -> Model:
    """The model of an ONNX file, a model.yaml, a train.yaml, or a folder that Model.save wrote.

    A model of an ONNX file predicts at once; compile() it to train it. One of YAML has initial weights.
    Errors  InvalidArgumentError: no such file, or what is wrong with it.
    """
    text = os.fspath(path)
    if text.endswith(".onnx"):
        if not os.path.isfile(text):
            raise InvalidArgumentError(f"load: expected the path of an ONNX file, got '{text}', which is no file")
        model = Model({"onnx": text}, context=context)
        model._path = text
        return model
    chosen = context or default_context()
    return Model._of(object_of(lib.tenon_model_load, chosen.handle, path_of(path), None), chosen)
