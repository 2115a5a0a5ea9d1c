# SPDX-License-Identifier: Apache-2.0
"""The library's log, sent to Python's logging.

    import tenon
    tenon.log.to_logging(level="info")      # lines of the library become records of logging.getLogger("tenon")

Without this call the log goes to stderr, or to the file of the configuration key logging.file.
"""
import atexit
import ctypes
import gc
import logging
from typing import Any, Optional, Union

from ._errors import InvalidArgumentError
from ._library import check, lib

__all__ = ["NOTICE", "set_level", "to_logging", "to_stderr"]

NOTICE = 60
"""The level of text that a configuration key asked for, such as log_device_placement: above all others, so that no filter drops it."""

_LEVELS = {"debug": 0, "info": 1, "warning": 2, "error": 3}  # the TENON_LOG_* of tenon/backend.h
_OF_LOGGING = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_NUMBERS = {_LEVELS[name]: number for name, number in _OF_LOGGING.items()}
_Sink = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_char_p)
_level: Optional[str] = None  # of set_level()
_sink: Any = None  # the function that the library calls, or None; the library has its address


def to_logging(logger: Union[str, logging.Logger] = "tenon", level: Optional[str] = None) -> logging.Logger:
    """Sends the log of the library to a logger of Python's logging, and returns the logger.

    logger  a logger, or its name.
    level   as in set_level(); also the level of the logger. None: both stay as they are.
    Errors  InvalidArgumentError: an unknown level. Threads: any; records come from the thread that logs.

    A handler must not call Tenon.
    """
    global _sink
    target = logging.getLogger(logger) if isinstance(logger, str) else logger
    logging.addLevelName(NOTICE, "NOTICE")
    if level is not None:
        set_level(level)
        target.setLevel(_OF_LOGGING[level])

    def sink(_: Any, code: int, text: bytes) -> None:
        # The library holds a lock of its log. Objects of Tenon that the collector finds must not be released here, since that may log too.
        collects = gc.isenabled()
        gc.disable()
        try:
            target.log(_NUMBERS.get(code, NOTICE), "%s", text.decode(errors="replace"))
        finally:
            if collects:
                gc.enable()

    made = _Sink(sink)
    check(lib.tenon_log_set_sink(made, None))
    _sink = made  # the previous one is no longer called
    return target


def to_stderr() -> None:
    """Sends the log to stderr again, or to the file of logging.file."""
    global _sink
    check(lib.tenon_log_set_sink(None, None))
    _sink = None


def set_level(level: str) -> None:
    """Logs lines of this level and above: "debug", "info", "warning" (the default) or "error". It goes before the environment and files, also
    for contexts that are created later; the key logging.level in the dict of a Context goes before it. A context whose configuration is YAML
    text sets the level of that text, of the environment or of files.

    Errors  InvalidArgumentError: another level.
    """
    global _level
    if level not in _LEVELS:
        raise InvalidArgumentError(f"level: expected one of {', '.join(_LEVELS)}, got '{level}'")
    check(lib.tenon_log_set_level(_LEVELS[level]))
    _level = level


def with_level(config: Any) -> Any:
    """The configuration of a new context with the level that set_level() chose: the library would set that of the configuration."""
    if _level is None or isinstance(config, str):
        return config
    logging_keys = dict((config or {}).get("logging") or {})
    return {**(config or {}), "logging": {"level": _level, **logging_keys}}


@atexit.register
def _end() -> None:
    """Threads of the library may log after the interpreter has ended."""
    if _sink is not None:
        to_stderr()
