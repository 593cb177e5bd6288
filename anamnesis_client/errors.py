"""Errors that a call can raise.

ClientError
├── Unreachable      no answer, or one that broke off and could not be taken up again
├── ServiceError     the service refused; carries its problem document
└── TurnFailed       a turn was accepted and ended with an error
"""

from collections.abc import Mapping
from typing import Any


class ClientError(Exception):
    """The base of all errors of this client."""


class Unreachable(ClientError):
    """The service does not answer."""

    timed_out = False
    """Whether the service accepted the request and was then silent for too long."""


class ServiceError(ClientError):
    """The service refused a request."""

    def __init__(self, status: int, code: str, detail: str, retry_after_s: float | None = None) -> None:
        self.status = status
        """HTTP status of the refusal."""
        self.code = code
        """Code of the error, such as `not_found`, `invalid_input` or `busy`."""
        self.detail = detail
        self.retry_after_s = retry_after_s
        """Seconds after which to try again, if the service says so."""
        super().__init__(f"{status} {code}: {detail}")


class TurnFailed(ClientError):
    """A turn ended with an error."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.code = str(content.get("code", ""))
        self.message = str(content.get("message", ""))
        self.retryable = bool(content.get("retryable"))
        """Whether the same message may succeed when it is sent again."""
        self.turn_id = content.get("turn_id")
        self.partial_answer = content.get("answer")
        """The part of the answer that had arrived."""
        super().__init__(f"{self.code}: {self.message}")
