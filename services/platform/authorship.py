"""Authorship: records which job, prompt and model make something derived, while it is being made."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

_DIGEST_CHARACTERS = 8


@dataclass
class Authorship:
    """The origin of one derived thing."""

    job: str | None = None
    """Name of the background task; None = it is made in a turn or by a command."""
    job_id: int | None = None
    prompt: str | None = None
    """Purpose and version of the last call's prompt, as in `merged_memory@1f2e3d4c`; None = no model was asked."""
    model: str | None = None

    @property
    def stored(self) -> dict[str, Any]:
        """Return the known fields in the form that is stored."""
        return {name: value for name, value in vars(self).items() if value is not None}


_CURRENT: ContextVar[Authorship | None] = ContextVar("authorship", default=None)


@contextmanager
def authoring_job(job: str, job_id: int) -> Iterator[None]:
    """Attribute what is made within the block, and in tasks begun in it, to a job."""
    with _set(Authorship(job, job_id)):
        yield


@contextmanager
def authoring() -> Iterator[Authorship]:
    """Record the origin of one derived thing: only model calls within the block count for it."""
    with _set(replace(_CURRENT.get() or Authorship(), prompt=None, model=None)) as made:
        yield made


@contextmanager
def _set(authorship: Authorship) -> Iterator[Authorship]:
    token = _CURRENT.set(authorship)
    try:
        yield authorship
    finally:
        _CURRENT.reset(token)


def note_call(model: str, purpose: str, instructions: str) -> None:
    """Record a model call and its prompt, whose version is a digest of its instructions."""
    if (current := _CURRENT.get()) is not None:
        current.model = model
        current.prompt = f"{purpose}@{sha256(instructions.encode()).hexdigest()[:_DIGEST_CHARACTERS]}"


def made_by(**more: Any) -> Mapping[str, Any]:
    """Return the origin of what is stored now, with further fields such as `actor` and `turn_id`. Ids are
    written as text; fields that are None are left out."""
    current = _CURRENT.get()
    known = {} if current is None else current.stored
    return known | {
        name: value if isinstance(value, (int, str)) else str(value)
        for name, value in more.items()
        if value is not None
    }
