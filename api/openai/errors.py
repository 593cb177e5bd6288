"""Errors as OpenAI's clients read them."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi.responses import JSONResponse
from pydantic import BaseModel

from api.problems import Problem, openai_error, status_of_failure
from services.errors import NotFound
from state.events import TurnEvent


class ModelNotFound(NotFound):
    """The model does not exist."""

    code = "model_not_found"


class _Error(BaseModel):
    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(BaseModel):
    """OpenAI's error document."""

    error: _Error


def documented_errors(*statuses: HTTPStatus) -> dict[int | str, dict[str, Any]]:
    """The OpenAPI document on these error answers."""
    everywhere = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS)
    return {int(status): {"description": status.phrase, "model": ErrorBody} for status in (*statuses, *everywhere)}


def response_of_failed(last: TurnEvent, headers: Mapping[str, str]) -> JSONResponse:
    """The response to a request whose turn ended with an error."""
    retry = {"Retry-After": "1"} if last.content["retryable"] else {}
    return JSONResponse(error_of_turn(last), status_of_failure(last.content["code"]), {**headers, **retry})


def error_of_turn(last: TurnEvent) -> dict[str, Any]:
    """The error document of a turn that ended with one."""
    code, message = last.content["code"], last.content["message"]
    return openai_error(Problem.of(status_of_failure(code), code, message, last.content.get("param")))
