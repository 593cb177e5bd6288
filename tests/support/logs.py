"""Restores the configuration of logs, whatever a test's command changed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import structlog

_configure = structlog.configure


@contextmanager
def logs_as_before() -> Iterator[None]:
    """Undo what the block configures; a logger would otherwise keep it from its first use on."""
    before = structlog.get_config()
    structlog.configure = cast(Any, _configure_for_now)
    try:
        yield
    finally:
        structlog.configure = _configure
        structlog.configure(**before)


def _configure_for_now(**options: Any) -> None:
    _configure(**{**options, "cache_logger_on_first_use": False})
