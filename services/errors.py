"""Every error that the service raises on purpose.

A caller can fix the cause of a `CallerError`; after `Unavailable`, trying again later may help; an operator can
fix the cause of a `ConfigurationError`, which stops the start. Any other exception is a defect of the service.
`api/problems.py` maps these errors to HTTP. Whatever reads or writes the database may raise `DatabaseUnavailable`:
docstrings name it only if there is more to say about it.
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


class RequestBudgetExceeded(CallerError):
    """The request's own budget does not hold an answer."""

    code = "request_budget_exceeded"

    def __init__(self, limit: str, most: str, needed: int | None = None) -> None:
        """Take the limit's name and value, and the least tokens that would suffice, if known."""
        least = f"; it takes {needed} or more" if needed is not None else ""
        super().__init__(f"The budget of this request ({limit}={most}) was used up before any answer{least}.")


class NotFound(CallerError):
    """The thing that is named does not exist."""

    code = "not_found"


class BrokenReference(NotFound):
    """The owner of this was just removed, or the thing to be removed is in use; nothing was changed."""

    def __init__(self, constraint: str | None = None) -> None:
        """Take the name of the database's constraint that was violated."""
        self.constraint = constraint
        super().__init__("What this belongs to was removed at this moment; nothing was changed.")


class RateLimited(CallerError):
    """Too many requests."""

    code = "rate_limited"
    retryable = True

    def __init__(self, retry_after_s: int) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(f"Too many requests; try again in {retry_after_s} s.")


class BudgetExhausted(RateLimited):
    """The tokens of the day are used up."""

    code = "budget_exhausted"

    def __init__(self, whose: str, retry_after_s: int) -> None:
        super().__init__(retry_after_s)
        self.message = f"The {whose}'s tokens of today are used up; the next day begins in {retry_after_s} s."


class Conflict(CallerError):
    """This does not fit what is there already."""

    code = "conflict"


class ConversationExists(Conflict):
    """The conversation has begun already."""


class Unavailable(AnamnesisError):
    """Something that this needs does not answer; try again later."""

    code = "unavailable"
    retryable = True


class Busy(Unavailable):
    """As many turns run here as may; try again in a moment."""

    code = "busy"


class DatabaseUnavailable(Unavailable):
    """The database does not answer; try again in a moment."""

    code = "database_unavailable"


class DatabaseContended(DatabaseUnavailable):
    """Another change of the same data was in the way; try again in a moment."""


class EmbeddingFailed(Unavailable):
    """The embedding endpoint does not answer, or not with embeddings."""

    def __init__(self, advice: str, detail: str) -> None:
        """Take what to change, and the endpoint's own message without secrets, for logs and administrators."""
        self.advice = advice
        self.detail = detail
        super().__init__()


ModelFailure = Literal[
    "llm_unreachable",
    "llm_timeout",
    "llm_unauthorized",
    "llm_rate_limited",
    "llm_no_credit",
    "llm_rejected",
    "llm_model_unknown",
    "llm_context_too_long",
    "llm_content_refused",
    "llm_no_images",
    "llm_tools_refused",
    "llm_messages_refused",
    "llm_server_error",
    "llm_bad_response",
    "llm_only_reasoning",
    "llm_stream_broken",
    "llm_wrong_api",
    "llm_parameter_refused",
    "llm_own_address",
]

RefusalTopic = Literal[
    "content",
    "images",
    "context",
    "tools",
    "messages",
    "temperature",
    "schema",
    "model",
    "stream_options",
    "reasoning",
    "credit",
    "rate",
    "parameter",
    "unnamed",
    "calls",
]
"""Part of a request that an endpoint may refuse, or what it lacks to answer any request. `parameter` is a
parameter of the caller that the endpoint does not know; `unnamed` a part that it does not name; `calls` are
calls of the model that cannot be run as they are written."""

MODEL_FAILURES: dict[ModelFailure, tuple[bool, str]] = {
    "llm_unreachable": (True, "The language model cannot be reached; is ANAMNESIS_LLM_BASE_URL right?"),
    "llm_timeout": (True, "The language model did not answer in time (ANAMNESIS_LLM_TIMEOUT_S)."),
    "llm_unauthorized": (
        False,
        "The language model's endpoint refused the service's key; check ANAMNESIS_LLM_API_KEY.",
    ),
    "llm_rate_limited": (True, "The language model is at its rate limit."),
    "llm_no_credit": (
        False,
        "The account with the language model's provider has no credit left; top it up there, or check whose key "
        "ANAMNESIS_LLM_API_KEY is.",
    ),
    "llm_rejected": (False, "The language model refused the request; the service's log says why."),
    "llm_model_unknown": (
        False,
        "The language model's endpoint does not know the model, or not for this key; check ANAMNESIS_LLM_MODEL, "
        "or the expert's model.",
    ),
    "llm_context_too_long": (
        False,
        "The prompt is too long for the language model, and its message is left out from now on; send a shorter "
        "one, or lower ANAMNESIS_CONTEXT_BUDGET_TOKENS.",
    ),
    "llm_content_refused": (
        False,
        "The content filter of the language model's provider refused the message; it is left out from now on. Say "
        "it in other words, or say something else.",
    ),
    "llm_no_images": (
        False,
        "The language model did not take the message's images; they are left out from now on. Send text alone, or "
        "have a model answer that takes images.",
    ),
    "llm_tools_refused": (False, "The language model takes no tools; set ANAMNESIS_LLM_TOOLS=auto or off."),
    "llm_messages_refused": (
        False,
        "The language model's chat template refused the order or the roles of the messages; set "
        "ANAMNESIS_LLM_MESSAGES=compatible.",
    ),
    "llm_server_error": (True, "The language model's server failed."),
    "llm_bad_response": (True, "The language model answered something that is not an answer; try again."),
    "llm_only_reasoning": (
        False,
        "The language model used all of its tokens up before it answered; raise ANAMNESIS_LLM_ANSWER_TOKENS, or "
        "have it think less.",
    ),
    "llm_stream_broken": (True, "The language model's answer broke off."),
    "llm_wrong_api": (
        False,
        "The language model's endpoint does not know the Responses API; set ANAMNESIS_LLM_API=chat.",
    ),
    "llm_parameter_refused": (False, "The language model refused a parameter of the request"),
    "llm_own_address": (
        False,
        "The language model's address leads to an Anamnesis service, which would ask itself without end; set "
        "ANAMNESIS_LLM_BASE_URL to a model's own.",
    ),
}
"""For each failure of a model: whether trying again may help, and the text for callers, which names the setting.

The texts are fixed, so that nothing an endpoint answers (a key, a prompt) reaches a caller. A parameter that the
caller sent is an exception: the endpoint's words about it follow, without secrets and quotations of the prompt.
"""

ON_THE_SCREEN: dict[ModelFailure, str] = {
    "llm_unreachable": "The language model cannot be reached; is its address right? The console's screen Model "
    "changes it.",
    "llm_unauthorized": "The language model's endpoint refused the key; give another on the console's "
    "screen Model.",
    "llm_no_credit": "The account with the language model's provider has no credit left; top it up there, or give "
    "another key on the console's screen Model.",
    "llm_model_unknown": "The language model's endpoint does not know the model, or not for this key; choose "
    "another on the console's screen Model, or for the expert.",
    "llm_own_address": "The language model's address leads to an Anamnesis service, which would ask itself "
    "without end; give a model's own on the console's screen Model.",
}
"""Texts for failures of a model that was chosen in the console, in place of those that name a variable."""


OF_THE_MESSAGE: frozenset[str] = frozenset({"llm_content_refused", "llm_context_too_long"})
"""Failures after which no later prompt shows the message, because it would be refused again."""
OF_THE_INPUT: frozenset[str] = OF_THE_MESSAGE | {"llm_no_images", "llm_parameter_refused"}
"""Failures caused by what the caller sent."""


class ModelFailed(Unavailable):
    """The language model failed."""

    def __init__(
        self,
        failure: ModelFailure,
        detail: str = "",
        *,
        begun: bool = False,
        topic: RefusalTopic | None = None,
        parameter: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        """Describe how the model failed.

        Args:
            detail: The endpoint's own message, without secrets; for logs and administrators.
            begun: Whether text of the answer had arrived before.
            topic: The part of the request that was refused, if it is known.
            parameter: The caller's parameter that was refused.
            retry_after_s: Seconds after which the endpoint wants to be asked again, if it says so.
        """
        self.failure = failure
        self.detail = detail
        self.begun = begun
        self.topic = topic
        self.parameter = parameter
        self.retry_after_s = retry_after_s
        self.can_retry, text = MODEL_FAILURES[failure]
        super().__init__(f"{text} ({parameter}): {detail}" if parameter else text)

    def name_screen(self) -> None:
        """Name the console's screen instead of a variable."""
        self.message = ON_THE_SCREEN.get(self.failure, self.message)

    def add_proxy(self, words: str) -> None:
        """Add the proxy through which the endpoint was asked."""
        self.message += words
        self.detail += words


class BadModelOutput(AnamnesisError):
    """A language model's answer is not what it was asked for."""

    code = "bad_model_output"


class ConfigurationError(AnamnesisError):
    """A setting is wrong."""

    code = "configuration"
