"""Structured logs: ids, never message text."""

import io
import logging
import sys
from typing import Literal, TextIO, cast

import structlog

from services.platform.tracing import add_trace_id

_LIBRARIES = {
    # An unreachable collector must not flood the log.
    "opentelemetry": logging.ERROR,
    "httpx": logging.WARNING,
    "httpx2": logging.WARNING,
    "alembic": logging.WARNING,
    "procrastinate": logging.WARNING,
    # The service logs a job's failure and a worker's end itself, once and without a traceback.
    "procrastinate.worker": logging.CRITICAL,
    "procrastinate.utils": logging.CRITICAL,
    "uvicorn": logging.WARNING,
    "uvicorn.access": logging.ERROR,
    # The pool reports each connection that a database restart broke, with a traceback; the service reports the
    # turn.
    "psycopg.pool": logging.ERROR,
    # It also reports each query that was given up, for example when a client goes away.
    "psycopg": logging.ERROR,
}


class _StandardError(io.TextIOBase):
    """The standard error of the moment: loggers live longer than a replaced stream."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


_STDERR = cast("TextIO", _StandardError())


def configure_logs(form: Literal["console", "json"], level: str) -> None:
    """Send the service's logs, and the libraries' warnings, to standard error."""
    # Plain tracebacks, because pretty ones show local variables, and with them keys and message text.
    rendering: list[structlog.typing.Processor] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(ensure_ascii=False)]
        if form == "json"
        else [
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
            )
        ]
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            add_trace_id,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *rendering,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(_STDERR),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(
        stream=_STDERR, level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    for name, threshold in _LIBRARIES.items():
        logging.getLogger(name).setLevel(threshold)
