"""Origins of single values of core memory: the change of their section that brought each of them in. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from services.memory.blocks import Change


def values_of(content: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Each value of a section with its field; what is nested has a path of names."""
    for name, value in content.items():
        if isinstance(value, dict):
            for inner, text in values_of(value):
                yield f"{name}.{inner}", text
        else:
            for item in value if isinstance(value, list) else [value]:
                if item not in (None, ""):
                    yield name, str(item)


def origin_of(history: Sequence[Change], name: str, item: str) -> Change | None:
    """The change that brought a value in; the history is the newest first. None where it does not say."""
    for change in history:
        if (name, item) not in set(values_of(change.old or {})) and (name, item) in set(values_of(change.new)):
            return change
    return None
