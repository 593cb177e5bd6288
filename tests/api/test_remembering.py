"""What was said in one conversation is in the prompt of another: over HTTP, every prompt read."""

from typing import Any

import httpx
import pytest

from services.bootstrap import Services
from tests.support.model_server import ModelServer

pytestmark = [pytest.mark.anyio, pytest.mark.indexed, pytest.mark.untraced]

_HEADINGS = ("From earlier conversations", "以往对话中可能")


async def _say(http: httpx.AsyncClient, session: str, message: str, **more: Any) -> dict[str, Any]:
    body = {"user_id": "u-1", "session_id": session, "message": message, **more}
    answer = await http.post("/api/v1/chat", json=body)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    assert told["degraded"] == []
    return told


def _recalled(model_server: ModelServer) -> str:
    """What the newest prompt shows of other conversations."""
    prompt = model_server.requests[-1].prompt
    shown = [text for role, text in prompt if any(heading in text for heading in _HEADINGS)]
    assert [role for role, _ in prompt[-2:]][1] == "user"
    return shown[0] if shown else ""


_FACTS = (
    ("我的狗叫布鲁诺，是一只柯基", "我的狗叫什么名字？", "布鲁诺"),
    ("My sister Alma lives in Porto.", "Where does my sister live?", "Porto"),
    ("我對花生過敏", "我对什么过敏？", "花生"),
    ("昨天看了诺兰导演的《盗梦空间》", "我看的那部电影是哪个导演拍的？", "诺兰"),
    ("We decided to launch on the fourth of July.", "When do we launch?", "fourth of July"),
)
"""What is told, what is asked, and what the prompt shows."""


@pytest.mark.parametrize("indexed", [False, True])
async def test_a_fact_of_one_conversation_is_known_in_another(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer, indexed: bool
) -> None:
    for number, (told, asked, fact) in enumerate(_FACTS):
        user = f"u-{number}"
        await _say(client, "s-1", told, user_id=user)
        await _say(client, "s-1", "今天的天气不错 / nice weather today", user_id=user)
        if indexed:
            await services.memory.indexing.index_waiting()
        answer = await _say(client, "s-2", asked, debug=True, user_id=user)
        assert fact in _recalled(model_server)
        report = answer["context_report"]["recall"]
        assert report["queries"][0] == asked
        assert len(report["shown"]) >= 1
        first = report["hits"][0]
        assert first["ranks"]["words"] == 1
        assert "meaning" in first["ranks"] or not indexed


async def test_nothing_is_recalled_for_small_talk_and_for_what_nobody_spoke_of(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    await _say(client, "s-1", "我的狗叫布鲁诺，是一只柯基")
    await _say(client, "s-1", "My sister Alma lives in Porto.")
    for message in ("谢谢", "Thanks!", "法国的首都是哪里？", "How do I boil rice?", "好的"):
        await _say(client, f"s-{len(model_server.requests)}", message)
        assert _recalled(model_server) == "", message


async def test_what_the_conversation_shows_is_not_shown_twice(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    await _say(client, "s-1", "我的狗叫布鲁诺")
    answer = await _say(client, "s-1", "我的狗叫什么名字？", debug=True)
    assert _recalled(model_server) == ""
    assert sum("布鲁诺" in text for _, text in model_server.requests[-1].prompt) == 1
    reasons = {hit.get("left_out") for hit in answer["context_report"]["recall"]["hits"]}
    assert "shown in the window" in reasons


@pytest.mark.parametrize(
    ("before", "after", "asked", "old", "new"),
    [
        ("我喜欢看恐怖片", "我不喜欢看恐怖片了", "推荐恐怖片还是喜剧给我看？", "我喜欢看恐怖片", "不喜欢看恐怖片"),
        ("I live in Berlin", "I moved to Lisbon", "Where do I live?", "Berlin", "Lisbon"),
        ("I like horror films", "I no longer like horror films", "Which films do I like?", ": I like", "no long"),
    ],
)  # fmt: skip
async def test_after_a_change_of_mind_the_new_is_shown(
    client: httpx.AsyncClient, model_server: ModelServer, before: str, after: str, asked: str, old: str, new: str
) -> None:
    # Without a model that corrects it, nobody takes back what was said before; a reader sees which is newer.
    await _say(client, "s-1", before)
    assert (await _say(client, "s-2", after))["memory_changes"] == []
    await _say(client, "s-3", asked)
    recalled = _recalled(model_server)
    assert new in recalled
    assert recalled.count(old) <= 1 + after.count(old)


async def _units_recalled(http: httpx.AsyncClient) -> float:
    lines = (await http.get("/metrics")).text.splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("anamnesis_recalled_total "))


async def test_what_is_recalled_is_counted_and_noted(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    await _say(client, "s-1", "My sister Alma lives in Porto.")
    before = await _units_recalled(client)
    answer = await _say(client, "s-2", "Where does my sister live?", debug=True)
    assert await _units_recalled(client) > before
    (shown,) = answer["context_report"]["recall"]["shown"]
    async with services.database.tenant((await services.database.tenants())[0]) as connection:
        row = await (
            await connection.execute("SELECT recall_count, last_recalled_at FROM episodes WHERE id = %s", [shown])
        ).fetchone()
    assert row is not None
    assert row[0] == 1
    assert row[1] is not None
    assert answer["context_report"]["tokens"]["recall"] <= 400


async def test_a_long_answer_is_shown_by_the_sentences_that_bear_on_the_question(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    talk = " ".join(f"Sentence number {number} is about the weather." for number in range(120))
    await _say(client, "s-1", f"{talk} The password of the old safe is tulip. {talk}")
    await _say(client, "s-2", "What is the password of the old safe?")
    recalled = _recalled(model_server)
    assert "tulip" in recalled
    assert "number 119" not in recalled
    assert "…" in recalled
