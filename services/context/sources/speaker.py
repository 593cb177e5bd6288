"""Who says the message in the prompt, where it is not the user."""

from collections.abc import Sequence

from services.context.source import PromptDraft, Source, readable
from services.text.language import Language
from state.section import Item, Section

_ANOTHER: dict[Language, str] = {
    "en": "{name} says the message that follows, not the user: “I” in it is {name}. What is remembered without a "
    "name is the user's; what stands behind a name is that person's.",
    "zh": "下面这条消息是{name}说的，不是用户：其中的“我”指{name}。"
    "记忆里没有写名字的内容是用户的；写着谁的名字，就是谁的。",
}


class SpeakerSource(Source[None]):
    """Names another participant, so that the user's memory is not taken for theirs."""

    name = "speaker"

    def select(self, draft: PromptDraft) -> Sequence[Section]:
        """Return the line; nothing where the user speaks."""
        if not (speaker := draft.turn.speaker):
            return ()
        name = readable(speaker, draft.language)
        return (Section("speaker", items=[Item(_ANOTHER[draft.language].format(name=name))]),)
