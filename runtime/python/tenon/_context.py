# SPDX-License-Identifier: Apache-2.0
"""Contexts: loaded backends and their devices."""
import ctypes
import os
import sys
import threading
import warnings
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from . import _api, _library
from ._library import Definition, Object, PathLike, check, definition_of, encoded, json_of, lib, object_of, path_of, sized, text_of


def _backend_folders() -> List[Tuple[str, str]]:
    """(distribution, folder) of the plugins that installed packages offer by the entry point group `tenon.backends`; no package is imported.

    TENON_PYTHON_BACKENDS=0 leaves them out.
    """
    if os.environ.get("TENON_PYTHON_BACKENDS") == "0":
        return []
    from importlib import metadata, util
    found = []
    entries: Any = metadata.entry_points()
    entries = entries.select(group="tenon.backends") if hasattr(entries, "select") else entries.get("tenon.backends", ())
    for entry in sorted(entries, key=lambda each: str(each.name)):
        try:
            spec = util.find_spec(entry.value.split(":")[0].split(".")[0])
        except (ImportError, ValueError):
            spec = None
        folders = list(spec.submodule_search_locations or []) if spec is not None else []
        folder = next((path for path in (os.path.join(base, "backends") for base in folders) if os.path.isdir(path)), None)
        if folder is None:
            warnings.warn(f"the entry point {entry.name} = {entry.value} of the group tenon.backends names a package without a folder "
                          "`backends`: its backend is not loaded; reinstall or uninstall it", stacklevel=3)
        else:
            found.append((str(entry.name), folder))
    return found


def _with_log_level(config: Optional[Definition]) -> Optional[Definition]:
    """The configuration with the level that tenon.log has chosen, if it is in use: Python's logging is not imported for nothing."""
    log: Any = sys.modules.get("tenon.log")
    return config if log is None else log.with_level(config)


class Device(Object):
    """A device of a context, such as "openblas:0"."""

    __slots__ = ("context",)

    def __init__(self, handle: int, context: "Context"):
        super().__init__(handle)
        self.context = context

    @property
    def name(self) -> str:
        """The canonical name, "openblas:0"."""
        return str(lib.tenon_device_name(self.handle).decode())

    @property
    def info(self) -> Dict[str, Any]:
        """Product, memory, dtypes and ops of the device, and how much of its memory is in use (live_size_bytes, peak_size_bytes)."""
        return dict(json_of(lib.tenon_device_describe, self.handle))

    def synchronize(self) -> None:
        """Returns when the work on the device has finished. Errors: that work failed."""
        check(lib.tenon_device_synchronize(self.handle))

    def trim(self) -> None:
        """Gives cached memory that is not in use back to the device."""
        check(lib.tenon_device_trim(self.handle))

    def __repr__(self) -> str:
        return "<tenon.Device, closed>" if self.closed else f"<tenon.Device {self.name}>"


DeviceLike = Union[str, Device, None]


class Context(Object):
    """Loaded backends and their devices.

    config       the keys of a tenon.yaml as a dict, or as YAML: {"device": "cpu", "precision": "mixed_bfloat16"}. They go before the
                 environment and files.
    config_file  a tenon.yaml; None: the one that TENON_CONFIG names, or none.
    plugins      files and folders that are searched for backends before all others; those of installed packages follow.

    Errors  an invalid configuration, with line and key; a path of `plugins` that does not exist; no usable backend.
    """

    __slots__ = ("_devices", "_lock")

    def __init__(self, config: Optional[Definition] = None, *, config_file: Optional[PathLike] = None, plugins: Sequence[PathLike] = ()):
        self._devices: Dict[Optional[str], Device] = {}
        self._lock = threading.Lock()
        packages = _backend_folders()
        paths = [os.fspath(path) for path in plugins]
        origins: List[Optional[str]] = [None] * len(paths) + [f"package {package}" for package, _ in packages]
        paths += [folder for _, folder in packages]
        listed, listed_origins = _library.texts(paths), _library.texts(origins)
        options = sized(_api.TenonContextOptions, config=definition_of(_with_log_level(config)), config_file=None if config_file is None else path_of(config_file),
                        plugins=ctypes.addressof(listed), plugin_count=len(paths), plugin_origins=ctypes.addressof(listed_origins))
        super().__init__(object_of(lib.tenon_context_create, ctypes.byref(options)))

    def device(self, name: DeviceLike = None) -> Device:
        """Opens a device by any name that docs/backends.md lists: "cpu", "cuda:1". None: the default device.

        Errors  DeviceNotFoundError with the list of devices.
        """
        if isinstance(name, Device):
            return name
        with self._lock:
            device = self._devices.get(name)
            if device is None or device.closed:
                device = self._devices[name] = Device(object_of(lib.tenon_device_open, self.handle, encoded(name)), self)
            return device

    def devices(self) -> List[Device]:
        """All devices, in the order of preference."""
        return [self.device(str(each["name"])) for each in self.describe_devices()]

    def describe_devices(self) -> List[Dict[str, Any]]:
        """What is known of each device without opening it: name, alias, backend, kind, product, memory, dtypes."""
        return list(json_of(lib.tenon_context_devices, self.handle))

    @property
    def config(self) -> str:
        """All keys of the configuration as YAML, each with where its value comes from."""
        return text_of(lib.tenon_context_config, self.handle)

    @property
    def load_report(self) -> Dict[str, Any]:
        """What became of each file that could be a backend: {"records": [...], "places": [...]}."""
        return dict(json_of(lib.tenon_context_load_report, self.handle))

    def close(self) -> None:
        """Closes the context and its devices. Tensors and models that were made with it keep what they need."""
        with self._lock:
            for device in self._devices.values():
                device.close()
            self._devices.clear()
        super().close()

    def __repr__(self) -> str:
        return "<tenon.Context, closed>" if self.closed else f"<tenon.Context {', '.join(str(d['name']) for d in self.describe_devices())}>"


_default: Optional[Context] = None
_default_lock = threading.Lock()


def default_context() -> Context:
    """The context that is used where none is given. It is made on its first use, by the environment and the defaults."""
    global _default
    context = _default
    if context is None or context.closed or context._born != _library.generation():
        with _default_lock:
            context = _default
            if context is None or context.closed or context._born != _library.generation():
                context = _default = Context()
    return context


def set_default_context(context: Optional[Context]) -> None:
    """Sets the context that is used where none is given; None: a new one is made on the next use."""
    global _default
    _default = context


def _forked() -> None:
    global _default_lock
    _default_lock = threading.Lock()  # another thread of the parent may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def device_of(device: DeviceLike, context: Optional[Context] = None) -> Optional[Device]:
    """The device of an argument `device`; None stays None."""
    if device is None or isinstance(device, Device):
        return device
    if not isinstance(device, str):
        raise TypeError(f"device: expected the name of a device, a tenon.Device or None, got {type(device).__name__}")
    return (context or default_context()).device(device)


def devices() -> List[Device]:
    """The devices of the default context, in the order of preference."""
    return default_context().devices()


def device(name: Optional[str] = None) -> Device:
    """Opens a device of the default context; None: the default device. Errors: DeviceNotFoundError."""
    return default_context().device(name)
