import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.knowledge.base import BaseProfile
from services.knowledge.evidence import Evidence
from services.knowledge.likelihood import Closeness, likelihood, observe
from services.knowledge.message_intent import manner_of, views_of
from services.knowledge.profile_match import Profiles
from services.text.concepts import concepts
from services.text.tokenizer import terms

VET = BaseProfile("vet", "A vet's practice", ("vaccination",), headings=("Prices", "Emergencies"))
SKI = BaseProfile("ski", "滑雪场", ("雪票",), headings=("租赁", "课程"))
PROFILES = Profiles([VET, SKI])
PASSAGES = [
    Evidence("vet", tuple(terms(text)), concepts(text)) if text.isascii() else Evidence("ski", tuple(terms(text)))
    for text in (
        "Emergencies: call us day or night if your dog has eaten chocolate or cannot stand.",
        "Prices: a first visit costs 40 euros, a vaccination 55.",
        "租赁：雪板和雪服每天一百二十元，押金五百元。",
    )
]


def probable(
    message: str, *, passages: list[Evidence] | None = None, profiles: Profiles = PROFILES
) -> list[float]:
    manner = manner_of(message)
    closeness = Closeness(passages=PASSAGES if passages is None else passages)
    return list(likelihood(observe(profiles, views_of(message, manner), manner, closeness)))


@pytest.mark.parametrize(
    ("message", "base"),
    [
        ("My dog ate a bar of chocolate, can I call you now?", 0),
        ("How much do you charge for a first visit?", 0),
        ("你们雪板怎么租，要押金吗", 1),
    ],
)
def test_the_base_that_has_the_answer_is_the_likeliest(message: str, base: int) -> None:
    found = probable(message)
    assert found[base] > 0.5 > found[1 - base]


@pytest.mark.parametrize(
    ("to_an_organisation", "to_a_friend"),
    [
        (
            "Can I call you at night if my dog cannot stand?",
            "My sister's dog cannot stand, what should I tell her?",
        ),
        ("你们这里租雪板押金多少", "我朋友租雪板的押金没退，帮我想想怎么说"),
    ],
)
def test_the_wording_tells_questions_to_an_organisation_from_talk_about_the_same(
    to_an_organisation: str, to_a_friend: str
) -> None:
    assert sum(probable(to_an_organisation)) > sum(probable(to_a_friend))


def test_an_embedding_that_is_believed_decides_without_words() -> None:
    message = "Wann ist jemand da, wenn das Tier nachts krank wird?"
    manner = manner_of(message)
    views = views_of(message, manner)
    near = {"vet": 0.75, "ski": 0.1}
    believed, doubted = (
        likelihood(observe(PROFILES, views, manner, Closeness(near, 0.3, believed))) for believed in (True, False)
    )
    assert believed[0] > 0.5 > doubted[0]


@given(st.text(max_size=80), st.integers(1, 4))
def test_probabilities_are_probabilities_whatever_is_said(message: str, bases: int) -> None:
    profiles = Profiles([BaseProfile(f"b{number}", "A base", ("word",)) for number in range(bases)])
    found = np.array(probable(message, passages=[Evidence("b0", ("word", "other"))], profiles=profiles))
    assert len(found) == bases
    assert (found >= 0).all()
    assert found.sum() <= 1 + 1e-9
