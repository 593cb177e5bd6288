"""The user's tone in the prompt: how to answer somebody who sounds like this."""

from collections.abc import Mapping, Sequence

from services.context.source import Known, PromptTurn, Source
from services.context.sources.user_activity import UserActivitySource
from services.text.language import Language
from services.tone.turn_tone import tone_of
from state.prompt import DominantTone, Tone
from state.section import Item, Section

_PRIORITY = 40

_ATTENTIVE = 0.75
"""Minimum empathy at which the answer begins with the user's feelings."""

_SOUNDS: dict[Language, Mapping[DominantTone, str]] = {
    "en": {
        "anxiety": "The user sounds anxious.",
        "excitement": "The user sounds excited.",
        "confusion": "The user sounds confused.",
        "trust": "The user trusts you.",
        "frustration": "The user sounds frustrated.",
    },
    "zh": {
        "anxiety": "用户听起来有些焦虑。",
        "excitement": "用户情绪高涨。",
        "confusion": "用户有些困惑。",
        "trust": "用户信任你。",
        "frustration": "用户有些不满。",
    },
}
_BEGIN: dict[Language, str] = {
    "en": "Begin with one sentence on how they feel.",
    "zh": "先用一句话回应用户的感受。",
}
_THEN: dict[Language, Mapping[DominantTone, str]] = {
    "en": {
        "anxiety": "Stay calm and warm: give concrete steps one at a time, the most reassuring true one first, "
        "and no new worries.",
        "excitement": "Share their enthusiasm in a few words and give useful detail; name what they should not "
        "overlook without dampening their mood.",
        "confusion": "Use plain words and short steps, explain the terms that you need, and ask which part is "
        "unclear if you cannot tell.",
        "trust": "Be open and exact, say what you are not sure of, and do not flatter.",
        "frustration": "Do not defend yourself or lecture; solve the problem by the shortest way.",
    },
    "zh": {
        "anxiety": "请保持平和、温暖，一步一步给出具体可行的建议，先说最能让人安心的实情，不要增加新的担忧。",
        "excitement": "请简短呼应这份热情，给出实用的细节，并在不扫兴的前提下提醒容易忽略的地方。",
        "confusion": "请用简单的话分步说明，解释用到的术语；不确定哪里没讲清楚时，直接问用户。",
        "trust": "请坦诚、准确，不确定的地方要说明，不要恭维。",
        "frustration": "不要辩解或说教，用最短的办法解决问题。",
    },
}


class ToneSource(Source[None]):
    """Determines how the user sounds now."""

    name = "tone"
    features = frozenset({"tone"})

    def select(self, turn: PromptTurn, known: Known) -> Sequence[Section]:
        """Return how to answer; the section's data is the tone, even if it needs no text."""
        user_activity = known.of(UserActivitySource)
        tone = tone_of(turn.message, user_activity.earlier if user_activity else ())
        return (tone_section(tone, known.conversation.language),)


def tone_section(tone: Tone, language: Language) -> Section:
    """A tone as a section."""
    text = guidance(tone, language)
    return Section("tone", items=[Item(text)] if text else [], priority=_PRIORITY, data=tone)


def guidance(tone: Tone, language: Language) -> str:
    """How to answer, at most 100 tokens; empty for a neutral tone."""
    sounds = _SOUNDS[language].get(tone["dominant"], "")
    if not sounds:
        return ""
    begin = _BEGIN[language] if tone["empathy"] >= _ATTENTIVE else ""
    space = " " if language == "en" else ""
    return space.join(text for text in (sounds, begin, _THEN[language][tone["dominant"]]) if text)
