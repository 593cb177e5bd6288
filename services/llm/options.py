"""Options of a request to a model: parameters that a caller sets for one answer, and what models refuse."""

import re
import time
from collections.abc import Callable, Collection
from typing import Any, Literal, get_args

from services.errors import RefusalTopic, SamplingParameter
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


Option = Literal[
    "tools", "temperature", "response_format", "system_role", "stream_options", "reasoning", "bare_calls"
]
"""Parts that can be left out of a request; without the system role, its text goes to the user's first message.
`reasoning` is that of the turn's earlier calls; `bare_calls` are calls without any, such as those of the service,
which get an empty one instead."""

OPTION_OF: dict[RefusalTopic, Option] = {
    "tools": "tools",
    "temperature": "temperature",
    "schema": "response_format",
    "messages": "system_role",
    "stream_options": "stream_options",
    "reasoning": "reasoning",
}
"""The option of a request that a refusal is about."""

KEEP_S = 3600.0
"""Seconds to remember a refusal: the model or its server may have been replaced by then."""


class Refusals:
    """What the models of one endpoint refuse, kept in this process."""

    def __init__(self, *, keep_s: float = KEEP_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._keep_s = keep_s
        self._clock = clock
        self._until: dict[tuple[str, Option], float] = {}

    def refuses(self, model: str, option: Option) -> bool:
        """Whether the model refused the option recently."""
        until = self._until.get((model, option))
        return until is not None and self._clock() < until

    def remember(self, model: str, option: Option) -> None:
        """Remember that the model refuses the option."""
        now = self._clock()
        # Callers may name any number of models.
        self._until = {key: until for key, until in self._until.items() if now < until}
        self._until[model, option] = now + self._keep_s

    def forget(self, model: str, option: Option) -> None:
        """Forget that the model refused the option."""
        self._until.pop((model, option), None)
