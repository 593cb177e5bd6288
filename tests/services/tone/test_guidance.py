from typing import get_args

import pytest

from services.context.sources.tone import guidance
from services.llm.tokens import count_tokens
from services.text.language import Language, language_of
from services.tone.lexicon import EMOTIONS
from state.prompt import DominantTone, Tone


def _tone(dominant: DominantTone, empathy: float = 0.5) -> Tone:
    return Tone(message_scores={}, scores={}, dominant=dominant, empathy=empathy, pace="steady")


@pytest.mark.parametrize("language", get_args(Language))
def test_every_emotion_has_a_short_text_in_the_language_of_the_message(language: Language) -> None:
    texts = {guidance(_tone(emotion, 1.0), language) for emotion in EMOTIONS}
    assert len(texts) == len(EMOTIONS)
    assert all(0 < count_tokens(text) <= 100 for text in texts)
    assert {language_of([text]) for text in texts} == {language}


@pytest.mark.parametrize("language", get_args(Language))
def test_a_neutral_tone_needs_none(language: Language) -> None:
    assert guidance(_tone("neutral", 1.0), language) == ""


def test_much_empathy_begins_with_the_feeling_and_contradicts_nothing() -> None:
    attentive = guidance(_tone("frustration", 0.8), "en")
    plain = guidance(_tone("frustration"), "en")
    assert attentive == plain.replace("frustrated. ", "frustrated. Begin with one sentence on how they feel. ", 1)
    assert "feel" not in plain
