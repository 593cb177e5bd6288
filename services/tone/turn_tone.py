"""From how messages sound to the tone of a turn. Pure.

The rule of empathy: it begins at what the emotion asks for. When the user is not content with the last answer it
rises by 0.25, when they are it falls by 0.15; else it goes a fifth of the way to what the emotion asks for. It
stays between 0 and 1.
"""

from collections.abc import Collection, Mapping, Sequence

from services.tone.lexicon import EMOTIONS
from services.tone.reactions import Reaction, reaction_of
from services.tone.scoring import denied_in, scores_of
from services.tone.states import EarlierTone
from state.prompt import DominantTone, Emotion, EmotionScores, Pace, Tone

CLEAR = 0.22
"""A score from which on an emotion colours the turn."""
_FADES = 0.5
"""Each message weighs so much of the one after it."""
_RELIEVED = 0.25
"""So much is left of what was felt before, once it is said to be over ("I'm not worried any more")."""
_NEAR = 0.1
"""Anxiety that is so near to the strongest emotion comes before it."""
_OPINION_SHARE = 0.5
"""Weight of a model's opinion, beside the rules."""

_ASKED_EMPATHY: Mapping[DominantTone, float] = {
    "anxiety": 0.7,
    "frustration": 0.7,
    "confusion": 0.6,
    "excitement": 0.5,
    "trust": 0.4,
    "neutral": 0.5,
}
_PACES: Mapping[DominantTone, Pace] = {
    "anxiety": "slow",
    "confusion": "slow",
    "frustration": "brisk",
    "excitement": "steady",
    "trust": "steady",
    "neutral": "steady",
}
_AFTER_REACTION: Mapping[Reaction, float] = {"dissatisfied": 0.25, "satisfied": -0.15}
_TOWARDS_ASKED = 0.2
_DIGITS = 3


def tone_of(message: str, earlier: Sequence[EarlierTone]) -> Tone:
    """The tone of a turn.

    Args:
        message: what the user says now.
        earlier: how up to four messages before it sounded, the newest first; a reaction to an answer is only
            looked for where there are any.
    """
    own = scores_of(message)
    over = denied_in(message)
    scores = _weighed([own, *(_relieved(blended(each), over) for each in earlier)])
    dominant = dominant_of(scores)
    asked = _ASKED_EMPATHY[dominant]
    empathy = asked
    if earlier:
        before = earlier[0].empathy
        reaction = reaction_of(message)
        change = _AFTER_REACTION[reaction] if reaction else (asked - before) * _TOWARDS_ASKED
        empathy = min(1.0, max(0.0, before + change))
    return Tone(
        message_scores=own,
        scores=scores,
        dominant=dominant,
        empathy=round(empathy, _DIGITS),
        pace=_PACES[dominant],
    )


def dominant_of(scores: EmotionScores) -> DominantTone:
    """The strongest emotion that is clear, anxiety first when it is near; else neutral."""
    strongest: Emotion = max(EMOTIONS, key=lambda emotion: scores[emotion])
    if scores[strongest] < CLEAR:
        return "neutral"
    anxiety = scores["anxiety"]
    return "anxiety" if anxiety >= CLEAR and anxiety >= scores[strongest] - _NEAR else strongest


def blended(earlier: EarlierTone) -> EmotionScores:
    """How a message sounded, by the rules and by the model that was asked, if one was."""
    rules, opinion = earlier.message_scores, earlier.opinion
    if opinion is None:
        return rules
    return {
        emotion: rules.get(emotion, 0.0) * (1 - _OPINION_SHARE) + opinion.get(emotion, 0.0) * _OPINION_SHARE
        for emotion in EMOTIONS
    }


def _relieved(scores: EmotionScores, over: Collection[Emotion]) -> EmotionScores:
    """What is left of how a message sounded once the user says that an emotion is over."""
    return {emotion: score * (_RELIEVED if emotion in over else 1.0) for emotion, score in scores.items()}


def _weighed(newest_first: Sequence[EmotionScores]) -> EmotionScores:
    weights = [_FADES**age for age in range(len(newest_first))]
    return {
        emotion: round(
            sum(weight * scores.get(emotion, 0.0) for weight, scores in zip(weights, newest_first, strict=True))
            / sum(weights),
            _DIGITS,
        )
        for emotion in EMOTIONS
    }
