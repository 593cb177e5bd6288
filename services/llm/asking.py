"""Asking a model for something of a certain form: checked, asked for once more, then given up."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from langchain_core.messages import BaseMessage
from pydantic import BaseModel, ValidationError

from services.errors import BadModelOutput, ModelFailed, ModelFailure
from services.llm.chat_models import ChatModels

Made = TypeVar("Made")
Form = TypeVar("Form", bound=BaseModel)

_TRIES = 2
_NO_ANSWERS: frozenset[ModelFailure] = frozenset({"llm_stream_broken", "llm_bad_response"})
"""The model was there, but what came is none."""


async def ask_for(models: ChatModels, messages: Sequence[BaseMessage], check: Callable[[str], Made]) -> Made:
    """Have the small model answer, and make of it what `check` returns.

    Args:
        models: where the small model is.
        messages: the prompt.
        check: raises `BadModelOutput` for an answer that will not do.

    Raises:
        ModelFailed: the model did not answer.
        BadModelOutput: its answer would not do, twice.
    """
    for tries_left in reversed(range(_TRIES)):
        try:
            return check(await _answer(models, messages))
        except BadModelOutput:
            if not tries_left:
                raise
    raise AssertionError("unreachable")


def json_answer(form: type[Form], text: str) -> Form:
    """The JSON object in a model's answer, whatever it wrote around it.

    Raises:
        BadModelOutput: there is none, or not of that form. What it says quotes nothing of the answer.
    """
    start, end = text.find("{"), text.rfind("}")
    if not 0 <= start < end:
        raise BadModelOutput("no JSON object")
    try:
        return form.model_validate_json(text[start : end + 1])
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
        if problem["type"] == "json_invalid":
            raise BadModelOutput("not JSON") from None
        place = ".".join(str(part) for part in problem["loc"])
        raise BadModelOutput(f"{place} is wrong: {problem['type']}") from None


async def _answer(models: ChatModels, messages: Sequence[BaseMessage]) -> str:
    try:
        return await models.complete(messages)
    except ModelFailed as failure:
        if failure.failure not in _NO_ANSWERS:
            raise
        raise BadModelOutput(failure.message) from failure
