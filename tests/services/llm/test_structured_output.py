"""Asking a small model for a form: what real models write is understood, and a retry says what was wrong."""

import json
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel

from services.errors import BadModelOutput, ModelFailed
from services.llm.chat_models import ChatModels
from services.llm.structured_output import ask_for, json_answer
from tests.services.llm.clients import Make
from tests.support.model_server import ModelServer, Received, Reply

pytestmark = pytest.mark.untraced

ASK = [SystemMessage("Answer with JSON."), HumanMessage("Which city?")]


class City(BaseModel):
    city: str
    since: int = 0


class Cities(BaseModel):
    cities: list[City]


@pytest.mark.parametrize(
    "text",
    [
        '```\n{"city": "Bergen", "since": 2019}\n```\nLet me know if you need more.',
        'Sure! Here is the JSON you asked for:\n\n{"city": "Bergen", "since": 2019}\n\nHope that helps {smile}.',
        "{'city': 'Bergen', 'since': 2019, 'note': None, 'sure': True}",
        '{“city”: “Bergen”， “since”： 2019}',
        '{"city": "Bergen", "since": "2019"}',
        '{\n  "city": "Bergen",\n  "since": 2019,\n}\n',
        '好的，结果如下：\n{"city": "Bergen", "since": 2019}\n以上。',
    ],
)  # fmt: skip
def test_one_object_is_read_out_of_what_models_write(text: str) -> None:
    answer = json_answer(City, text)
    assert (answer.city, answer.since) == ("Bergen", 2019)


@pytest.mark.parametrize(
    ("text", "cities"),
    [
        ('{"cities": [{"city": "Bergen"}, {"city": "Oslo", "since": null}]}', ["Bergen", "Oslo"]),
        ('[{"city": "Bergen"}, {"city": "Oslo"}]', ["Bergen", "Oslo"]),
        ('{"city": "Bergen"}', ["Bergen"]),
        ('{"city": "Bergen"}\n{"city": "Oslo"}', ["Bergen", "Oslo"]),
        ('{"cities": [{"city": "Bergen"}, {"city": "Oslo"}, {"city": "Tro', ["Bergen", "Oslo"]),
        ('{"cities": []}', []),
        ("[]", []),
        ('{"cities": [{"city": "Bergen [old town]"}, {"city": "it\'s {braced}"}]}',
         ["Bergen [old town]", "it's {braced}"]),
    ],
)  # fmt: skip
def test_lists_come_bare_cut_off_or_line_by_line(text: str, cities: list[str]) -> None:
    assert [each.city for each in json_answer(Cities, text, items="cities").cities] == cities


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Bergen", "no JSON object"),
        ('{"town": "Bergen"}', "city is wrong: missing"),
        ('{"city": ["secret"]}', "city is wrong: string_type"),
        ("{" * 5000, "no JSON object"),
    ],
)
def test_what_is_wrong_is_told_without_quoting_the_answer(text: str, problem: str) -> None:
    with pytest.raises(BadModelOutput) as caught:
        json_answer(City, text)
    assert caught.value.message == problem


@pytest.fixture
def models(make: Make, model_server: ModelServer, api: str) -> ChatModels:
    return make(model_server.base_url, api, small_llm_model="small")


def _city(text: str) -> City:
    return json_answer(City, text)


def _format_of(request: Received) -> Any:
    body = request.body
    return body.get("response_format") or (body.get("text") or {}).get("format")


async def test_a_retry_shows_the_answer_and_what_was_wrong_with_it(
    models: ChatModels, model_server: ModelServer
) -> None:
    model_server.script(Reply(['{"town": "Bergen"}']), Reply(['{"city": "Bergen"}']))
    assert (await ask_for(models, ASK, _city)).city == "Bergen"
    first, second = model_server.requests
    assert [text for _, text in first.prompt] == ["Answer with JSON.", "Which city?"]
    assert second.prompt[:2] == first.prompt
    (role, shown), (asks, again) = second.prompt[2:]
    assert (role, shown, asks) == ("assistant", '{"town": "Bergen"}', "user")
    assert "city is wrong: missing" in again


async def test_the_schema_is_sent_and_an_endpoint_that_refuses_it_is_asked_plainly_from_then_on(
    models: ChatModels, model_server: ModelServer
) -> None:
    refused = {"error": {"message": "'response_format' of type json_schema is not supported"}}
    headers = {"Content-Type": "application/json"}
    city = Reply(['{"city": "Bergen"}'])
    model_server.script(city, Reply(status=400, raw=json.dumps(refused).encode(), headers=headers), city, city)
    for _ in range(3):
        assert (await ask_for(models, ASK, _city, schema=City, purpose="a city")).city == "Bergen"
    formats = [_format_of(request) for request in model_server.requests]
    assert [form is not None for form in formats] == [True, True, False, False]
    assert formats[0]["type"] == "json_schema"
    described = formats[0].get("json_schema", formats[0])
    assert described["name"] == "a_city"
    assert described["schema"]["properties"]["city"]["type"] == "string"


async def test_a_server_that_is_away_is_not_asked_again_for_want_of_a_schema(
    models: ChatModels, model_server: ModelServer
) -> None:
    model_server.script(Reply(status=503))
    with pytest.raises(ModelFailed):
        await ask_for(models, ASK, _city, schema=City)
    assert len(model_server.requests) == 1
