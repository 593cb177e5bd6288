from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from services.context.sources.already_said import AlreadySaid, covers, needless
from services.memory.episodes.episode import StoredUnit
from services.search.hits import Ranked, Unit

NOW = datetime(2026, 6, 1, tzinfo=UTC)
_SAYS_NOTHING, _SAID, _CLOSED = (
    "asks or orders something and states nothing",
    "the prompt says it already",
    "holds no more",
)


def _why(text: str, *, best: str = "I keep bees.", **about: Any) -> str | None:
    """Return why a unit is left out that was said two days ago and stands behind a better one."""
    asks = {
        "asks_of_past": about.pop("asks_of_past", False),
        "asks_of_answers": about.pop("asks_of_answers", False),
    }
    said = AlreadySaid(
        ["- allergic to: peanuts", "- name: Ada, a nurse in Leeds"],
        [("We bought a red canoe in Hull.", NOW), ("My cat is Tom.", NOW - timedelta(days=9))],
    )
    units, ranked = dict[str, StoredUnit](), []
    for name, content, more in (("best", best, {}), ("u", text, about)):
        of = {"role": "user", "message_id": uuid4(), "valid_until": None, "question": None, "filed": None, **more}
        at = NOW - timedelta(days=2)
        units[name] = StoredUnit(
            *(uuid4(), uuid4(), "turn", 0.5, "user_said", uuid4(), at, of["role"], None, None, []),
            text=content,
            message_id=of["message_id"],
            question=of["question"],
            valid_until=of["valid_until"],
            filed=of["filed"],
        )
        unit = Unit(name, name, at, content, "m", by_assistant=of["role"] == "assistant")
        ranked.append(Ranked(unit, 1, 0.5, 0.5 if name == "best" else 0.4, 1.0, None, {}))
    return needless(ranked, units, said, least=0.1, **asks).get("u")


@pytest.mark.parametrize(
    ("text", "about", "reason"),
    [
        ("I'm allergic to peanuts!", {}, _SAID),
        ("Ada is a nurse in Leeds, and allergic to peanuts", {}, _SAID),
        ("I'm not allergic to peanuts!", {}, None),
        ("I'm allergic to peanuts and eggs.", {}, None),
        ("I can't eat satay.", {"filed": [[None, {"health": "allergic to: peanuts"}]]}, _SAID),
        ("I can't eat satay.", {"filed": [[{"a": "b"}, {"a": ["b", "allergic to: eggs"]}]]}, None),  # it went
        ("I can't eat satay.", {"filed": [[{"health": "allergic to: peanuts"}, None]]}, None),  # it took one away
        ("the canoe we bought is red", {}, _SAID),
        ("Tom is the cat", {}, None),  # newer than what is visible
        ("yes!! I have", {}, _SAYS_NOTHING),
        ("thank you x", {}, _SAYS_NOTHING),
        ("The office is on Mill Lane.", {"valid_until": NOW}, _CLOSED),
        ("The office is on Mill Lane.", {"valid_until": NOW, "asks_of_past": True}, None),
        ("Take the 9 o'clock bus.", {"role": "assistant", "question": "How do I get to Leeds?"}, _SAYS_NOTHING),
        ("Buy an EpiPen.", {"role": "assistant", "question": "I'm allergic to peanuts."}, _SAID),
        (
            "Take the 9 o'clock bus.",
            {"role": "assistant", "question": "How do I get to Leeds?", "asks_of_answers": True},
            None,
        ),
        ("Bees need water.", {"role": "assistant", "question": "My bees look thirsty."}, None),
    ],
)
def test_it_is_left_out_where_it_adds_nothing(text: str, about: dict[str, Any], reason: str | None) -> None:
    assert _why(text, **about) == reason


def test_a_denial_is_covered_by_a_denial_alone() -> None:
    assert covers("我不吃鱼", ["我不吃鱼，也不吃虾"])
    assert not covers("我不吃鱼", ["我吃鱼，也吃虾"])
    assert not covers("我吃鱼", ["我不吃鱼"])
