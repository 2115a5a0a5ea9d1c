# SPDX-License-Identifier: Apache-2.0
"""Definitions of layers, losses, optimizers: the maps of a YAML file, shown as the call that made them."""
from typing import Any, Dict

from ._library import check, definition_of, encoded, lib

_OWN_KEY = {"layer": "", "callback": "", "schedule": "schedule"}  # of the name; of others: "name"
_UNCHECKED = ("metric", )  # what it means depends on the loss


class Definition(Dict[str, Any]):
    """A map of a model.yaml or train.yaml, such as {"dense": {"units": 10}} or {"name": "adam", "learning_rate": 0.01}.

    Errors  InvalidArgumentError: what the reader of such files refuses, with the key and what was expected.
    """

    def __init__(self, kind: str, name: str, keys: Dict[str, Any]):
        given = {key: value for key, value in keys.items() if value is not None}
        own_key = _OWN_KEY.get(kind, "name")
        super().__init__({own_key: name, **given} if own_key else {name: given})
        self._shown = f"{name}({', '.join(f'{key}={value!r}' for key, value in given.items())})"
        if kind not in _UNCHECKED:
            check(lib.tenon_definition_check(encoded(kind), definition_of(self)))

    def __repr__(self) -> str:
        return self._shown
