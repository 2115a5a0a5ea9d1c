# SPDX-License-Identifier: Apache-2.0
"""Finds and opens libtenon, and what every call of it needs: errors as exceptions, objects with a life cycle, texts."""
import ctypes
import json
import os
import re
import sys
import threading
from types import TracebackType
from typing import Any, Callable, List, Mapping, Optional, Sequence, Type, TypeVar, Union

from . import _api
from ._errors import OF_STATUS, Error, ForkedError, InternalError, InvalidArgumentError

Definition = Union[str, Mapping[str, Any]]
PathLike = Union[str, "os.PathLike[str]"]
Self = TypeVar("Self", bound="Object")
Struct = TypeVar("Struct", bound=ctypes.Structure)

_NAME = {"win32": "tenon.dll", "cygwin": "tenon.dll", "darwin": "libtenon.dylib"}.get(sys.platform, "libtenon.so")


def _find() -> str:
    """The library that TENON_LIBRARY names, or that of the wheel."""
    named = os.environ.get("TENON_LIBRARY")
    if named:
        if not os.path.isfile(named):
            raise ImportError(f"TENON_LIBRARY: expected the path of {_NAME}, got '{named}', which is no file")
        return named
    # On Windows with the DLLs of the compiler, and the programs, which use them too.
    folder = os.path.join(os.path.dirname(os.path.realpath(__file__)), "bin" if sys.platform == "win32" else "lib")
    for here in (os.path.join(folder, f"{_NAME}.1"), os.path.join(folder, _NAME)):
        if os.path.isfile(here):
            return here
    raise ImportError(f"expected {_NAME} in {folder}, where a wheel of tenon puts it: install the wheel, or name the library in the "
                      "environment variable TENON_LIBRARY")


def _open() -> ctypes.CDLL:
    path = _find()
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"{path} cannot be loaded: {error}") from error
    for name, (result, arguments) in _api.FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ImportError(f"{path} has no function {name}: it is not of the version of this package; install both from one wheel") from None
        function.restype = result
        function.argtypes = arguments
    return library


lib: Any = _open()


def _open_native() -> Any:
    """The module runtime/python/native, next to the library, which takes the calls that programs make most; None: ctypes takes them, too.

    It is for Pythons with the stable ABI. TENON_PYTHON_NATIVE=0 leaves it out.
    """
    from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
    path = os.path.join(os.path.dirname(os.path.realpath(lib._name)), "tenon", "python", "_native.abi3.so")
    if os.environ.get("TENON_PYTHON_NATIVE") == "0" or ".abi3.so" not in EXTENSION_SUFFIXES or not os.path.isfile(path):
        return None
    loader = ExtensionFileLoader("tenon._native", path)
    try:
        module: Any = loader.create_module(ModuleSpec("tenon._native", loader, origin=path))
        loader.exec_module(module)
    except ImportError:
        return None
    functions = lib.tenon_apply, lib.tenon_apply_named, lib.tenon_program_run, lib.tenon_onnx_run, lib.tenon_release
    module.bind(*[ctypes.cast(function, ctypes.c_void_p).value for function in functions])
    return module


native: Any = _open_native()


# ------------------------------------------------------------------ errors


def raise_error(error: int) -> None:
    """Raises the exception for a TenonError, and releases that."""
    status = lib.tenon_status_name(lib.tenon_error_status(error)).decode()
    text = lib.tenon_error_message(error).decode("utf-8", "replace")
    lib.tenon_release(error)
    raise OF_STATUS.get(status, InternalError)(_in_python(text))


def _in_python(text: str) -> str:
    """The message without the name of the function of the C API, and without positions in dicts, which are passed on as one line of JSON."""
    text = re.sub(r"^tenon_\w+: ", "", text)
    return re.sub(r"^<(\w+)>:1:\d+: ", r"\1: ", text, flags=re.MULTILINE)


def check(error: Optional[int]) -> None:
    """Raises the exception for what a function of the library returned, unless that is NULL."""
    if error is not None:
        raise_error(error)


def error_of(exception: BaseException) -> int:
    """A TenonError for an exception of a callback."""
    status = _api.STATUSES[exception.status if isinstance(exception, Error) else "INTERNAL"]
    return int(lib.tenon_error_create(status, f"{type(exception).__name__}: {exception}".encode("utf-8", "replace")))


class Callbacks:
    """Runs functions of Python for the library. What they raise ends the call of the library, and is raised again by it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.raised: Optional[BaseException] = None

    def guard(self, function: Callable[..., None]) -> Callable[..., Optional[int]]:
        """The function as a callback that returns an error, or NULL."""
        def call(*arguments: Any) -> Optional[int]:
            try:
                function(*arguments)
                return None
            except BaseException as exception:  # it must not leave the callback, where ctypes would drop it
                with self._lock:
                    if self.raised is None:
                        self.raised = exception
                return error_of(exception)
        return call

    def check(self, error: Optional[int]) -> None:
        """As check(), but what a callback has raised goes first."""
        if error is None:
            return
        raised, self.raised = self.raised, None
        if raised is not None:
            lib.tenon_release(error)
            raise raised
        raise_error(error)


# ------------------------------------------------------------------ texts and structs


def text_of(function: Any, *arguments: Any) -> str:
    """The text that a function returns by its last parameter."""
    out = ctypes.c_void_p()
    check(function(*arguments, ctypes.byref(out)))
    try:
        return ctypes.string_at(out.value or 0).decode("utf-8", "replace")
    finally:
        lib.tenon_string_free(out)


def json_of(function: Any, *arguments: Any) -> Any:
    """The JSON that a function returns by its last parameter."""
    return json.loads(text_of(function, *arguments))


def object_of(function: Any, *arguments: Any) -> int:
    """The object that a function returns by its last parameter; the caller owns it."""
    out = ctypes.c_void_p()
    check(function(*arguments, ctypes.byref(out)))
    return out.value or 0


def encoded(text: Optional[str]) -> Optional[bytes]:
    """A text, or NULL for None."""
    if text is None:
        return None
    if not isinstance(text, str):
        raise TypeError(f"expected a str, got {type(text).__name__}: {text!r}")
    if "\0" in text:
        raise InvalidArgumentError(f"expected a text without the character NUL, got {text!r}")
    return text.encode()


def path_of(path: PathLike) -> bytes:
    """A path as the library takes it."""
    return encoded(os.fspath(path)) or b""


def definition_of(definition: Optional[Definition]) -> Optional[bytes]:
    """YAML as it is, a dict as JSON, None as NULL."""
    if definition is None or isinstance(definition, str):
        return encoded(definition)
    return json.dumps(plain(definition)).encode()


def plain(value: Any) -> Any:
    """A definition made of dicts, lists, numbers and texts alone, from one with tuples, paths, and numbers of NumPy."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"expected a number, a text, a list or a dict in a definition, got {type(value).__name__}: {value!r}")


def sized(kind: Type[Struct], **fields: Any) -> Struct:
    """A struct with its struct_size."""
    return kind(struct_size=ctypes.sizeof(kind), **fields)


def handles(objects: List[Optional["Object"]]) -> Any:
    """An array of the handles of objects; None is NULL."""
    return (ctypes.c_void_p * max(len(objects), 1))(*[None if each is None else each.handle for each in objects])


def texts(names: Sequence[Optional[str]]) -> Any:
    """An array of texts; None is NULL."""
    return (ctypes.c_char_p * max(len(names), 1))(*[encoded(name) for name in names])


def integers(values: Any) -> Any:
    """An array of int64."""
    numbers = [value.__index__() for value in values]
    return (ctypes.c_int64 * max(len(numbers), 1))(*numbers)


# ------------------------------------------------------------------ objects

_generation = 0  # of this process: a child of fork() has another one than its parent


def _forked() -> None:
    global _generation
    _generation += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def generation() -> int:
    """Differs between a process and its children of fork()."""
    return _generation


class Object:
    """An object of the library, which lives until close(), the end of a `with` block, or its last use."""

    __slots__ = ("_handle", "_born", "__weakref__")
    _release = native.release if native is not None else lib.tenon_release

    def __init__(self, handle: int):
        self._handle: Optional[int] = handle
        self._born = _generation

    @property
    def handle(self) -> int:
        """The address of the object in the library. Errors: it was closed, or belongs to the parent process."""
        handle = self._handle
        if handle is None or self._born != _generation:
            self._fail()
        return handle  # type: ignore[return-value]

    def _fail(self) -> None:
        name = type(self).__name__
        if self.closed:
            raise InvalidArgumentError(f"{name}: expected an open object, got one that was closed")
        raise ForkedError(f"{name}: the object belongs to the parent process, and cannot be used after fork(): make a new one in the child, or "
                          "start the child by multiprocessing's method 'spawn'")

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self._handle is None

    def close(self) -> None:
        """Gives the object up at once. Later uses are an error; closing again is none."""
        handle, self._handle = self._handle, None
        if handle is not None and self._born == _generation:
            lib.tenon_release(handle)

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException], traceback: Optional[TracebackType]) -> None:
        self.close()

    def __del__(self) -> None:
        # An object of the parent process is left alone, and so is everything if the constructor failed.
        handle = getattr(self, "_handle", None)
        if handle is not None and self._born == _generation:
            self._handle = None
            self._release(handle)

    def __reduce__(self) -> Any:
        raise TypeError(f"{type(self).__name__} cannot be pickled or copied")


def version() -> str:
    """The version of the library, "1.0.0"."""
    return str(lib.tenon_version().decode())


def live_objects() -> int:
    """How many objects of the library the process has."""
    return int(lib.tenon_object_count())
