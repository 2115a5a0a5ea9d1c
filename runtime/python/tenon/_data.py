# SPDX-License-Identifier: Apache-2.0
"""What models learn from: arrays, data sets that the library reads, and batches of Python's iterables."""
import ctypes
import json
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Union, cast

from . import _api
from ._dtypes import dtype_of, float32
from ._errors import InvalidArgumentError
from ._library import Callbacks, Object, check, encoded, handles, integers, json_of, lib, object_of, plain, sized, texts
from ._tensor import Tensor, TensorLike, asarray, wrap

Arrays = Union[TensorLike, Mapping[str, TensorLike]]
Batches = Union[Iterable[Any], Callable[[], Iterable[Any]]]


def named_tensors(arrays: Optional[Arrays]) -> Tuple[List[str], List[Tensor]]:
    """(names, tensors); no names for an only array. f64 becomes f32, as models compute."""
    if arrays is None:
        return [], []
    if isinstance(arrays, Mapping):
        return [str(name) for name in arrays], [_learnable(each) for each in arrays.values()]
    return [], [_learnable(arrays)]


def _learnable(array: TensorLike) -> Tensor:
    made = asarray(array)
    return made.to(float32) if made.dtype == "float64" else made


class Data(Object):
    """Samples or batches, for Model.fit and Model.evaluate. tenon.datasets, Data.arrays and Data.batches make them."""

    __slots__ = ("_kept", "callbacks")

    def __init__(self, handle: int, kept: Any = None, callbacks: Optional[Callbacks] = None):
        super().__init__(handle)
        self._kept = kept  # what the library uses while the data lives
        self.callbacks = callbacks

    @classmethod
    def arrays(cls, x: Arrays, y: Optional[Arrays] = None, sample_weight: Optional[TensorLike] = None, **options: Any) -> "Data":
        """Samples in memory: arrays whose first axis counts them, or dicts of them by name. Their elements must not change.

        sample_weight  (count,), numbers from 0.
        options        name, scale and offset (of an only input), targets (as_given, one_hot, soft_one_hot), num_classes.
        Errors  different counts; a label out of range, by its index.
        """
        (x_names, inputs), (y_names, targets) = named_tensors(x), named_tensors(y)
        weights = None if sample_weight is None else _learnable(sample_weight)
        text = json.dumps(plain(options)).encode() if options else None
        handle = object_of(lib.tenon_data_arrays, texts(x_names) if x_names else None, handles([*inputs]), len(inputs), texts(y_names) if y_names else None,
                           handles([*targets]), len(targets), None if weights is None else weights.handle, text)
        return cls(handle)

    @classmethod
    def batches(cls, batches: Batches, steps: int = 0, name: str = "batches") -> "Data":
        """Batches (x, y) or (x, y, sample_weight), of arrays or dicts of arrays: a list, a PyTorch DataLoader, an iterator, or a function that
        returns them for each epoch. An iterator goes on from epoch to epoch, each of `steps` batches.

        Errors  no batch; batches of different shapes or dtypes.
        """
        source = _Batches(batches, steps, name)
        return cls(object_of(lib.tenon_data_batches, ctypes.byref(source.struct)), source, source.callbacks)

    @property
    def info(self) -> Dict[str, Any]:
        """{"name", "size" (None for batches), "num_classes", "inputs": [{name, dtype, shape}], "targets"}"""
        return dict(json_of(lib.tenon_data_describe, self.handle))

    def __len__(self) -> int:
        size = self.info["size"]
        if size is None:
            raise TypeError("len() of data of batches")
        return int(size)

    def gather(self, indices: Iterable[int]) -> Tuple[Any, Any]:
        """(x, y) of these samples: tensors, or dicts of tensors if there are several. Errors: data of batches; an index out of range."""
        info = self.info
        numbers = [int(each) for each in indices]
        outputs = [(ctypes.c_void_p * max(len(info[kind]), 1))() for kind in ("inputs", "targets")]
        check(lib.tenon_data_gather(self.handle, integers(numbers), len(numbers), outputs[0], len(info["inputs"]), outputs[1], len(info["targets"])))
        made = []
        for kind, out in zip(("inputs", "targets"), outputs):
            tensors = {each["name"]: wrap(out[i], None) for i, each in enumerate(info[kind])}
            made.append(next(iter(tensors.values())) if len(tensors) == 1 else tensors)
        return made[0], made[1]

    def numpy(self) -> Tuple[Any, Any]:
        """(x, y) of all samples, as gather()."""
        return self.gather(range(len(self)))

    def __repr__(self) -> str:
        if self.closed:
            return "<tenon.Data, closed>"
        info = self.info
        return f"<tenon.Data {info['name']}: {'batches' if info['size'] is None else str(info['size']) + ' samples'}>"


class _Batches:
    """Iterables of Python as a TenonBatchSource."""

    def __init__(self, batches: Batches, steps: int, name: str):
        self.make: Callable[[], Iterator[Any]] = lambda: iter(batches() if callable(batches) else batches)
        self.goes_on = not callable(batches) and hasattr(batches, "__next__")
        self.steps, self.taken = steps, 0
        self.callbacks = Callbacks()
        self.iterator = self.make()
        try:
            self.peeked: Optional[Any] = next(self.iterator)
        except StopIteration:
            raise InvalidArgumentError(f"{name}: expected at least one batch, got none") from None
        x, y, _ = self.parts(self.peeked)
        (x_names, inputs), (y_names, targets) = named_tensors(x), named_tensors(y)
        self.names = x_names, y_names
        self.kept: List[Any] = []
        length = 0
        if not callable(batches) and hasattr(batches, "__len__"):
            length = len(batches)  # type: ignore[arg-type]
        self.struct = sized(_api.TenonBatchSource, name=encoded(name), inputs=self.types(x_names, inputs), input_count=len(inputs),
                            targets=self.types(y_names, targets), target_count=len(targets), batches=steps or length)
        fields: Dict[str, Any] = dict(cast(Any, _api.TenonBatchSource._fields_))
        self.struct.start = fields["start"](self.callbacks.guard(self.start))
        self.struct.next = fields["next"](self.callbacks.guard(self.next))

    @staticmethod
    def parts(batch: Any) -> Tuple[Any, Any, Any]:
        if isinstance(batch, Mapping) or not isinstance(batch, (tuple, list)):
            return batch, None, None
        if not 1 <= len(batch) <= 3:
            raise InvalidArgumentError(f"batch: expected (x, y) or (x, y, sample_weight), got {len(batch)} values")
        return batch[0], batch[1] if len(batch) > 1 else None, batch[2] if len(batch) > 2 else None

    def types(self, names: List[str], tensors: List[Tensor]) -> Any:
        made = (_api.TenonSampleType * max(len(tensors), 1))()
        for i, each in enumerate(tensors):
            shape = integers(each.shape[1:])
            self.kept.append(shape)
            made[i] = _api.TenonSampleType(encoded(names[i]) if names else None, ctypes.cast(shape, ctypes.c_void_p), each.ndim - 1, dtype_of(each.dtype).code)
        self.kept.append(made)
        return ctypes.cast(made, ctypes.c_void_p)

    def start(self, user: Any, epoch: int) -> None:
        self.taken = 0
        if self.peeked is None and not self.goes_on:
            self.iterator = self.make()

    def next(self, user: Any, inputs: int, targets: int, weights: int, has_batch: int) -> None:
        batch, self.peeked = self.peeked, None
        if batch is None and not (self.steps and self.taken >= self.steps):
            batch = next(self.iterator, None)
            if batch is None and self.goes_on and self.taken == 0:
                raise InvalidArgumentError("batches: the iterator is at its end, and an epoch has begun: give a list, a DataLoader, or a function that returns "
                                           "an iterator for each epoch")
        ctypes.c_uint32.from_address(has_batch).value = int(batch is not None)
        if batch is None:
            return
        self.taken += 1
        x, y, sample_weight = self.parts(batch)
        for arrays, names, out in ((x, self.names[0], inputs), (y, self.names[1], targets)):
            found, tensors = named_tensors(arrays)
            if found:
                tensors = [tensors[found.index(name)] for name in names]
            for i, each in enumerate(tensors):
                _hand_over(each, out, i)
        if sample_weight is not None:
            _hand_over(_learnable(sample_weight), weights, 0)


def _hand_over(tensor: Tensor, out: int, index: int) -> None:
    lib.tenon_retain(tensor.handle)
    ctypes.c_void_p.from_address(out + index * ctypes.sizeof(ctypes.c_void_p)).value = tensor.handle


def data_of(x: Any, y: Any = None, sample_weight: Any = None, steps: Optional[int] = None) -> Data:
    """The data for arguments of Model.fit."""
    if isinstance(x, Data):
        if y is not None or sample_weight is not None:
            raise InvalidArgumentError("y, sample_weight: expected none with data that has its own")
        return x
    if hasattr(x, "train") and isinstance(getattr(type(x), "train", None), property):
        return data_of(x.train, y, sample_weight)
    is_array = isinstance(x, (Mapping, Tensor)) or hasattr(x, "__dlpack__") or hasattr(x, "__array__")
    pairs = isinstance(x, (list, tuple)) and y is None and bool(x) and isinstance(x[0], (tuple, Mapping))
    if callable(x) or pairs or (not is_array and not isinstance(x, (list, tuple)) and hasattr(x, "__iter__")):
        if y is not None or sample_weight is not None:
            raise InvalidArgumentError("y, sample_weight: expected none with batches, which have their own")
        return Data.batches(x, steps or 0)
    return Data.arrays(x, y, sample_weight)
