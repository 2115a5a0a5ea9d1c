# SPDX-License-Identifier: Apache-2.0
"""onnx's backend interface, by which onnx's own test runner judges Tenon. It needs the package onnx.

    import onnx.backend.test, tenon.onnx_backend
    globals().update(onnx.backend.test.BackendTest(tenon.onnx_backend, __name__).enable_report().test_cases)
"""
from typing import Any, Optional, Sequence, Tuple

import onnx
from onnx import helper, numpy_helper
from onnx.backend.base import Backend, BackendRep

from ._context import default_context
from ._dtypes import dtype_of
from ._errors import DeviceNotFoundError
from ._exchange import from_buffer
from ._session import InferenceSession
from ._tensor import wrap

_DEVICES = {"CPU": "cpu", "CUDA": "cuda"}


class TenonRep(BackendRep):
    """A model that is ready to run."""

    def __init__(self, session: InferenceSession):
        self.session = session

    def run(self, inputs: Any, **_: Any) -> Tuple[Any, ...]:
        """All outputs, for arrays in the order of the inputs, one array, or a dict of arrays."""
        names = self.session.model.input_names
        if isinstance(inputs, dict):
            feed = inputs
        else:
            feed = dict(zip(names, inputs if isinstance(inputs, (list, tuple)) else [inputs]))
        feed = {name: self._halves(name, value) for name, value in feed.items()}
        return tuple(self.session.run(None, feed))

    def _halves(self, name: str, value: Any) -> Any:
        """An input of bfloat16 from its bits: without a dtype for it in NumPy, onnx gives arrays of uint16."""
        expected = next((each.type for each in self.session.get_inputs() if each.name == name), "")
        if expected != "tensor(bfloat16)" or getattr(value, "dtype", None) != "uint16":
            return value
        import numpy
        return wrap(from_buffer(numpy.ascontiguousarray(value), dtype_of("bfloat16")), None)


class TenonBackend(Backend):
    """Tenon as a backend of onnx."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> bool:
        """Whether the model can be imported and the device is there."""
        if not cls.supports_device(device):
            return False
        try:
            InferenceSession(model.SerializeToString())
            return True
        except Exception:
            return False

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> TenonRep:
        """The model, ready to run. Errors: UnsupportedError, InvalidArgumentError."""
        kind, _colon, index = device.partition(":")
        name = _DEVICES.get(kind, kind.lower())
        return TenonRep(InferenceSession(model.SerializeToString(), providers=[f"{name}:{index}" if index else name]))

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **keys: Any) -> Tuple[Any, ...]:
        """The outputs of a model."""
        return cls.prepare(model, device, **keys).run(inputs)

    @classmethod
    def run_node(cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU", outputs_info: Optional[Sequence[Tuple[Any, Sequence[int]]]] = None,
                 **keys: Any) -> Tuple[Any, ...]:
        """The outputs of one node. `opset_version` among the keys: that of the op, else onnx's newest that Tenon imports."""
        import numpy
        arrays = [numpy.asarray(each) for each in (inputs.values() if isinstance(inputs, dict) else inputs)]
        names = [name for name in node.input if name]
        values = [helper.make_tensor_value_info(name, numpy_helper.from_array(array).data_type, array.shape) for name, array in zip(names, arrays)]
        if outputs_info is None:
            outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        else:
            outputs = [helper.make_tensor_value_info(name, numpy_helper.from_array(numpy.empty((), dtype)).data_type, shape)
                       for name, (dtype, shape) in zip(node.output, outputs_info)]
        opset = keys.get("opset_version", min(onnx.defs.onnx_opset_version(), 21))
        model = helper.make_model(helper.make_graph([node], "node", values, outputs), opset_imports=[helper.make_opsetid("", opset)])
        return cls.prepare(model, device).run(arrays)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether the device is there: "CPU", "CUDA", "CUDA:1"."""
        kind, _, index = device.partition(":")
        name = _DEVICES.get(kind, kind.lower())
        try:
            default_context().device(f"{name}:{index}" if index else name)
            return True
        except DeviceNotFoundError:
            return False


is_compatible = TenonBackend.is_compatible
prepare = TenonBackend.prepare
run_model = TenonBackend.run_model
run_node = TenonBackend.run_node
supports_device = TenonBackend.supports_device
