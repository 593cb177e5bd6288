"""Asks a model for an answer of a certain form: checks it, retries once with the error, then gives up."""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

import structlog
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, ValidationError

from services.errors import BadModelOutput, ModelFailed, ModelFailure
from services.llm.chat_models import ChatModels
from services.llm.json_text import json_values
from services.platform.authorship import note_call
from services.text.language import Language, language_of

Made = TypeVar("Made")
Form = TypeVar("Form", bound=BaseModel)

_TRIES = 2
_LONGEST_REPEATED = 2000
"""Characters of a refused answer that the model is shown again."""
_NO_ANSWERS: frozenset[ModelFailure] = frozenset({"llm_stream_broken", "llm_bad_response"})
"""Failures in which the model answered, but the answer cannot be used."""
_AGAIN: dict[Language, str] = {
    "zh": "这个回答不能用：{reason}。请改正后重新回答，只输出所要求的内容。",
    "en": "This answer cannot be used: {reason}. Correct it and answer again, with nothing else.",
}

log = structlog.get_logger(__name__)


async def ask_for(
    models: ChatModels,
    messages: Sequence[BaseMessage],
    check: Callable[[str], Made],
    *,
    schema: type[BaseModel] | None = None,
    purpose: str = "answer",
) -> Made:
    """Ask the small model, and return the result of `check` on its answer.

    Args:
        check: raises `BadModelOutput` for an answer that cannot be used; its message is shown to the model.
        schema: the form of a JSON answer, which is sent along to endpoints that support it.
        purpose: what the answer is for, in the log and as the schema's name: letters, digits and underscores.

    Raises:
        ModelFailed: the model did not answer.
        BadModelOutput: its answer could not be used, twice.
    """
    asked = list(messages)
    response_format = _response_format(schema, purpose) if schema else None
    note_call(models.small_model, purpose, messages[0].text if isinstance(messages[0], SystemMessage) else "")
    for tries_left in reversed(range(_TRIES)):
        answer = ""
        try:
            answer = await _answer(models, asked, response_format)
            return check(answer.strip())
        except BadModelOutput as error:
            # The reason may quote what the model wrote, and with it the user.
            log.info("an answer could not be used", purpose=purpose, tries_left=tries_left)
            log.debug("why an answer could not be used", purpose=purpose, reason=error.message)
            if not tries_left:
                raise
            asked = [*messages, *_what_was_wrong(answer, error, messages)]
    raise AssertionError("unreachable")


def json_answer(form: type[Form], text: str, *, items: str | None = None) -> Form:
    """Return the JSON object in a model's answer, whatever was written around it.

    Args:
        form: the expected form; fields that are null count as missing.
        items: the field of `form` that holds its list. A bare array, or bare objects, are taken for that list.

    Raises:
        BadModelOutput: there is no such object. The message quotes nothing of the answer.
    """
    values = json_values(text)
    objects = [value for value in values if isinstance(value, dict) and (items is None or items in value)]
    if not objects and items is not None and values:
        lists = [value for value in values if isinstance(value, list)]
        objects = [{items: lists[-1] if lists else values}]
    problem = BadModelOutput("no JSON object" if items is None else f'no JSON object with "{items}"')
    for value in objects:
        try:
            return _validated(form, value)
        except ValidationError as error:
            problem = _problem(error)
    raise problem


def without_nulls(value: Any) -> Any:
    """Return a JSON value without the fields of its objects that are null."""
    if isinstance(value, dict):
        return {str(key): without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [without_nulls(inner) for inner in value if inner is not None]
    return value


def _validated(form: type[Form], value: Any) -> Form:
    try:
        return form.model_validate(value)
    except ValidationError:
        return form.model_validate(without_nulls(value))


def _problem(error: ValidationError) -> BadModelOutput:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return BadModelOutput(f"{place} is wrong: {first['type']}")


def _what_was_wrong(answer: str, error: BadModelOutput, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    if not answer.strip():
        return []
    again = _AGAIN[language_of([messages[-1].text])].format(reason=error.message)
    return [AIMessage(answer[:_LONGEST_REPEATED]), HumanMessage(again)]


def _response_format(schema: type[BaseModel], purpose: str) -> dict[str, Any]:
    name = re.sub(r"\W", "_", purpose, flags=re.ASCII)
    described = {"name": name, "schema": _json_schema(schema), "strict": False}
    return {"type": "json_schema", "json_schema": described}


@cache
def _json_schema(schema: type[BaseModel]) -> dict[str, Any]:
    return schema.model_json_schema()


async def _answer(
    models: ChatModels, messages: Sequence[BaseMessage], response_format: dict[str, Any] | None
) -> str:
    try:
        return await models.complete(messages, response_format=response_format)
    except ModelFailed as failure:
        if failure.failure not in _NO_ANSWERS:
            raise
        raise BadModelOutput(failure.message) from failure
