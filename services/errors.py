"""Every error that the service raises on purpose.

    AnamnesisError
    ├── CallerError             the caller can mend it
    │   ├── InvalidInput        a value is wrong; names the field
    │   ├── Unauthenticated     who calls is not known
    │   ├── Forbidden           the caller may not do this
    │   ├── NotFound            it is not there, or it belongs to somebody else
    │   ├── RateLimited         too many requests; carries when to come back
    │   └── Conflict            it does not fit what is there
    ├── Unavailable             it may work later
    │   ├── DatabaseUnavailable
    │   └── ModelFailed         the language model's endpoint; carries how it failed
    ├── BadModelOutput          a model answered, but not what it was asked for
    └── ConfigurationError      the operator can mend it; stops the start

Anything else that is raised is a defect of ours. `api/problems.py` maps these to HTTP.
"""

from typing import ClassVar, Literal


class AnamnesisError(Exception):
    """Something went wrong."""

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str | None = None) -> None:
        self.message = message or (type(self).__doc__ or "").strip()
        super().__init__(self.message)


class CallerError(AnamnesisError):
    """The request cannot be carried out as it is."""

    code = "bad_request"


class InvalidInput(CallerError):
    """A value of the request is wrong."""

    code = "invalid_input"

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(message)


class Unauthenticated(CallerError):
    """Who calls is not known."""

    code = "unauthenticated"


class Forbidden(CallerError):
    """The caller may not do this."""

    code = "forbidden"


class NotFound(CallerError):
    """There is no such thing here."""

    code = "not_found"


class RateLimited(CallerError):
    """Too many requests."""

    code = "rate_limited"
    retryable = True

    def __init__(self, retry_after_s: int) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(f"Too many requests; try again in {retry_after_s} s.")


class Conflict(CallerError):
    """This does not fit what is there already."""

    code = "conflict"


class Unavailable(AnamnesisError):
    """Something that this needs does not answer; try again later."""

    code = "unavailable"
    retryable = True


class DatabaseUnavailable(Unavailable):
    """The database does not answer; try again in a moment."""

    code = "database_unavailable"


ModelFailure = Literal[
    "llm_unreachable",
    "llm_timeout",
    "llm_unauthorized",
    "llm_rate_limited",
    "llm_rejected",
    "llm_server_error",
    "llm_bad_response",
    "llm_stream_broken",
    "llm_wrong_api",
]

MODEL_FAILURES: dict[ModelFailure, tuple[bool, str]] = {
    "llm_unreachable": (True, "The language model cannot be reached."),
    "llm_timeout": (True, "The language model did not answer in time."),
    "llm_unauthorized": (False, "The language model refused our key."),
    "llm_rate_limited": (True, "The language model is at its rate limit."),
    "llm_rejected": (False, "The language model refused the request."),
    "llm_server_error": (True, "The language model's server failed."),
    "llm_bad_response": (True, "The language model answered something that is not an answer."),
    "llm_stream_broken": (True, "The language model's answer broke off."),
    "llm_wrong_api": (
        False,
        "The language model's endpoint does not know the Responses API; set ANAMNESIS_LLM_API=chat.",
    ),
}
"""For each way in which a model fails: whether trying again may help, and what the caller is told.

The texts are fixed, so that nothing an endpoint answers (a key, a prompt) reaches a caller.
"""


class ModelFailed(Unavailable):
    """The language model failed."""

    def __init__(self, failure: ModelFailure, detail: str = "", *, begun: bool = False) -> None:
        """Take what happened; `detail` is for the log only, `begun` = text had arrived before it."""
        self.failure = failure
        self.detail = detail
        self.begun = begun
        self.can_retry, text = MODEL_FAILURES[failure]
        super().__init__(text)


class BadModelOutput(AnamnesisError):
    """A language model's answer is not what it was asked for."""

    code = "bad_model_output"


class ConfigurationError(AnamnesisError):
    """A setting is wrong."""

    code = "configuration"
