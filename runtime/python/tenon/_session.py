# SPDX-License-Identifier: Apache-2.0
"""InferenceSession with ONNX Runtime's signature, so that a script changes by one import."""
import ctypes
import threading
import warnings
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ._context import Context, default_context
from ._dtypes import DType, dtype_of
from ._errors import DeviceNotFoundError, InvalidArgumentError
from ._library import PathLike, check, handles, integers, lib, native, object_of, raise_error, texts
from ._onnx import OnnxModel
from ._tensor import ArrayMaker, Tensor, asarray, import_numpy, wrap

_TYPES = {"float32": "float", "float64": "double"}
_DEVICES = {"CPUExecutionProvider": "cpu", "CUDAExecutionProvider": "cuda"}
_STAGED_BYTES = 1 << 16  # arrays up to this size are copied to memory whose tensors stay from run to run, which takes less time than new tensors


class NodeArg(NamedTuple):
    """An input or output: its name, its shape (a number, a symbol or None for each dimension), its type, "tensor(float)"."""

    name: str
    shape: List[Union[int, str, None]]
    type: str


class ModelMetadata(NamedTuple):
    """What the file says of itself."""

    graph_name: str
    producer_name: str
    domain: str
    description: str
    version: int
    custom_metadata_map: Dict[str, str]


class SessionOptions:
    """Accepted for scripts of ONNX Runtime. Tenon's configuration (tenon.Context, tenon.yaml) says what options there are; these have no effect."""

    def __init__(self) -> None:
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.graph_optimization_level: Any = None
        self.log_severity_level = 2


def get_available_providers(context: Optional[Context] = None) -> List[str]:
    """ONNX Runtime's names for the kinds of devices that there are, and the names of the devices themselves."""
    devices = (context or default_context()).describe_devices()
    kinds = {str(each["kind"]) for each in devices}
    backends = {str(each["backend"]) for each in devices}
    found = (["CUDAExecutionProvider"] if "cuda" in backends else []) + (["CPUExecutionProvider"] if "cpu" in kinds else [])
    return found + [str(each["name"]) for each in devices]


def _node_arg(each: Mapping[str, Any]) -> NodeArg:
    name = dtype_of(each["dtype"]).name if each.get("dtype") else ""
    return NodeArg(str(each["name"]), list(each["shape"]) if each.get("shape") is not None else [], f"tensor({_TYPES.get(name, name)})" if name else str(each.get("type", "")))


class InferenceSession:
    """A model of an ONNX file for inference, with the methods of onnxruntime.InferenceSession.

    path_or_bytes     a path, or the bytes of a file
    sess_options      accepted, without effect
    providers         names in the order of preference: ONNX Runtime's ("CUDAExecutionProvider"), Tenon's devices ("cuda:1"), or (name, {"device_id":
                      1}); the first that there is computes. None: the default device.

    Errors  InvalidArgumentError: no such file, or a damaged one; DeviceNotFoundError: none of the providers; one that is
    passed over is a RuntimeWarning. Threads: any; runs take turns.
    """

    def __init__(self, path_or_bytes: Union[PathLike, bytes], sess_options: Any = None, providers: Optional[Sequence[Any]] = None,
                 provider_options: Optional[Sequence[Mapping[str, Any]]] = None, *, context: Optional[Context] = None, **_: Any):
        self._numpy = import_numpy("InferenceSession", "tenon.load, whose results are tensors")
        self._context = context or default_context()
        self._device = self._choose(providers, provider_options)
        self.model = OnnxModel(path_or_bytes, device=self._device, context=self._context)
        self._input_set = set(self.model.input_names)
        self._lock = threading.Lock()
        self._staged: Dict[str, Tuple[Any, Any, Any]] = {}  # input -> shape, dtype, and the array that the tensor of the last run uses
        self._arguments: Tuple[Any, ...] = ()  # of the library's function, for the staged inputs
        self._tensors: List[Tensor] = []  # those of the staged arrays
        self._arrays: Tuple[Any, ...] = ()  # what the arguments point to
        self._outputs = (ctypes.c_void_p * max(len(self.model.output_names), 1))()
        self._outputs_address = ctypes.addressof(self._outputs)
        self._array_of = ArrayMaker(self._numpy)

    def _choose(self, providers: Optional[Sequence[Any]], options: Optional[Sequence[Mapping[str, Any]]]) -> Optional[str]:
        if not providers:
            return None
        tried = []
        for i, each in enumerate(providers):
            name, keys = each if isinstance(each, (tuple, list)) else (each, options[i] if options and i < len(options) else {})
            device = _DEVICES.get(str(name), str(name))
            if "device_id" in keys and ":" not in device:
                device = f"{device}:{keys['device_id']}"
            try:
                chosen: str = self._context.device(device).name
            except DeviceNotFoundError as error:
                tried.append(str(error))
                continue
            if tried:
                warnings.warn(f"providers: {'; '.join(tried)}: computing on {chosen}", RuntimeWarning, stacklevel=4)
            return chosen
        raise DeviceNotFoundError(f"providers: expected one of {get_available_providers(self._context)}, got {list(providers)}: " + "; ".join(tried))

    def get_inputs(self) -> List[NodeArg]:
        """The inputs."""
        return [_node_arg(each) for each in self.model.info["inputs"]]

    def get_outputs(self) -> List[NodeArg]:
        """The outputs."""
        return [_node_arg(each) for each in self.model.info["outputs"]]

    def get_providers(self) -> List[str]:
        """The name of the device that computes."""
        return [self._device or self._context.device().name]

    def get_modelmeta(self) -> ModelMetadata:
        """What the file says of itself."""
        about = self.model.info["metadata"]
        return ModelMetadata(about["graph"], about["producer"], about["domain"], about["description"], int(about["model_version"] or 0), dict(about["properties"]))

    def run(self, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any], run_options: Any = None) -> List[Any]:
        """The outputs as arrays of NumPy, all of them for None.

        Errors  InvalidArgumentError: an input that is missing, unknown, or of another dtype or shape than the file states; an unknown output.
        """
        ndarray = self._numpy.ndarray
        with self._lock:  # the model is run by one thread at a time
            staged = self._staged
            same = len(staged) == len(input_feed) > 0
            if same:
                for name, value in input_feed.items():
                    known = staged.get(name)
                    if known is None or type(value) is not ndarray or value.shape != known[0] or value.dtype != known[1]:
                        same = False
                        break
                    known[2][...] = value
            tensors = None if same else self._stage(input_feed)  # kept until the run has ended
            model = self.model
            if native is not None and model._count <= 64:
                made: Any = native.run_onnx(model.handle, *self._arguments, model._count)
                if type(made) is int:
                    raise_error(made)
            else:
                made = self._outputs
                for i in range(model._count):
                    made[i] = None
                check(lib.tenon_onnx_run(model.handle, *self._arguments, self._outputs_address, model._count, None))
            results = [self._array_of(each) for each in made]
        del tensors
        return results if output_names is None else [results[self._output_index(name)] for name in output_names]

    def _stage(self, input_feed: Mapping[str, Any]) -> List[Tensor]:
        """The tensors of the inputs; small arrays are copied, so that the next run with such arrays uses the same tensors."""
        numpy = self._numpy
        self._staged = {}
        small = all(type(each) is numpy.ndarray and each.nbytes <= _STAGED_BYTES and each.dtype.isnative for each in input_feed.values())
        arrays = [numpy.array(each, order="C") if small else each for each in input_feed.values()]
        tensors = [asarray(each) for each in arrays]
        self._arrays = texts(list(input_feed)), handles([*tensors])
        self._arguments = (*map(ctypes.addressof, self._arrays), len(tensors))  # integers are passed sooner than arrays
        if small:
            self._staged = {name: (array.shape, array.dtype, array) for name, array in zip(input_feed, arrays)}
            self._tensors = tensors
        return tensors

    def _output_index(self, name: str) -> int:
        try:
            return self.model.output_names.index(name)
        except ValueError:
            raise InvalidArgumentError(f"output_names: expected names of {self.model.output_names}, got '{name}'") from None

    def io_binding(self) -> "IOBinding":
        """Inputs and outputs that are bound once and used by many runs."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: "IOBinding", run_options: Any = None) -> None:
        """Runs with the bound inputs, and keeps the outputs in the binding. Errors: as those of run()."""
        into = [iobinding._targets.get(name) for name in self.model.output_names]
        with self._lock:
            iobinding._results = self.model.run(list(iobinding._inputs), list(iobinding._inputs.values()), into)

    def __repr__(self) -> str:
        return f"<tenon.InferenceSession {', '.join(self.model.input_names)} -> {', '.join(self.model.output_names)} on {self.get_providers()[0]}>"


class IOBinding:
    """Bound inputs and outputs of an InferenceSession, with the methods of onnxruntime.IOBinding."""

    def __init__(self, session: InferenceSession):
        self._session = session
        self._inputs: Dict[str, Tensor] = {}
        self._targets: Dict[str, Optional[Tensor]] = {}
        self._results: List[Tensor] = []

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        """Binds an array, whose memory is read at each run."""
        if name not in self._session._input_set:
            raise InvalidArgumentError(f"bind_cpu_input: expected a name of {self._session.model.input_names}, got '{name}'")
        self._inputs[name] = asarray(arr_on_cpu)

    bind_tensor_input = bind_cpu_input

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int) -> None:
        """Binds memory of the host by its address, which has to stay valid."""
        self.bind_cpu_input(name, self._borrow(device_type, element_type, shape, buffer_ptr))

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None, shape: Optional[Sequence[int]] = None,
                    buffer_ptr: Optional[int] = None) -> None:
        """Binds an output: to memory of the host by its address, which each run writes to, or, without one, to a new tensor of each run."""
        self._session._output_index(name)
        self._targets[name] = None if buffer_ptr is None else self._borrow(device_type, element_type, shape or (), buffer_ptr)

    def bind_tensor_output(self, name: str, target: Any) -> None:
        """Binds an output to a tensor or array, whose memory each run writes to. Errors, of the run: another dtype or shape; read-only memory."""
        self._session._output_index(name)
        self._targets[name] = asarray(target)

    @staticmethod
    def _borrow(device_type: str, element_type: Any, shape: Sequence[int], address: int) -> Tensor:
        if device_type != "cpu":
            raise InvalidArgumentError(f"device_type: expected 'cpu', got '{device_type}': bind arrays of devices by bind_tensor_input")
        dtype: DType = dtype_of(element_type)
        return wrap(object_of(lib.tenon_tensor_borrow, address, dtype.code, len(shape), integers(shape), None, 0, None, None), None)

    def get_outputs(self) -> List[Tensor]:
        """The bound outputs of the last run as tensors, in the order of bind_output(); all outputs if none is bound."""
        names = list(self._targets) or self._session.model.output_names
        return [self._results[self._session._output_index(name)] for name in names]

    def copy_outputs_to_cpu(self) -> List[Any]:
        """The same as arrays of NumPy."""
        return [each.numpy() for each in self.get_outputs()]

    def clear_binding_inputs(self) -> None:
        """Gives the bound inputs up."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Gives the bound outputs up."""
        self._targets.clear()
        self._results = []


__all__ = ["IOBinding", "InferenceSession", "ModelMetadata", "NodeArg", "SessionOptions", "get_available_providers"]
