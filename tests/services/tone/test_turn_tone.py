import pytest

from services.tone.lexicon import EMOTIONS
from services.tone.reactions import reaction_of
from services.tone.states import EarlierTone
from services.tone.turn_tone import blended, dominant_of, tone_of
from state.prompt import EmotionScores

ANGRY = "This is useless, I'm furious!"
CALM = "What time is it in Oslo?"


def _scores(**values: float) -> EmotionScores:
    return {emotion: values.get(emotion, 0.0) for emotion in EMOTIONS}


def _earlier(empathy: float = 0.5, opinion: EmotionScores | None = None, **values: float) -> EarlierTone:
    return EarlierTone(_scores(**values), opinion, empathy)


def test_a_first_message_is_heard_by_itself() -> None:
    tone = tone_of("I'm so worried", [])
    assert tone["scores"] == tone["message_scores"]
    assert (tone["dominant"], tone["empathy"], tone["pace"]) == ("anxiety", 0.7, "slow")
    assert tone_of(CALM, [])["dominant"] == "neutral"


@pytest.mark.parametrize(
    ("message", "dominant"),
    [
        ("I'm not worried any more, thanks, that helped.", "trust"),
        ("我现在不担心了，听你的", "trust"),
        ("I'm not worried about the price, but I'm still nervous about the flight.", "anxiety"),
    ],
)
def test_what_is_said_to_be_over_is_over(message: str, dominant: str) -> None:
    anxious = [_earlier(anxiety=0.9) for _ in range(3)]
    assert tone_of(message, anxious)["dominant"] == dominant


def test_a_feeling_fades_with_each_message_that_does_not_have_it() -> None:
    heard = [tone_of(CALM, [_earlier()] * age + [_earlier(anxiety=0.9)])["scores"]["anxiety"] for age in range(4)]
    assert heard == sorted(heard, reverse=True)
    assert dominant_of(_scores(anxiety=heard[0])) == "anxiety"
    assert dominant_of(_scores(anxiety=heard[2])) == "neutral"


def test_the_newest_message_weighs_most() -> None:
    assert tone_of("I'm thrilled!", [_earlier(frustration=0.6)])["dominant"] == "excitement"
    assert tone_of(CALM, [_earlier(excitement=0.6), _earlier(frustration=0.6)])["scores"]["excitement"] == 0.171


def test_anxiety_comes_first_when_it_is_near() -> None:
    assert dominant_of(_scores(anxiety=0.55, frustration=0.6)) == "anxiety"
    assert dominant_of(_scores(anxiety=0.4, frustration=0.6)) == "frustration"
    assert dominant_of(_scores(anxiety=0.1, trust=0.15)) == "neutral"


def test_a_model_s_opinion_counts_as_much_as_the_rules() -> None:
    assert blended(_earlier(opinion=_scores(anxiety=0.8), trust=0.4)) == _scores(anxiety=0.4, trust=0.2)
    assert tone_of(CALM, [_earlier(opinion=_scores(anxiety=1.0), anxiety=0.9)])["dominant"] == "anxiety"
    assert tone_of(CALM, [_earlier(opinion=_scores(), anxiety=0.9)])["dominant"] == "neutral"


def test_empathy_rises_when_the_user_is_not_content_and_falls_when_they_are() -> None:
    assert tone_of(ANGRY, [_earlier(0.5)])["empathy"] == 0.75
    assert tone_of("Thanks, that helped", [_earlier(0.75)])["empathy"] == 0.6
    assert tone_of(CALM, [_earlier(1.0)])["empathy"] == 0.9  # a fifth of the way back


@pytest.mark.parametrize(("message", "limit"), [(ANGRY, 1.0), ("Thank you so much", 0.0)])
def test_empathy_stays_between_0_and_1(message: str, limit: float) -> None:
    earlier = [_earlier(0.5)]
    for _ in range(10):
        tone = tone_of(message, earlier)
        earlier = [_earlier(tone["empathy"]), *earlier[:3]]
    assert earlier[0].empathy == limit


@pytest.mark.parametrize(
    ("message", "reaction"),
    [
        ("没用", "dissatisfied"),
        ("你没听懂我的问题", "dissatisfied"),
        ("That's not what I asked", "dissatisfied"),
        ("Thanks, but it still doesn't work", "dissatisfied"),
        ("謝謝你", "satisfied"),
        ("Thank you, got it", "satisfied"),
        ("明天几点开会", None),
        ("What about Tuesday?", None),
        ("I didn't say thanks", None),
    ],
)
def test_what_the_user_thinks_of_the_answer(message: str, reaction: str | None) -> None:
    assert reaction_of(message) == reaction
