# SPDX-License-Identifier: Apache-2.0
"""Tenon, a plugin-based deep learning runtime.

    import tenon
    model = tenon.Sequential([tenon.layers.Dense(128, activation="relu"), tenon.layers.Dense(10)])
    model.compile(optimizer="adam", loss={"name": "sparse_categorical_crossentropy", "from_logits": True}, metrics=["accuracy"])
    model.fit(x, y, epochs=5)

Arrays of NumPy, PyTorch and JAX, and all that has DLPack or the buffer protocol, are accepted where a tensor is, without a copy.
docs/python.md is the guide.
"""
from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any
from typing import List as _List

from ._context import Context, Device, default_context, device, devices, set_default_context
from ._dtypes import (DType, bfloat16, bool_, complex64, complex128, float16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32,
                      uint64)
from ._errors import (CancelledError, DeviceLostError, DeviceNotFoundError, Error, ForkedError, IncompatibleError, InternalError,
                      InvalidArgumentError, NotReadyError, OutOfMemoryError, TraceError, UnsupportedError, VendorError)
from ._library import live_objects, version
from ._tensor import Tensor, arange, asarray, empty, equal, from_dlpack, full, ones, stack, tensor, zeros

# What follows is imported when it is used, so that `import tenon` takes little time.
if _TYPE_CHECKING:
    from . import backends, blas, callbacks, datasets, initializers, layers, log, losses, metrics, nn, ops, optimizers, quantization, random, schedules
    from ._batcher import Batcher, Request
    from ._data import Data
    from ._explanation import Explanation, explain
    from ._function import Function, function
    from ._gradient import grad, stop_gradient, value_and_grad
    from ._history import History
    from ._model import Model, Sequential, load
    from ._onnx import OnnxModel
    from ._program import Program
    from ._session import InferenceSession, IOBinding, ModelMetadata, NodeArg, SessionOptions, get_available_providers
    from ._trace import Trace, trace_span
    from .backends import doctor

_MODULES = ("backends", "blas", "callbacks", "datasets", "initializers", "layers", "log", "losses", "metrics", "nn", "ops", "optimizers", "quantization",
            "random", "schedules")
_MODULE_OF = {
    **dict.fromkeys(("Batcher", "Request"), "_batcher"),
    **dict.fromkeys(("Data", ), "_data"),
    **dict.fromkeys(("Explanation", "explain"), "_explanation"),
    **dict.fromkeys(("Function", "function"), "_function"),
    **dict.fromkeys(("grad", "stop_gradient", "value_and_grad"), "_gradient"),
    **dict.fromkeys(("History", ), "_history"),
    **dict.fromkeys(("Model", "Sequential", "load"), "_model"),
    **dict.fromkeys(("OnnxModel", ), "_onnx"),
    **dict.fromkeys(("Program", ), "_program"),
    **dict.fromkeys(("InferenceSession", "IOBinding", "ModelMetadata", "NodeArg", "SessionOptions", "get_available_providers"), "_session"),
    **dict.fromkeys(("Trace", "trace_span"), "_trace"),
    **dict.fromkeys(("doctor", ), "backends"),
}

__version__ = version()
__all__ = [
    "__version__", "arange", "asarray", "backends", "Batcher", "bfloat16", "blas", "bool_", "callbacks", "CancelledError", "complex128",
    "complex64", "Context", "Data", "datasets", "default_context", "Device", "device", "DeviceLostError", "DeviceNotFoundError", "devices",
    "doctor", "DType", "empty", "equal", "Error", "explain", "Explanation", "float16", "float32", "float64", "ForkedError", "from_dlpack",
    "full", "Function", "function", "get_available_providers", "grad", "History", "IncompatibleError", "InferenceSession", "initializers",
    "int16", "int32", "int64", "int8", "InternalError", "InvalidArgumentError", "IOBinding", "layers", "live_objects", "load", "log", "losses",
    "metrics", "Model", "ModelMetadata", "nn", "NodeArg", "NotReadyError", "ones", "OnnxModel", "ops", "optimizers", "OutOfMemoryError",
    "Program", "quantization", "random", "Request", "schedules", "Sequential", "SessionOptions", "set_default_context", "stack",
    "stop_gradient", "Tensor", "tensor", "Trace", "trace_span", "TraceError", "uint16", "uint32", "uint64", "uint8", "UnsupportedError",
    "value_and_grad", "VendorError", "version", "zeros",
]


def _public(value: _Any) -> _Any:
    """A class says that it is of this package, not of the module that has its code."""
    if isinstance(value, type) and value.__module__.startswith("tenon._"):
        value.__module__ = "tenon"
    return value


for _each in list(globals().values()):
    _public(_each)
del _each


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        return _import_module("." + name, __name__)
    if name not in _MODULE_OF:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = globals()[name] = _public(getattr(_import_module("." + _MODULE_OF[name], __name__), name))
    return value


def __dir__() -> _List[str]:
    return sorted({*globals(), *_MODULES, *_MODULE_OF})
