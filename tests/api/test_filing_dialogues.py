"""Talks in whole turns, with a model behind the service that files well: what memory holds at their end."""

from collections.abc import Sequence
from typing import Any

import httpx
import pytest

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.platform.settings import Settings
from tests.support.archiving import with_small_model
from tests.support.filing import Operation, add, asked, filed, waiting
from tests.support.model_server import ModelServer, Received, Reply

pytestmark = pytest.mark.anyio

Talk = Sequence[tuple[str, str]]
Wanted = Sequence[tuple[str, str, str, str]]
"""The operation's memory (empty = new), text, quote and field."""


@pytest.fixture
def settings(model_server: ModelServer) -> Settings:
    return with_small_model(model_server).model_copy(update={"memory_filing_quiet_s": 600})


def _key(prompt: str, word: str) -> str:
    """The short id of the memory with a word."""
    lines = (line for line in prompt.splitlines() if line.startswith("[m") and word in line)
    return next(lines)[1:].split("]")[0]


async def _play(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer, talk: Talk, wanted: Wanted
) -> None:
    """Say everything in one conversation, then have it filed as is wanted."""
    for message, answer in talk:
        model_server.default = Reply([answer])
        body = {"user_id": "u-1", "session_id": f"s-{len(talk[0][0])}", "message": message}
        told = await client.post("/api/v1/chat", json=body)
        assert told.status_code == 200
        kinds = {each["kind"] for each in told.json()["memory_changes"]}
        assert kinds <= {"remember"}, message

    def file(request: Received) -> Reply:
        prompt = request.prompt[-1][1]
        operations: list[Operation] = []
        for memory, text, quote, field in wanted:
            if quote.replace("\n", " ") not in prompt.replace("\n> ", " "):
                continue  # of another part of the talk
            operations.append(
                {"op": "replace", "id": _key(prompt, memory), "text": text, "quote": quote}
                if memory
                else add(text, quote, field)
            )
        return filed(*operations)

    model_server.default = file
    owner = await services.memory.core.owner(DEFAULT_TENANT, "u-1", "default")
    await services.filing.file(DEFAULT_TENANT, owner.user_id)


async def _human(client: httpx.AsyncClient) -> dict[str, Any]:
    items = (await client.get("/api/v1/users/u-1/core-memory")).json()["items"]
    return next((each["content"] for each in items if each["section"] == "human"), {})


async def test_a_talk_in_english(services: Services, client: httpx.AsyncClient, model_server: ModelServer) -> None:
    first: Talk = [
        ("so my sister's baby is due soon, she's due on the 12th", "How exciting! The 12th of December?"),
        ("yep. tom's birthday is on 2 december, he might get made redundant", "That sounds stressful for Tom."),
        ("scared tbh. we're buying the house in otley and gran is in hospital", "When do you exchange?"),
        ("not till the new year I think", "Then there is time."),
        ("can't drink milk, the doctor says I'm lactose intolerant", "Noted: no milk."),
    ]
    await _play(
        services,
        client,
        model_server,
        first,
        [
            ("", "sister's baby is due on 2026-12-12", "she's due on the 12th", "family"),
            ("", "Tom's birthday is on 2 December", "tom's birthday is on 2 december", "dates"),
            ("", "Tom might be made redundant", "he might get made redundant", "family"),
            ("", "gran is in hospital since November 2026", "gran is in hospital", "family"),
            ("", "is buying a house in Otley, exchange not before 2027", "not till the new year I think", "plans"),
            ("", "lactose intolerant", "I'm lactose intolerant", "health"),
        ],
    )
    assert len(asked(model_server)) == 1, "five turns share a call"
    second: Talk = [
        ("she's due on the 20th, I got the date wrong", "The 20th, then."),
        ("sorry, tom's is the 3rd", "The 3rd of December."),
        ("yes it's OK!! god.", "All right."),
        ("you weren't supposed to bring up tom's job", "I am sorry."),
    ]
    await _play(
        services,
        client,
        model_server,
        second,
        [
            ("due on", "sister's baby is due on 2026-12-20", "she's due on the 20th", ""),
            ("Tom's birthday", "Tom's birthday is on 3 December", "sorry, tom's is the 3rd", ""),
        ],
    )
    assert await _human(client) == {
        "family": [
            "Tom might be made redundant",
            "gran is in hospital since November 2026",
            "sister's baby is due on 2026-12-20",
        ],
        "dates": ["Tom's birthday is on 3 December"],
        "plans": ["is buying a house in Otley, exchange not before 2027"],
        "health": ["lactose intolerant"],
    }
    assert not await waiting(services)
    assert len(asked(model_server)) <= (len(first) + len(second)) / 2


async def test_a_talk_in_chinese(services: Services, client: httpx.AsyncClient, model_server: ModelServer) -> None:
    first: Talk = [
        ("我叫陈默，在杭州当护士", "你好，陈默。"),
        ("粘，我下夜班它就趴我胸口睡。对了我对青霉素过敏，你记一下", "记下了，你对青霉素过敏。"),
        ("2027年可能搬去Berlin，公司还没定", "到时候再看。"),
        ("就是我老忘事，忘了她生日。我妹的生日是11月12号", "下次我提醒你。"),
        ("对芒果过敏，吃了嘴肿", "那要小心。"),
    ]
    await _play(
        services,
        client,
        model_server,
        first,
        [
            ("", "陈默", "我叫陈默", "name"),
            ("", "在杭州当护士", "在杭州当护士", "work"),
            ("", "2027年可能搬去柏林", "2027年可能搬去Berlin", "plans"),
            ("", "妹妹的生日是11月12日", "我妹的生日是11月12号", "family"),
            ("", "对芒果过敏", "对芒果过敏", "allergies"),
        ],
    )
    second: Talk = [
        ("？删什么了，我没让你删啊", "什么都没有删。"),
        ("不是Berlin了，是Munich", "慕尼黑也不错。"),
        ("之前说对芒果过敏，其实是对猕猴桃", "改成猕猴桃。"),
        ("？？我让你记，不是删！", "好，都记着。"),
    ]
    await _play(
        services,
        client,
        model_server,
        second,
        [
            ("柏林", "2027年可能搬去慕尼黑", "不是Berlin了，是Munich", ""),
            ("芒果", "对猕猴桃过敏", "其实是对猕猴桃", ""),
        ],
    )
    assert await _human(client) == {
        "name": "陈默",
        "work": "在杭州当护士",
        "allergies": ["对猕猴桃过敏"],
        "facts": ["我对青霉素过敏"],
        "plans": ["2027年可能搬去慕尼黑"],
        "family": ["妹妹的生日是11月12日"],
    }
    assert not await waiting(services)
    assert len(asked(model_server)) == 2
