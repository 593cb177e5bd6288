"""Remembers for a while which request options models refuse."""

import time
from collections.abc import Callable
from typing import Literal

from services.errors import RefusalTopic

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
