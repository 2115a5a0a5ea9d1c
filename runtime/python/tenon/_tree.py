# SPDX-License-Identifier: Apache-2.0
"""Nested tuples, lists and dicts with tensors as leaves."""
from typing import Any, Callable, Hashable, List, Tuple

LEAF = "leaf"


def flatten(value: Any, leaves: List[Any]) -> Hashable:
    """Appends the leaves, in order, and returns the structure, which is hashable: what is no tuple, list or dict is a leaf."""
    kind = type(value)
    if kind is tuple or kind is list:
        return (kind, tuple([flatten(each, leaves) for each in value]))
    if kind is dict:
        return (kind, tuple([(key, flatten(each, leaves)) for key, each in value.items()]))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return (kind, tuple([flatten(each, leaves) for each in value]))
    if isinstance(value, dict):  # a class of dicts becomes a dict
        return (dict, tuple([(key, flatten(each, leaves)) for key, each in value.items()]))
    leaves.append(value)
    return LEAF


def unflatten(structure: Any, leaves: List[Any]) -> Any:
    """The nested value of a structure and its leaves."""
    made, used = _build(structure, leaves, 0)
    assert used == len(leaves)
    return made


def _build(structure: Any, leaves: List[Any], used: int) -> Tuple[Any, int]:
    if structure == LEAF:
        return leaves[used], used + 1
    kind, parts = structure
    if kind is dict:
        result = {}
        for key, part in parts:
            result[key], used = _build(part, leaves, used)
        return result, used
    items = []
    for part in parts:
        item, used = _build(part, leaves, used)
        items.append(item)
    return (kind(*items) if hasattr(kind, "_fields") else kind(items)), used


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """The nested value with the function's results as leaves."""
    leaves: List[Any] = []
    structure = flatten(value, leaves)
    return unflatten(structure, [function(each) for each in leaves])
