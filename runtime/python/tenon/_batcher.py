# SPDX-License-Identifier: Apache-2.0
"""Dynamic batching: requests of many threads run together, as batches of one model."""
import ctypes
import json
import os
import time
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from . import _api
from ._context import Context
from ._data import Arrays, named_tensors
from ._errors import NotReadyError
from ._library import Object, PathLike, check, generation, handles, json_of, lib, object_of, plain, sized, texts
from ._model import Model
from ._onnx import OnnxModel
from ._session import InferenceSession
from ._tensor import Tensor, wrap

_SLICE_US = 100_000  # a wait returns to Python so often, which then can handle Ctrl-C


class Request(Object):
    """A request of a Batcher, whose outputs result() waits for."""

    __slots__ = ("_count", "_inputs")

    def __init__(self, handle: int, count: int, inputs: Sequence[Tensor]):
        super().__init__(handle)
        self._count = count
        self._inputs = tuple(inputs)  # the batch reads their memory

    def done(self) -> bool:
        """Whether it has outputs or an error."""
        return self._wait(0)

    def _wait(self, timeout_us: int) -> bool:
        ready = ctypes.c_uint32()
        check(lib.tenon_request_wait(self.handle, timeout_us, ctypes.byref(ready)))
        return bool(ready.value)

    def result(self, timeout: Optional[float] = None) -> Union[Tensor, Tuple[Tensor, ...]]:
        """The outputs: a tensor of the host, or a tuple of them; waits for them, for at most `timeout` seconds.

        Errors  that of its run; NotReadyError: its own timeout has passed before its batch started; CancelledError: the batcher has ended;
        TimeoutError: `timeout` has passed.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while not self._wait(_SLICE_US if end is None else max(0, min(_SLICE_US, int((end - time.monotonic()) * 1e6)))):
            if end is not None and time.monotonic() >= end:
                raise TimeoutError(f"result: the request has no outputs after {timeout} s")
        made = (ctypes.c_void_p * max(self._count, 1))()
        check(lib.tenon_request_results(self.handle, made, self._count))
        return wrap(made[0], None) if self._count == 1 else tuple(wrap(made[i], None) for i in range(self._count))


class Batcher(Object):
    """Runs requests of many threads together, as batches of one model, on a thread of its own.

    model         a Model, a file or the bytes of an ONNX model, or an OnnxModel, which nothing else uses meanwhile.
    max_batch     the most samples in a batch.
    max_delay_us  how long a request waits for others.
    max_queue     how many requests may wait; submit() waits while the queue is full.
    batch_sizes   sizes to which batches are padded, since a program is compiled for each; None: 1, 2, 4, ... and max_batch.
    padding       "last_row" or "zeros": what rows that are added have.

    Inputs have their samples along the first axis. Use it in a `with` block, which runs what waits at its end. Threads: any; with asyncio,
    `await asyncio.to_thread(batcher, x)`.
    Errors  InvalidArgumentError: a wrong option; a model of layers that is not built; an input of a fixed batch size.
    """

    __slots__ = ("model", "_count", "_is_closed")

    def __init__(self, model: Union[Model, OnnxModel, InferenceSession, PathLike, bytes], *, max_batch: int = 8, max_delay_us: int = 1000, max_queue: int = 1024,
                 batch_sizes: Optional[Sequence[int]] = None, padding: str = "last_row", context: Optional[Context] = None):
        options = json.dumps(plain({"max_batch": max_batch, "max_delay_us": max_delay_us, "max_queue": max_queue, "batch_sizes": batch_sizes,
                                    "padding": padding})).encode()
        if isinstance(model, InferenceSession):
            model = model.model
        elif isinstance(model, (str, bytes, os.PathLike)):
            model = OnnxModel(model, context=context)
        self.model: Union[Model, OnnxModel] = model
        self._is_closed = False
        if isinstance(model, Model):
            model._ready()
            super().__init__(object_of(lib.tenon_batcher_of_model, model.handle, options, None))
        else:
            super().__init__(object_of(lib.tenon_batcher_of_onnx, model.handle, options, None))
        self._count = len(self.info["outputs"])

    @property
    def handle(self) -> int:
        """Errors: it was closed, or belongs to the parent process."""
        if self._is_closed:
            self._fail()
        return super().handle

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self._is_closed

    @property
    def info(self) -> Dict[str, Any]:
        """Its options, and what it has done so far: requests, batches, padding, waiting times."""
        return dict(json_of(lib.tenon_batcher_describe, self.handle))

    def submit(self, x: Arrays, *, timeout: Optional[float] = None, wait: bool = True) -> Request:
        """Adds a request for x (n, sample...), an array or a dict of arrays by name, whose elements must not change before it is done.

        timeout  seconds; a request whose batch has not started by then is not run.
        wait     False: a full queue is a NotReadyError.
        Errors  no samples, or more than max_batch; CancelledError: a closed batcher.
        """
        if timeout is not None and timeout <= 0:
            raise NotReadyError(f"submit: expected a timeout above 0 s, got {timeout}")
        names, tensors = named_tensors(x)
        options = sized(_api.TenonRequestOptions, flags=0 if wait else _api.REQUEST_DO_NOT_WAIT,
                        timeout_us=0 if timeout is None else max(1, int(timeout * 1e6)))
        given: List[Optional[Object]] = [*tensors]
        handle = object_of(lib.tenon_batcher_submit, self.handle, texts(names) if names else None, handles(given), len(tensors), ctypes.byref(options))
        return Request(handle, self._count, tensors)

    def __call__(self, x: Arrays, *, timeout: Optional[float] = None) -> Union[Tensor, Tuple[Tensor, ...]]:
        """Submits and waits for the outputs. Errors: those of submit() and Request.result()."""
        return self.submit(x, timeout=timeout).result()

    def close(self) -> None:
        """Runs what waits; later requests, and those that wait for a place in the queue, are errors."""
        if not self._is_closed and self._born == generation():
            check(lib.tenon_batcher_close(self._handle))
        self._is_closed = True  # the object of the library is released at its last use: other threads may be within submit()

    def __repr__(self) -> str:
        if self.closed:
            return "<tenon.Batcher, closed>"
        info = self.info
        return f"<tenon.Batcher of {self.model!r}: {info['completed']} requests in {info['batches']} batches>"
