"""Asking a model for something of a certain form: checked, asked for once more, then given up."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from langchain_core.messages import BaseMessage

from services.errors import BadModelOutput, ModelFailed, ModelFailure
from services.llm.chat_models import ChatModels

Made = TypeVar("Made")

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


async def _answer(models: ChatModels, messages: Sequence[BaseMessage]) -> str:
    try:
        return await models.complete(messages)
    except ModelFailed as failure:
        if failure.failure not in _NO_ANSWERS:
            raise
        raise BadModelOutput(failure.message) from failure
