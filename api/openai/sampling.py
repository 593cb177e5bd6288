"""Parameters of the model that clients send: those that reach it, and those that cannot be honoured."""

from collections.abc import Mapping
from typing import Any, cast

from services.errors import InvalidInput
from services.llm.request_form import ALL, RESPONSES
from services.platform.settings import Settings
from state.conversation import Sampling

_FORMS = frozenset({"json_object", "json_schema"})
"""Forms of an answer besides plain text."""


def passed_parameters(settings: Settings) -> frozenset[str]:
    """The parameters that reach the model: those that its API has, unless the settings keep them from it."""
    if settings.offline or settings.openai_parameters == "ignore":
        return frozenset()
    return RESPONSES if settings.llm_api == "responses" else ALL


def sampling_of(given: Mapping[str, Any], passed: frozenset[str]) -> Sampling:
    """The parameters of a request that reach the model, by the names of Chat Completions."""
    sampling = {name: value for name, value in given.items() if name in passed and value is not None}
    if isinstance(stop := sampling.get("stop"), str):
        sampling["stop"] = [stop]
    return cast("Sampling", sampling)


def answer_form(field: str, form: Mapping[str, Any] | None, passed: frozenset[str]) -> dict[str, Any] | None:
    """The form of the answer as Chat Completions takes it; None = plain text.

    Args:
        field: name of the form in the request.
        form: as Chat Completions has it, or as `text.format` of the Responses API does.
        passed: parameters that reach the model.

    Raises:
        InvalidInput: the form is none, or cannot be asked of the model.
    """
    kind = (form or {}).get("type", "text")
    if form is None or kind == "text":
        return None
    if kind not in _FORMS:
        raise InvalidInput(f"{field}.type", "must be text, json_object or json_schema")
    if "response_format" not in passed:
        raise InvalidInput(field, "only answers in plain text are supported here")
    if kind == "json_object":
        return {"type": kind}
    described = form.get("json_schema", form)
    if not isinstance(described, dict) or not isinstance(described.get("schema"), dict):
        raise InvalidInput(field, "a json_schema has a name and a schema")
    parts = {name: described[name] for name in ("name", "description", "strict", "schema") if name in described}
    return {"type": kind, "json_schema": {"name": "answer", **parts}}
