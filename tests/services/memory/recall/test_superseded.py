from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from services.memory.episodes.episode import StoredUnit
from services.memory.recall.superseded import Superseded, superseded
from tests.support.turns import some_uuid

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def said(number: int, text: str, *, role: Any = "user", episode: int | None = None) -> StoredUnit:
    return StoredUnit(
        episode_id=some_uuid(100 + (number if episode is None else episode)),
        unit_id=some_uuid(number),
        episode_type="turn",
        importance=0.4,
        origin="user_said",
        conversation_id=None,
        text=text,
        created_at=NOW + timedelta(days=number),
        role=role,
        speaker=None,
        external_id=None,
        source_message_ids=[],
        message_id=some_uuid(number),
        previous_id=None,
    )


def gone(*units: StoredUnit, core: dict[str, Any] | None = None) -> set[int]:
    return {UUID(unit).int & 0xFFF for unit in superseded(units, core or {})}


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("我喜欢看恐怖片", "我不喜欢看恐怖片了"),
        ("我住在柏林", "我搬到里斯本了"),
        ("I live in Berlin", "I moved to Lisbon, you know."),
        ("I like horror films", "I no longer like horror films"),
    ],
)
def test_what_was_said_before_a_change_of_mind_no_longer_holds(older: str, newer: str) -> None:
    assert gone(said(1, older), said(2, newer)) == {1}
    assert gone(said(2, newer), said(1, older)) == {1}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("我的狗叫布鲁诺", "我的狗叫什么名字？"),
        ("My dog is called Bruno.", "What is my dog called?"),
        ("I live in Lisbon", "Where do I live?"),
        ("我喜欢喝茶", "我喜欢喝咖啡"),
        ("I live in Lisbon", "I live in Lisbon"),
        ("昨天去了公园", "今天去了图书馆"),
    ],
)
def test_questions_repetitions_and_other_subjects_supersede_nothing(one: str, other: str) -> None:
    assert gone(said(1, one), said(2, other)) == set()


def test_the_rest_of_a_turn_goes_with_it() -> None:
    answer = said(2, "恐怖片确实刺激，您喜欢就好", role="assistant", episode=1)
    assert gone(said(1, "我喜欢恐怖片"), answer, said(3, "我不喜欢恐怖片了")) == {1, 2}


def test_an_answer_supersedes_nothing() -> None:
    assert gone(said(1, "我喜欢恐怖片"), said(2, "您不喜欢恐怖片", role="assistant")) == set()


def test_core_memory_outweighs_what_was_said() -> None:
    core = {"human": {"preferences": ["不喜欢恐怖片"], "home": {"place": "lives in Lisbon"}}}
    units = (said(1, "我喜欢恐怖片"), said(2, "I live in Berlin"), said(3, "我养了一只狗"))
    assert superseded(units, core) == {str(unit.unit_id): Superseded(None) for unit in units[:2]}
    assert Superseded(None).reason == "superseded by core memory"


def test_the_newest_holds_instead() -> None:
    units = (said(1, "I live in Berlin"), said(2, "I moved to Lisbon"), said(3, "I moved to Porto"))
    newest = Superseded(str(units[2].unit_id))
    assert superseded(units, {}) == {str(unit.unit_id): newest for unit in units[:2]}
