# SPDX-License-Identifier: Apache-2.0
"""Definitions of layers, losses, optimizers: the maps of a YAML file, shown as the call that made them."""
from typing import Any, Dict


class Definition(Dict[str, Any]):
    """A map of a model.yaml or train.yaml, such as {"dense": {"units": 10}} or {"name": "adam", "learning_rate": 0.01}."""

    def __init__(self, own_key: str, name: str, keys: Dict[str, Any]):
        given = {key: value for key, value in keys.items() if value is not None}
        super().__init__({own_key: name, **given} if own_key else {name: given})
        self._shown = f"{name}({', '.join(f'{key}={value!r}' for key, value in given.items())})"

    def __repr__(self) -> str:
        return self._shown
