"""Caches of what was found in texts. They hold the texts themselves, so `drop_texts` can empty them all."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache
from threading import Lock
from typing import Generic, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_CLEAR: list[Callable[[], None]] = []


def text_cache(size: int) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Keep the results of a pure function of texts for the `size` arguments that were used last."""

    def keep(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        cached = lru_cache(maxsize=size)(function)
        _CLEAR.append(cached.cache_clear)
        return cached  # type: ignore[return-value]  # typeshed's type of `lru_cache` loses the parameters

    return keep


class Found(Generic[Result]):
    """Remembers what was found in each of the `size` texts that were looked at last."""

    def __init__(self, size: int, find: Callable[[list[str]], Sequence[Result]]) -> None:
        """Take `find`, which returns one result for each of the texts it is given."""
        self._size = size
        self._find = find
        self._kept: OrderedDict[str, Result] = OrderedDict()
        self._alone = Lock()
        _CLEAR.append(self._drop)

    def of(self, texts: Sequence[str]) -> list[Result]:
        """Return what is found in each text; the texts that are not remembered are looked through in one call."""
        with self._alone:
            known = {text: self._kept[text] for text in texts if text in self._kept}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        known.update(zip(missing, self._find(missing), strict=True) if missing else ())
        with self._alone:
            for text, found in known.items():
                self._kept[text] = found
                self._kept.move_to_end(text)
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)
        return [known[text] for text in texts]

    def _drop(self) -> None:
        with self._alone:
            self._kept.clear()


def drop_with_texts(clear: Callable[[], None]) -> None:
    """Also call `clear` whenever texts are dropped, because what it clears holds texts too."""
    _CLEAR.append(clear)


def drop_texts() -> None:
    """Empty all caches: a text in one may be a text that a user has just had forgotten."""
    for clear in _CLEAR:
        clear()
