"""Objects of dataclasses made of the JSON that the core writes.

A field is what its type says: a dataclass, a tuple, a named tuple of a list, an instant of nanoseconds, a path of a
text, any of them or `None`; everything else stays what JSON has.
"""

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from flashlore.errors import ResultsError
from flashlore.moment import Time

T = TypeVar("T")

_MADE: dict[Any, Callable[[Any], object]] = {Time: Time.from_ns, Path: Path}


def from_tree(kind: type[T], tree: object, path: str = "", *, more: bool = False) -> T:
    """Make an object of a dataclass of a tree of JSON, whose keys must be its fields, or `more` than these."""
    if not isinstance(tree, dict):
        raise ResultsError(f"{path or 'the record'} is {tree!r}, expected an object")
    types = _fields(kind)  # type: ignore[arg-type]
    if not more and (unknown := sorted(set(tree) - set(types))):
        raise ResultsError(f"{_join(path, unknown[0])} is no field of a record")
    values = {}
    for name, (type_, required) in types.items():
        if name in tree:
            values[name] = _value(type_, tree[name], _join(path, name), more=more)
        elif required:
            raise ResultsError(f"{_join(path, name)} is missing")
    return kind(**values)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


@cache
def _fields(kind: type) -> dict[str, tuple[Any, bool]]:
    types = get_type_hints(kind)
    return {field.name: (types[field.name], field.default is MISSING) for field in fields(kind) if field.init}


def _value(type_: Any, value: Any, path: str, *, more: bool) -> object:
    if get_origin(type_) is UnionType:
        return None if value is None else _value(get_args(type_)[0], value, path, more=more)
    if get_origin(type_) is tuple and isinstance(value, list):
        item, *rest = get_args(type_)
        items = [item] * len(value) if rest == [...] else [item, *rest]
        return tuple(_value(item, inner, path, more=more) for item, inner in zip(items, value, strict=True))
    if is_dataclass(type_) and isinstance(type_, type):
        return from_tree(type_, value, path, more=more)
    if hasattr(type_, "_make"):
        return type_._make(value)
    return _MADE[type_](value) if type_ in _MADE else value
