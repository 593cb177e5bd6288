"""The client's application in the prompt: its instructions, and what it put around the message."""

from collections.abc import Sequence

from services.context.source import Known, PromptTurn, Source
from services.context.wording import APPLICATION, DOCUMENTS, inert, tagged
from services.text.language import Language
from state.section import Item, Section

_PRIORITY = 45
_INSTRUCTIONS: dict[Language, str] = {
    "en": "The application in which the user writes instructs you as follows; the rules above come first.",
    "zh": "用户所用的应用有以下指示；与上面的规则冲突时，以上面的为准。",
}
_ATTACHED: dict[Language, str] = {
    "en": "The application attached this to the message:",
    "zh": "应用在这条消息里附上了以下内容：",
}


class ClientSource(Source[None]):
    """Shows what the client's application sent besides the user's own words."""

    name = "client"

    def select(self, turn: PromptTurn, known: Known) -> Sequence[Section]:
        """Put the instructions into the shared beginning, the attachments into the tail."""
        language = known.conversation.language
        sections = []
        if turn.instructions:
            text = f"{_INSTRUCTIONS[language]}\n{tagged(APPLICATION, inert(turn.instructions))}"
            sections.append(Section("instructions", text, stable=True))
        if turn.attached:
            items = [Item(inert(text)) for text in turn.attached]
            heading = f"{_ATTACHED[language]}\n<{DOCUMENTS}>"
            sections.append(Section("attached", heading, items, f"</{DOCUMENTS}>", priority=_PRIORITY))
        return sections
