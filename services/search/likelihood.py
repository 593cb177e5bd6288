"""How probable it is that a unit bears on a message: what decides whether a prompt shows it.

Each unit has a score, and so has the case that nothing bears on the message; their softmax is the probability of
each (a conditional logit after McFadden, "Conditional logit analysis of qualitative choice behavior", 1973). The
scores are weighted sums, and `python -m benchmarks.likelihood_training` learns the weights (`likelihood.json`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from services.search.columns import BY_ASSISTANT, CLOSES_ASKING, OF_FEATURE, WRITTEN, Columns
from services.search.logit import probabilities, stored_weights
from services.search.relevance import Relevance
from services.search.term_matrix import Values
from services.text.features import Feature, expected, states
from services.text.language import language_of
from services.text.questions import asks, asks_in_general, asks_of_oneself, is_about_the_assistant
from services.text.tokenizer import informative_terms


@dataclass(frozen=True, slots=True)
class Observed:
    """Inputs of the scores.

    Attributes:
        units: Values of each unit, by name.
        situation: Values of the message and of all units together, by name.
        eligible: Which units a prompt can show at all.
    """

    units: Mapping[str, Values]
    situation: Mapping[str, float]
    eligible: NDArray[np.bool_]


_LONG = 40
"""Terms of a unit of middling length."""
_SQUARED = ("met", "by_meaning", "likeness", "meant_around")
_COMPARED = ("met", "by_words", "by_meaning", "likeness", "around", "meant_around", "matched", "score")
_PLACED = ("met", "by_meaning", "likeness", "meant_around", "score")
_ASKED_OF = ("met", "meant_around")
_VALUES: tuple[Feature, ...] = ("number", "time", "name", "place")
_SECOND = ("met", "by_meaning", "likeness", "meant_around", "score")


def likelihood(observed: Observed) -> Values:
    """For each unit the probability that it bears on the message."""
    weights = stored_weights("services.search")
    scores = sum(weights["units"][name] * values for name, values in observed.units.items())
    nothing = sum(weights["situation"][name] * value for name, value in observed.situation.items())
    return probabilities(np.where(observed.eligible, scores, -np.inf), nothing)


def observe(
    question: str,
    units: Columns,
    about: Relevance,
    *,
    matched: Values,
    scores: Values,
    echoing: NDArray[np.bool_],
) -> Observed:
    """Collect the features from which probabilities are computed.

    Args:
        question: the message.
        units: what may bear on it.
        about: how far each is about the question.
        matched: the lexical match of each.
        scores: those of the ranking.
        echoing: which only ask the same.
    """
    situation = _situation(question)
    eligible = units.are(OF_FEATURE["states"] | BY_ASSISTANT | WRITTEN) & ~echoing
    compared = {name: getattr(about, name) for name in about.__slots__} | {"score": scores, "matched": matched}
    # What is never shown is nothing to measure others by.
    compared = {name: np.where(eligible, values, 0.0) for name, values in compared.items()}
    nearness = {name: values for name, values in compared.items() if name != "matched"}
    table = nearness | _kinds(question, units, situation)
    table |= {f"{name} of best": _of_best(compared[name]) for name in _COMPARED}
    table |= {f"{name} squared": np.square(nearness[name]) for name in _SQUARED}
    places = {name: _places(nearness[name]) for name in _PLACED}
    table |= {f"{name} place": 1 / (1 + place) for name, place in places.items()}
    table |= {f"{name} first": (place == 0).astype(np.float64) for name, place in places.items()}
    table |= {
        "length": np.log1p(units.terms.lengths / _LONG),
        "recency": _places(-units.said_at) / max(units.size - 1, 1),
    }
    table |= {f"closes asking {name}": table["closes asking"] * nearness[name] for name in _ASKED_OF}
    situation |= {f"best {name}": float(values.max(initial=0.0)) for name, values in nearness.items()}
    situation |= {f"second {name}": _second(nearness[name]) for name in _SECOND}
    situation |= {"units": float(np.log1p(units.size) / 5), "always": 1.0}
    return Observed(table, situation, eligible)


def _kinds(question: str, units: Columns, situation: Mapping[str, float]) -> dict[str, Values]:
    wanted = expected(question, language_of([question])) if situation["asks"] else frozenset()
    by_assistant = _flags(units.are(BY_ASSISTANT))
    oneself = _flags(units.are(OF_FEATURE["oneself"]))
    fitting = _flags(units.are(sum(OF_FEATURE[kind] for kind in wanted)))
    closing = _flags(units.are(CLOSES_ASKING))
    return {
        "states": _flags(units.are(OF_FEATURE["states"] | WRITTEN)),
        "oneself": oneself,
        "oneself as asked": oneself * situation["of oneself"],
        "by assistant": by_assistant,
        "by assistant as asked": by_assistant * situation["of assistant"],
        "written": _flags(units.are(WRITTEN)),
        "holds the value sought": fitting,
        "lacks the value sought": 1 - fitting if wanted else fitting,
        "corrects": _flags(units.are(OF_FEATURE["corrects"])),
        "closes asking": closing,
        "closes asking as of assistant": closing * situation["of assistant"],
    } | {
        f"holds {kind} as sought": _flags(units.are(OF_FEATURE[kind])) * float(kind in wanted) for kind in _VALUES
    }


def concerns_nobody(message: str) -> bool:
    """Whether a message wants something done or explained, and says nothing of its user."""
    language = language_of([message])
    if asks_of_oneself(message, language) or is_about_the_assistant(message, language):
        return False
    return asks_in_general(message) or not (asks(message, language) or states(message))


def _situation(question: str) -> dict[str, float]:
    language = language_of([question])
    asking = asks(question, language)
    return {
        "asks": float(asking),
        "orders": float(not asking and not states(question)),
        "of nobody": float(concerns_nobody(question)),
        "of assistant": float(is_about_the_assistant(question, language)),
        "of oneself": float(asks_of_oneself(question, language)),
        "in general": float(asks_in_general(question)),
        "chinese": float(language == "zh"),
        "seeks a value": float(bool(expected(question, language))),
        "words": float(np.log1p(len(informative_terms(question))) / 2),
    }


def _flags(values: NDArray[np.bool_]) -> Values:
    return values.astype(np.float64)


def _of_best(values: Values) -> Values:
    highest = float(values.max(initial=0.0))
    return values / highest if highest > 0 else np.zeros(len(values))


def _places(values: Values) -> Values:
    """The place of each value, from 0 for the highest; the first of equal ones is before the others."""
    found = np.empty(len(values))
    found[np.argsort(-values, kind="stable")] = np.arange(len(values))
    return found


def _second(values: Values) -> float:
    return float(np.partition(values, -2)[-2]) if len(values) > 1 else 0.0
