"""The user's tone in the prompt: how to answer somebody who sounds like this."""

from collections.abc import Mapping, Sequence

from services.context.source import Known, PromptTurn, Source
from services.context.sources.acquaintance import AcquaintanceSource
from services.llm.language import Language
from services.tone.weighing import tone_of
from state.prompt import DominantTone, Tone
from state.section import Item, Section

_PRIORITY = 40

_ATTENTIVE = 0.75
"""Empathy from which on the answer begins with what the user feels."""

_GUIDANCE: dict[Language, Mapping[DominantTone, str]] = {
    "en": {
        "anxiety": "Tone: the user sounds anxious. Stay calm and warm. Say first that you understand, then give "
        "concrete next steps one at a time, the most reassuring true one first. Do not add new worries.",
        "excitement": "Tone: the user sounds excited. Share their enthusiasm in a few words, give useful detail, "
        "and name what they should not overlook without dampening their mood.",
        "confusion": "Tone: the user sounds confused. Use plain words and short steps, explain each term that you "
        "need, and ask which part is unclear if you cannot tell.",
        "trust": "Tone: the user trusts you. Be open and exact, say what you are not sure of, and do not flatter.",
        "frustration": "Tone: the user sounds frustrated. Do not defend yourself or lecture. Say in one sentence "
        "that you see the problem, then solve it by the shortest way.",
    },
    "zh": {
        "anxiety": "语气：用户听起来有些焦虑。请保持平和、温暖，先表示理解，再一步一步给出具体可行的建议，"
        "先说最能让人安心的实情，不要增加新的担忧。",
        "excitement": "语气：用户情绪高涨。请简短呼应这份热情，给出实用的细节，"
        "并在不扫兴的前提下提醒容易忽略的地方。",
        "confusion": "语气：用户有些困惑。请用简单的话分步说明，解释用到的术语；"
        "不确定哪里没讲清楚时，直接问用户。",
        "trust": "语气：用户信任你。请坦诚、准确，不确定的地方要说明，不要恭维。",
        "frustration": "语气：用户有些不满。不要辩解或说教，用一句话承认问题，然后用最短的办法解决。",
    },
}
_ATTEND: dict[Language, str] = {
    "en": " Begin with what they feel.",
    "zh": "先回应用户的感受。",
}


class ToneSource(Source[None]):
    """Hears how the user sounds now."""

    name = "tone"
    features = frozenset({"tone"})

    def select(self, turn: PromptTurn, known: Known) -> Sequence[Section]:
        """How to answer; the section's data is the tone itself, also where nothing is said of it."""
        acquaintance = known.of(AcquaintanceSource)
        tone = tone_of(turn.message, acquaintance.earlier if acquaintance else ())
        return (tone_section(tone, turn.language),)


def tone_section(tone: Tone, language: Language) -> Section:
    """A tone as a section."""
    text = guidance(tone, language)
    return Section("tone", items=[Item(text)] if text else [], priority=_PRIORITY, data=tone)


def guidance(tone: Tone, language: Language) -> str:
    """How to answer, at most 100 tokens; empty for a neutral tone."""
    text = _GUIDANCE[language].get(tone["dominant"], "")
    return text + _ATTEND[language] if text and tone["empathy"] >= _ATTENTIVE else text
