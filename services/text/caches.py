"""Caches of what was found in texts. They hold the texts themselves, so they can be dropped as a whole."""

from collections.abc import Callable
from functools import lru_cache
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_CLEAR: list[Callable[[], None]] = []


def text_cache(size: int) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Keep the results of a pure function of texts, the `size` used last."""

    def keep(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        cached = lru_cache(maxsize=size)(function)
        _CLEAR.append(cached.cache_clear)
        return cached  # type: ignore[return-value]  # typeshed's form of it loses the parameters

    return keep


def drop_texts() -> None:
    """Drop everything that is kept: a text in it may be one that a user has just had forgotten."""
    for clear in _CLEAR:
        clear()
