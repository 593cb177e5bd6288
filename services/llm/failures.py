"""Classifies the failure of a language model from the exception that its client raised."""

from collections.abc import Collection, Iterable
from typing import Any

import aiohttp
import httpx2
import openai

from services.errors import ModelFailed, ModelFailure, RefusalTopic
from services.llm.endpoint_messages import endpoint_message, for_log, retry_after, topic_of
from services.llm.lean_openai import StreamBroken
from services.llm.request_form import OPTION_OF, is_unsupported, refused_parameter

EXPECTED = (openai.OpenAIError, httpx2.HTTPError, ValueError, TypeError, KeyError, TimeoutError)
"""Exceptions caused by the endpoint, not by this code: transport errors, error statuses, and responses that do not
have the API's shape."""

_TOO_MANY = 429
_NOT_FOUND = (404, 405)
_SERVER_ERROR = 500
_INVALID = (400, 422)
_REFUSED: dict[RefusalTopic, ModelFailure] = {
    "content": "llm_content_refused",
    "images": "llm_no_images",
    "context": "llm_context_too_long",
    "tools": "llm_tools_refused",
    "messages": "llm_messages_refused",
    "model": "llm_model_unknown",
    "credit": "llm_no_credit",
    "rate": "llm_rate_limited",
}
_WITH_ANY_STATUS: frozenset[RefusalTopic | None] = frozenset(
    {"content", "images", "context", "tools", "messages", "schema", "credit", "rate"}
)
"""Refusals that some servers report as server errors, or inside the stream."""


def failure_of(
    error: Exception,
    *,
    responses_api: bool,
    begun: bool,
    sent: Collection[str] = (),
    sampling: Collection[str] = (),
    secrets: Iterable[str] = (),
    prompt: Iterable[str] = (),
) -> ModelFailed:
    """Classify `error`.

    Args:
        error: One of `EXPECTED`.
        sent: Names of the options in the request; one that was not sent cannot have been refused.
        sampling: Names of the caller's own parameters in the request.
        secrets: Removed from the endpoint's message, like quotations of the `prompt`.
    """
    message = endpoint_message(error)
    topic = _topic(error, message, images="images" in sent)
    if begun and topic != "content":
        topic = None
    shown = for_log(message, secrets, prompt)
    about_messages = topic in {"content", "images"}
    if sampling and not (begun or about_messages) and (parameter := _parameter(error, message, topic, sampling)):
        unknown: RefusalTopic | None = "parameter" if is_unsupported(message) else None
        return ModelFailed("llm_parameter_refused", shown, parameter=parameter, topic=unknown)
    missed = topic == "reasoning" and "bare_calls" in sent
    if topic in OPTION_OF and topic != "messages" and OPTION_OF[topic] not in sent and not missed:
        topic = None
    if topic:
        failure = _REFUSED.get(topic, "llm_rejected")
    else:
        failure = _failure(error, responses_api=responses_api, begun=begun)
    return ModelFailed(failure, shown, begun=begun, topic=topic, retry_after_s=retry_after(error, message))


def _failure(error: Exception, *, responses_api: bool, begun: bool) -> ModelFailure:
    failure: ModelFailure
    match error:
        case StreamBroken():
            failure = "llm_stream_broken"
        case openai.APITimeoutError() | TimeoutError() if not _disconnected(error):
            failure = "llm_timeout"
        case openai.APIConnectionError() | httpx2.HTTPError():
            failure = "llm_stream_broken" if begun else "llm_unreachable"
        case openai.AuthenticationError() | openai.PermissionDeniedError():
            failure = "llm_unauthorized"
        case openai.APIStatusError():
            failure = _of_status(error, responses_api=responses_api)
        case openai.APIError():
            failure = "llm_server_error"
        case _:
            failure = "llm_bad_response"
    return failure


def _topic(error: Exception, message: str, *, images: bool) -> RefusalTopic | None:
    """Return what the endpoint refuses; None if nothing in particular."""
    match error:
        case openai.APIConnectionError() | StreamBroken():
            return None
        case openai.APIStatusError(status_code=402):
            return "credit"
        case openai.AuthenticationError() | openai.PermissionDeniedError() | openai.RateLimitError():
            topic = topic_of(message, _code(error))
            return topic if topic in {"credit", "content"} else None
        case openai.APIStatusError(status_code=status) if status < _SERVER_ERROR:
            parameter = error.param if isinstance(error.param, str) else None
            return topic_of(message, _code(error), parameter, images=images)
        case openai.APIError():
            topic = topic_of(message, _code(error), images=images)
            return topic if topic in _WITH_ANY_STATUS else None
        case _:
            return None


def _code(error: openai.APIError) -> str:
    """Return the codes that an error gives, under any of the usual names."""
    body: dict[str, Any] = error.body if isinstance(error.body, dict) else {}
    if isinstance(inner := body.get("error"), dict):
        body = inner
    named = {error.code, error.type, *(body.get(name) for name in ("code", "type", "error_code", "status_code"))}
    return " ".join(str(each) for each in named if each)


def _parameter(
    error: Exception, message: str, topic: RefusalTopic | None, sampling: Collection[str]
) -> str | None:
    """Return the parameter of the caller that the endpoint refuses; None if it refuses something else."""
    refused = isinstance(error, openai.APIStatusError) and error.status_code in _INVALID
    if not refused and topic != "schema":  # some servers report schemas that they cannot follow as their own error
        return None
    named = getattr(error, "param", None)
    text = f"{named if isinstance(named, str) else ''} {message}"
    # A limit of the answer's length that exceeds the context window is the caller's, not the prompt's.
    return refused_parameter(text, sampling, limits_only=topic == "context")


def _of_status(error: openai.APIStatusError, *, responses_api: bool) -> ModelFailure:
    if error.status_code == _TOO_MANY:
        return "llm_rate_limited"
    if error.status_code in _NOT_FOUND and responses_api:
        return "llm_wrong_api"
    return "llm_server_error" if error.status_code >= _SERVER_ERROR else "llm_rejected"


def _disconnected(error: BaseException) -> bool:
    """Return whether the cause is a refused or broken connection; the transport reports some of these as
    time-outs."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, aiohttp.ClientConnectionError) and not isinstance(cause, TimeoutError):
            return True
        cause = cause.__cause__
    return False
