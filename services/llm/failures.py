"""Tell how a language model failed from what its client raised."""

import aiohttp
import httpx2
import openai

from services.errors import ModelFailed, ModelFailure
from services.llm.answer_events import AnswerFailed
from services.llm.lean_openai import StreamBroken

EXPECTED = (openai.OpenAIError, httpx2.HTTPError, ValueError, TypeError, KeyError, TimeoutError)
"""What the client raises when the endpoint, and not our code, is at fault: transport errors, error
statuses, and answers that are not of the API's shape."""

_TOO_MANY = 429
_NOT_FOUND = (404, 405)
_SERVER_ERROR = 500


def failure_of(error: Exception, *, responses_api: bool, begun: bool) -> ModelFailed:
    """Classify `error`; `begun` says whether text of the answer had arrived before it."""
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
        case openai.APIError() | AnswerFailed():
            failure = "llm_server_error"
        case _:
            failure = "llm_bad_response"
    return ModelFailed(failure, f"{type(error).__name__}: {error}", begun=begun)


def _of_status(error: openai.APIStatusError, *, responses_api: bool) -> ModelFailure:
    if error.status_code == _TOO_MANY:
        return "llm_rate_limited"
    if error.status_code in _NOT_FOUND and responses_api and error.code != "model_not_found":
        return "llm_wrong_api"
    return "llm_server_error" if error.status_code >= _SERVER_ERROR else "llm_rejected"


def _disconnected(error: BaseException) -> bool:
    """Whether the cause is a refused or broken connection: the transport reports some as time-outs."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, aiohttp.ClientConnectionError) and not isinstance(cause, TimeoutError):
            return True
        cause = cause.__cause__
    return False
