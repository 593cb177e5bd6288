"""What a search reads of items, and how near each is to what is sought."""

import base64
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from langgraph.store.base import get_text_at_path, tokenize_path

from services.errors import InvalidInput
from services.text.tokenizer import terms

LONGEST_TEXT = 8_000
"""Characters of an item that are embedded."""
_MOST_PATHS, _LONGEST_PATH = 50, 200
_STORED = np.float16


def checked_paths(index: Any) -> list[str] | None:
    """Return the paths that are stored: None = every text, an empty list = nothing.

    Raises:
        InvalidInput: one is no path.
    """
    if index is None or index is False:
        return None if index is None else []
    for path in index:
        if not path or len(path) > _LONGEST_PATH or "\x00" in path:
            raise InvalidInput("index", f"{path[:80]!r} is no path")
    if len(index) > _MOST_PATHS:
        raise InvalidInput("index", f"names more than {_MOST_PATHS} paths")
    return list(index)


def text_of(value: dict[str, Any], paths: Sequence[str] | None) -> str:
    """Return what a search reads of a value."""
    if paths is None:
        return "\n".join(_texts(value))[:LONGEST_TEXT]
    found = (text for path in paths for text in get_text_at_path(value, tokenize_path(path)))
    return "\n".join(found)[:LONGEST_TEXT]


def packed(vector: Sequence[float]) -> str:
    """Return a vector as it is stored."""
    return base64.b64encode(np.asarray(vector, _STORED).tobytes()).decode()


def nearness(vectors: Sequence[str], sought: Sequence[float]) -> list[float]:
    """Return the cosine of each stored vector with one that is sought; both are of length 1."""
    if not vectors:
        return []
    rows: npt.NDArray[np.float32] = (
        np.frombuffer(b"".join(base64.b64decode(each) for each in vectors), _STORED)
        .reshape(len(vectors), -1)
        .astype(np.float32)
    )
    return [float(each) for each in rows @ np.asarray(sought, np.float32)]


def shared_terms(text: str, query: str) -> float:
    """Return the share of a query's terms that a text has: in place of nearness, while no encoder answers."""
    wanted = set(terms(query))
    return len(wanted & set(terms(text))) / len(wanted) if wanted else 0.0


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
