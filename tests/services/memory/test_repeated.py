"""Sentences of an answer are foreign where they repeat what its prompt showed of others, and nowhere else."""

from typing import Any

import httpx
import pytest
from psycopg.rows import tuple_row

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.memory.reading.repeated import marked, repeated_spans, sentences_at
from tests.support.filing import asked, filed
from tests.support.jobs import until
from tests.support.model_server import ModelServer, Received, Reply
from tests.support.talking import say

_HANDBOOK = "夜班补贴每晚两百元，急诊科护士每月最多八个夜班。"


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("answer", "foreign", "said", "repeats"),
    [
        (
            "It returns in 2061. Enjoy your trip!",
            "The comet Halley returns in 2061.",
            "When?",
            ["It returns in 2061. "],
        ),
        ("好的，小陈。补贴是每晚两百元。", _HANDBOOK, "夜班补贴多少？", ["补贴是每晚两百元。"]),
        ("12月起你在急诊，加油。", _HANDBOOK, "我12月去急诊。", []),
        ("You are not allergic to peanuts.", "He is not allergic to peanuts.", "I am allergic to peanuts.", ["…"]),
        ("The allowance is 200 yuan.", _HANDBOOK, "夜班补贴多少？", ["…"]),
        ("OK, thanks.", _HANDBOOK, "Hello", []),
        ("Anything at all.", "", "Hello", []),
    ],
)
def test_a_sentence_repeats_a_text_by_a_word_that_the_user_has_not_said(
    answer: str, foreign: str, said: str, repeats: list[str]
) -> None:
    found = sentences_at(answer, repeated_spans(answer, [foreign], [said]))
    assert found == ([answer] if repeats == ["…"] else repeats)


@pytest.mark.untraced
def test_what_is_left_of_an_answer_is_marked_by_its_sentences() -> None:
    repeats = ["The comet Halley returns in 2061. "]
    assert marked("Hi. The comet Halley returns in 2061.", repeats) == [
        ("Hi. ", False),
        ("The comet Halley returns in 2061.", True),
    ]
    assert marked("The comet Halley", repeats) == [("The comet Halley", True)]


_PAGE = '<context>\n<source id="1" name="page.html">The comet Halley returns in 2061.</source>\n</context>\n\n'
_STORED: Any = """
SELECT m.content, m.origin::text, m.foreign_spans FROM messages m
WHERE m.role = 'assistant' ORDER BY m.created_at, m.id
"""
_NOT_NOTED: Any = (
    "SELECT id FROM messages WHERE role = 'assistant' AND origin IS NOT NULL AND foreign_spans IS NULL"
)
_ANSWERS = {
    "return?": "Halley is back in 2061. Shall I note your trip to Oslo?",
    "Yes": "It is noted.",
    "Oslo rainy": "Often, take a coat.",
    "again?": "Halley is back in 2061.",
}


@pytest.mark.indexed
@pytest.mark.settings(llm_model="large", small_llm_model="small")
async def test_an_answer_made_from_a_document_hides_neither_its_conversation_nor_the_next(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    def answer(request: Received) -> Reply:
        if request.body["model"] == "small":
            return filed()
        said = request.prompt[-1][1]
        return Reply([next(text for words, text in _ANSWERS.items() if words in said)])

    model_server.default = answer
    question = "I go to Oslo on Friday. When does the comet return?"
    body = {"model": "default", "messages": [{"role": "user", "content": f"{_PAGE}{question}"}], "user": "u-1"}
    head = {"x-conversation-id": "first"}
    first = await client.post("/v1/chat/completions", json=body, headers=head)
    first.raise_for_status()
    turn = (await client.get(f"/api/v1/turns/{first.headers['x-turn-id']}")).raise_for_status().json()
    await services.memory.indexing.index_waiting()
    session = await _session(services, turn["conversation_id"])
    for message, where in (("Yes", session), ("Is Oslo rainy?", "second"), ("When is it back again?", session)):
        await say(client, message, where)

    async def noted() -> bool:
        return not await services.database.fetch(DEFAULT_TENANT, _NOT_NOTED, {}, tuple_row)

    await until(noted)
    found = await services.database.fetch(DEFAULT_TENANT, _STORED, {}, tuple_row)
    shown = {
        text: (origin, sentences_at(text, spans) if spans is not None else None) for text, origin, spans in found
    }
    assert shown == {
        _ANSWERS["return?"]: ("document", ["Halley is back in 2061. "]),
        _ANSWERS["Yes"]: (None, None),
        _ANSWERS["Oslo rainy"]: (None, None),
        _ANSWERS["again?"]: ("document", [_ANSWERS["again?"]]),
    }
    [(user_id,)] = await services.database.fetch(
        DEFAULT_TENANT, "SELECT id FROM users WHERE external_id = 'u-1'", {}, tuple_row
    )
    await services.filing.file(DEFAULT_TENANT, user_id)
    prompt = asked(model_server)[-1].prompt[-1][1]
    assert "> […] Shall I note your trip to Oslo?" in prompt
    assert "> It is noted." in prompt
    assert "> Often, take a coat." in prompt
    assert "2061" not in prompt


async def _session(services: Services, conversation_id: str) -> str:
    statement: Any = "SELECT session_key FROM conversations WHERE id = %(id)s"
    [(session,)] = await services.database.fetch(DEFAULT_TENANT, statement, {"id": conversation_id}, tuple_row)
    return str(session)
