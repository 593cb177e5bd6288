from dataclasses import replace
from datetime import timedelta

from services.bootstrap import Services
from services.memory.recall.recall import RecallResult
from state.prompt import TimeReference
from state.turn import OpenTurn
from tests.support.turns import exchange, given

_PAST = TimeReference(
    kind="past", start_date=None, end_date=None, hours=None, matched_text="", detail=False, plain=False
)


def texts(found: RecallResult) -> list[str]:
    return [result.unit.text for result in found.ranking.results]


async def _tell(services: Services) -> OpenTurn:
    await exchange(services.turns, "我养了一只叫布鲁诺的狗", "布鲁诺真可爱", session_id="s-1")
    await exchange(services.turns, "昨天看了诺兰的电影《盗梦空间》", "这部电影很烧脑", session_id="s-2")
    turn = await exchange(
        services.turns, "我的狗叫什么名字？", "不知道", session_id="s-3", timezone="Asia/Shanghai"
    )
    return replace(turn, memory_generation=None)


async def test_what_is_indexed_is_recalled(remembering: Services) -> None:
    asked = await _tell(remembering)
    await remembering.memory.indexing.index_waiting()
    found = await remembering.memory.recall.for_turn(asked)
    assert list(found.degraded) == []
    assert texts(found)[0] == "我养了一只叫布鲁诺的狗"
    assert found.ranking.results[0].ranks.keys() == {"words", "meaning"}


async def test_what_means_the_same_is_found_in_other_words_and_in_the_other_language(
    remembering: Services,
) -> None:
    asked = await _tell(remembering)
    await remembering.memory.indexing.index_waiting()
    for message in ("What is my pet called?", "我家宠物叫啥"):
        found = await remembering.memory.recall.for_turn(given(asked, message=message))
        assert texts(found)[0] == "我养了一只叫布鲁诺的狗"


async def test_a_time_that_is_named_is_preferred_and_hides_nothing(remembering: Services) -> None:
    for place in ("东湖", "西山"):
        await exchange(remembering.turns, f"周末我去{place}骑车了", "真好", session_id=place)
    asked = given(await _tell(remembering), message="我去哪里骑车了？")
    await remembering.memory.indexing.index_waiting()
    anytime = (await remembering.memory.recall.for_turn(asked)).ranking.results
    rides = {result.unit.text: result.unit.created_at for result in anytime if "骑车了" in result.unit.text}
    for ride, at in rides.items():
        then = at, at + timedelta(microseconds=1)
        found = texts(await remembering.memory.recall.for_turn(asked, then=then))
        assert found[0] == ride
        assert rides.keys() <= set(found)
    assert len(rides) == 2


async def test_only_a_day_that_is_named_shows_what_is_unlikely(remembering: Services) -> None:
    asked = await _tell(remembering)
    day, month = (
        f"{asked.now.year}年{asked.now.month}月{asked.now.day}日",
        f"{asked.now.year}年{asked.now.month}月",
    )
    on_it, in_it = [
        (await remembering.memory.recall.for_turn(given(asked, message=f"{when}我去哪里了？"))).floor.then
        for when in (day, month)
    ]
    assert on_it is not None
    assert in_it is None


async def test_where_nothing_is_likely_enough_to_be_shown_nothing_is_read(remembering: Services) -> None:
    asked = given(await _tell(remembering), message="Write a poem about autumn leaves.")
    await remembering.memory.indexing.index_waiting()
    unread = await remembering.memory.recall.for_turn(asked)
    read = await remembering.memory.recall.for_turn(asked, reference=_PAST)
    assert all(result.likelihood < unread.floor.likelihood for result in unread.ranking.results)
    assert len(unread.units) == 0
    assert set(texts(unread)) == {""}
    assert len(read.units) == len(read.ranking.results) == len(unread.ranking.results) > 0
    for one, other in zip(unread.ranking.results, read.ranking.results, strict=True):
        assert one.unit == other.unit._replace(text="", episode_type="turn", sources=frozenset())
        assert one == other._replace(unit=one.unit)
    assert unread.without([unread.ranking.results[0].unit.episode_id]) == unread
