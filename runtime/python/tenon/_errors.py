# SPDX-License-Identifier: Apache-2.0
"""The exceptions of the package: one class for each status of the library, with the library's own sentences as text."""
from typing import Dict, Type

__all__ = ["Error", "InvalidArgumentError", "UnsupportedError", "OutOfMemoryError", "DeviceNotFoundError", "DeviceLostError",
           "IncompatibleError", "NotReadyError", "CancelledError", "VendorError", "InternalError", "ForkedError", "TraceError"]


class Error(Exception):
    """The base of all errors of Tenon. `status` is the name of the library's status, such as "INVALID_ARGUMENT"."""

    status = "INTERNAL"


class InvalidArgumentError(Error, ValueError):
    """An argument, a file or a definition is wrong. The text says what was expected and what was given."""

    status = "INVALID_ARGUMENT"


class UnsupportedError(Error, NotImplementedError):
    """The backend or the library does not offer what was asked for."""

    status = "UNSUPPORTED"


class OutOfMemoryError(Error, MemoryError):
    """Memory of the host or a device ran out. The text has the requested, live and peak bytes where they are known."""

    status = "OUT_OF_MEMORY"


class DeviceNotFoundError(Error, LookupError):
    """There is no device of this name. The text lists the devices that there are."""

    status = "DEVICE_NOT_FOUND"


class DeviceLostError(Error, RuntimeError):
    """The device has failed; it has to be opened again, in a new context."""

    status = "DEVICE_LOST"


class IncompatibleError(Error, RuntimeError):
    """Versions of the ABI, a driver or a vendor's library do not fit."""

    status = "INCOMPATIBLE"


class NotReadyError(Error, RuntimeError):
    """Work is still pending."""

    status = "NOT_READY"


class CancelledError(Error):
    """The run was cancelled."""

    status = "CANCELLED"


class VendorError(Error, RuntimeError):
    """A vendor's library failed. The text names the call and its code."""

    status = "VENDOR_ERROR"


class InternalError(Error, RuntimeError):
    """A mistake in Tenon or in a backend."""

    status = "INTERNAL"


class ForkedError(Error, RuntimeError):
    """The object belongs to the parent process; a child of fork() makes its own."""

    status = "FORKED"


class TraceError(InvalidArgumentError, TypeError):
    """A function of tenon.function, or one that tenon.grad differentiates, does what a program cannot: it reads the elements of a tensor that has
    none while the function is traced, or changes them in place. It has nothing to do with tenon.Trace."""


OF_STATUS: Dict[str, Type[Error]] = {
    kind.status: kind
    for kind in (InvalidArgumentError, UnsupportedError, OutOfMemoryError, DeviceNotFoundError, DeviceLostError, IncompatibleError,
                 NotReadyError, CancelledError, VendorError, InternalError, ForkedError)
}
