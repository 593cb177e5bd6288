"""A long message is found, shown and forgotten by its passages."""

from dataclasses import replace

import httpx
import pytest

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.memory.removal.canary import CanarySearch
from services.text.passages import passages_of
from state.turn import OpenTurn
from tests.support.turns import exchange, given

pytestmark = pytest.mark.indexed

ABOUT = (
    "The garden was full of frogs this morning, and the neighbours came over to look at the pond we dug.",
    "The library called because two of the novels that I borrowed in spring are still somewhere in the attic.",
    "My sister Rosalind is getting married in Antwerp in October, and I am to play the clarinet there.",
    "The boiler makes a noise like a kettle drum, so a plumber will come over and look at its valves.",
)
DIARY = "\n\n".join(f"{said} {'And so the day went by, as most of them do. ' * 9}".strip() for said in ABOUT)
CHINESE = "".join(
    f"{said}{'这一天就这么过去了，和平常没什么两样' * 12}，"
    for said in ("早上去菜市场买了两条鲫鱼", "表妹雅琴下个月在青岛办婚礼", "楼上装修吵得人头疼")
)


SHRINKS = (
    f"{ABOUT[1]} It has rained. {'And so the day went by, as most of them do. ' * 15}The pelican opens my locker."
)
"""Two passages, and one without its last sentence."""


async def _told(services: Services) -> OpenTurn:
    await exchange(services.turns, DIARY, "What a day.", session_id="diary")
    await exchange(services.turns, CHINESE, "辛苦了。", session_id="日记")
    for number in range(3):
        await exchange(services.turns, f"I walked {number + 2} miles.", "Well done.", session_id="walks")
    asked = await exchange(services.turns, "Hello", "Hello!", session_id="asks")
    await services.memory.indexing.index_waiting()
    return replace(asked, memory_generation=None)


async def _found_by_passages(services: Services) -> None:
    asked = await _told(services)
    english, chinese = passages_of(DIARY), passages_of(CHINESE)
    assert (len(english), len(chinese)) == (4, 4)
    for message, text, at in (
        ("Who is getting married?", DIARY, english[2]),
        ("谁要办婚礼？", CHINESE, chinese[1]),
    ):
        found = await services.memory.recall.for_turn(given(asked, message=message))
        best = found.ranking.results[0]
        assert best.unit.text == f"…{text[at.start : at.end]}…"
        assert best.ranks.keys() == {"words", "meaning"}
        assert found.units[best.unit.id].text == text
        assert len({result.unit.id for result in found.ranking.results}) == len(found.ranking.results)


async def test_a_long_message_is_found_and_shown_by_its_nearest_passage(services: Services) -> None:
    await _found_by_passages(services)


@pytest.mark.settings(memory_working_set_mb=0)
async def test_so_it_is_where_the_index_is_searched(services: Services) -> None:
    await _found_by_passages(services)


@pytest.mark.in_clear
async def test_of_what_is_forgotten_no_passage_stays_and_all_others_are_found(
    services: Services, client: httpx.AsyncClient
) -> None:
    asked = await _told(services)
    await exchange(services.turns, SHRINKS, "I see.", session_id="locker")
    await services.memory.indexing.index_waiting()
    search = CanarySearch(services.database, services.memory.index, services.redis)
    for topic in ("clarinet", "pelican"):
        assert "milvus" in {each.store for each in (await search.search(DEFAULT_TENANT, "u-1", topic)).findings}
        response = await client.post("/api/v1/users/u-1/erasures", json={"topic": topic})
        assert response.status_code == 200, response.text
    await services.memory.indexing.index_waiting()
    for word, stores in (
        ("clarinet", {"postgresql"}), ("pelican", {"postgresql"}), ("plumber", {"postgresql", "milvus"})
    ):  # fmt: skip
        found = await search.search(DEFAULT_TENANT, "u-1", word)
        assert {each.store for each in found.findings} == stores
    again = await services.memory.recall.for_turn(given(asked, message="Who will look at the valves?"))
    assert again.ranking.results[0].unit.text.startswith(f"…{ABOUT[3]}")
