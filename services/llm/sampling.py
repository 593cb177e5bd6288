"""Parameters that a caller sets for one answer: which an API takes, their names there, and which was refused."""

import re
from collections.abc import Collection
from typing import Any, get_args

from services.errors import SamplingParameter
from state.conversation import Sampling

ALL: frozenset[str] = frozenset(get_args(SamplingParameter))
_ONLY_CHAT = frozenset({"stop", "seed", "presence_penalty", "frequency_penalty", "logit_bias"})
"""The Responses API has no such parameters."""
RESPONSES = ALL - _ONLY_CHAT
"""Parameters that the Responses API takes."""

LENGTHS = frozenset({"max_tokens", "max_completion_tokens"})
"""Limits of an answer's length."""
_LIMITS = r"max[_ ](?:completion_|output_)?tokens"
_MENTIONS: dict[str, re.Pattern[str]] = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in {
        "max_tokens": _LIMITS,
        "max_completion_tokens": _LIMITS,
        "stop": r"\bstop\b",
        "reasoning_effort": r"\breasoning|\beffort\b",
        "response_format": r"response_format|json_schema|json_object|text\.format|schema|structured|\bgrammar\b",
    }.items()
}
"""What endpoints call a parameter; others are called by their names."""


def limited(sampling: Sampling, most_tokens: int | None) -> Sampling:
    """Return the parameters with the answer's length limited to `most_tokens`, if there is a limit."""
    if most_tokens is None:
        return sampling
    limit = Sampling(**sampling)
    if "max_tokens" in limit:
        limit["max_tokens"] = min(limit["max_tokens"], most_tokens)
    if "max_completion_tokens" in limit or "max_tokens" not in limit:
        limit["max_completion_tokens"] = min(limit.get("max_completion_tokens", most_tokens), most_tokens)
    return limit


def call_options(sampling: Sampling, *, responses_api: bool) -> dict[str, Any]:
    """Return the options of a LangChain call; parameters that the API does not have are left out."""
    options: dict[str, Any] = {
        name: value for name, value in sampling.items() if name in (RESPONSES if responses_api else ALL)
    }
    if not responses_api and "max_tokens" in options:
        # LangChain renames it to max_completion_tokens, which many servers do not know.
        options["extra_body"] = {"max_tokens": options.pop("max_tokens")}
    return options


def refused_parameter(message: str, sent: Collection[str], *, limits_only: bool = False) -> str | None:
    """Return the parameter that an endpoint's message is about; None if it names none that was sent.

    Args:
        message: the endpoint's message, with the parameter that it names separately.
        sent: names of the parameters in the request.
        limits_only: whether only a limit of the answer's length may be meant.
    """
    names = [name for name in sent if not limits_only or name in LENGTHS]
    named = {name: _MENTIONS.get(name) or re.compile(rf"\b{name}\b", re.IGNORECASE) for name in names}
    return next((name for name, pattern in named.items() if pattern.search(message)), None)
