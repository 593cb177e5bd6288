"""The system prompt: who the expert is."""

from collections.abc import Sequence

from services.context.source import Known, PromptTurn, Source
from state.section import Section


class SystemSource(Source[None]):
    """Shows what the expert's operator wrote."""

    name = "system"

    def select(self, turn: PromptTurn, known: Known) -> Sequence[Section]:
        """The expert's system prompt."""
        return (Section("system", turn.system_prompt, stable=True),)
