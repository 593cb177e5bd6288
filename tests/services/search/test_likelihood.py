"""What is likely to bear on a question, and what never counts."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from services.search.columns import Columns
from services.search.hits import Unit
from services.search.index_terms import indexed_terms, marked
from services.search.queries import make_queries
from services.search.ranking import score

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def likelihoods(question: str, *texts: str) -> dict[str, float]:
    """The probability of each text of a user, each said in a separate conversation."""
    units = []
    for place, text in enumerate(texts):
        seen = marked(indexed_terms(text, None, "user"), text, None, "user")
        units.append(
            Unit(
                id=text,
                episode_id=text,
                conversation_id=text,
                created_at=NOW - timedelta(days=place + 1),
                text=text,
                terms=seen.terms,
                message_id=text,
                concepts=seen.concepts,
                features=seen.features,
            )
        )
    queries = make_queries(question)
    cosines = np.full((len(queries), len(units)), np.nan)
    found = score(queries, cosines, Columns.of(units), now=NOW, quality={}).likelihood
    return dict(zip(texts, found.tolist(), strict=True))


@pytest.mark.parametrize(
    ("question", "fact", "asked"),
    [
        ("What is my cat allergic to?", "Our cat is allergic to chicken.", "What is my cat allergic to?"),
        ("我家猫对什么过敏？", "我家猫对鸡肉过敏。", "我家猫对什么过敏？"),
    ],
)
def test_what_only_asks_takes_no_probability_from_what_states(question: str, fact: str, asked: str) -> None:
    alone, beside = likelihoods(question, fact), likelihoods(question, fact, asked)
    assert beside[asked] == 0.0
    assert beside[fact] == pytest.approx(alone[fact], rel=0.2)


@pytest.mark.parametrize(
    ("question", "facts"),
    [
        (
            "What breed is my dog, and where did my sister move to?",
            ("My dog is a lurcher.", "My sister has moved to Ghent."),
        ),
        ("我的狗是什么品种，我妹妹搬到哪里去了？", ("我的狗是柯基。", "我妹妹搬到绍兴去了。")),
    ],
)
def test_of_two_things_that_are_asked_for_at_once_both_are_found(question: str, facts: tuple[str, str]) -> None:
    chatter = "The concert starts at eight tonight.", "今晚的音乐会八点开始。"
    found = likelihoods(question, *facts, *chatter)
    assert min(found[fact] for fact in facts) > 2 * max(found[each] for each in chatter)


def test_the_probabilities_leave_room_for_nothing() -> None:
    assert sum(likelihoods("What's my blood type?", "The kettle is broken.", "I had soup.").values()) < 0.5
