"""Documents that clients put into a message: shown whole, or cut to what the question is about, and said so."""

from collections.abc import Callable
from typing import Any

import httpx
import openai
import pytest
from openai import AsyncOpenAI

from tests.support.model_server import ModelServer

pytestmark = pytest.mark.untraced

CLAUSES = {
    "zh": [
        "甲方乙方应当遵守约定，按期交付货物。",
        "违约的一方赔偿对方的损失。",
        "双方对商业秘密予以保密，期限五年。",
    ],
    "en": ["The parties keep to what they have agreed. ", "Any notice is in writing. ", "Secrets stay secret. "],
}
FACT = {
    "zh": "第三十七条 仓库押金为四万二千三百元，退租后七日内返还。",
    "en": "The warehouse deposit is 42,300 euros, returned within seven days. ",
}
QUESTION = {"zh": "仓库的押金是多少？", "en": "How much is the warehouse deposit?"}


def contract(language: str, size: int) -> str:
    """A contract of so many characters with one fact in its middle."""
    clauses = CLAUSES[language]
    half = "".join(clauses[at * at % 7 % 3] for at in range(size // len(clauses[0])))[: size // 2]
    return f"{half}{FACT[language]}{half}"


def _sources(text: str) -> str:
    source = f'<source id="1" name="c.pdf">{text}</source>'
    return f"### Task:\nAnswer from the context, citing [id].\n<context>\n{source}\n</context>\n"


def _open_webui(text: str, question: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": f"{_sources(text)}\n{question}"}]


def _open_webui_system(text: str, question: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": f"Be brief.\n{_sources(text)}"}, {"role": "user", "content": question}]


def _librechat(text: str, question: str) -> list[dict[str, str]]:
    files = f'Attached document(s):\n```md# "c.pdf"\n{text}\n\n```'
    return [{"role": "user", "content": f"{files}\n{question}"}]


def _lobehub(text: str, question: str) -> list[dict[str, str]]:
    file = f'<file id="f" name="c.pdf" type="pdf" size="1">{text}</file>'
    files = f"<files_info>\n<files>\n{file}\n</files>\n</files_info>"
    begin, end = "<!-- SYSTEM CONTEXT (NOT PART OF USER QUERY) -->", "<!-- END SYSTEM CONTEXT -->"
    return [{"role": "user", "content": f"{question}\n\n{begin}\n{files}\n{end}"}]


def _librechat_later(text: str, question: str) -> list[dict[str, str]]:
    return [
        *_librechat(text, "Here you are."),
        {"role": "assistant", "content": "Thanks."},
        {"role": "user", "content": question},
    ]


async def _ask(sdk: AsyncOpenAI, messages: Any, user: str = "u-1") -> Any:
    return await sdk.chat.completions.with_raw_response.create(model="default", user=user, messages=messages)


@pytest.mark.parametrize(
    ("form", "language", "size", "is_cut"),
    [
        (_open_webui, "zh", 6_000, False),
        (_open_webui, "zh", 60_000, True),
        (_open_webui, "en", 16_000, False),
        (_open_webui, "en", 200_000, True),
        (_open_webui_system, "zh", 60_000, True),
        (_librechat, "zh", 60_000, True),
        (_librechat_later, "zh", 60_000, True),
        (_lobehub, "en", 60_000, True),
    ],
)
async def test_a_document_is_read_where_the_question_points(
    form: Callable[[str, str], list[dict[str, str]]],
    language: str,
    size: int,
    is_cut: bool,
    sdk: AsyncOpenAI,
    url: str,
    model_server: ModelServer,
) -> None:
    answer = await _ask(sdk, form(contract(language, size), QUESTION[language]))
    sent = model_server.requests[-1].body
    prompt = "\n".join(str(part) for part in sent.get("messages") or sent["input"])
    assert FACT[language].strip() in prompt
    header = answer.headers.get("X-Anamnesis-Cut", "")
    assert header.startswith("attached=") == is_cut
    assert ("[…]" in prompt) == is_cut
    async with httpx.AsyncClient() as http:
        turn = (await http.get(f"{url}/api/v1/turns/{answer.headers['X-Turn-Id']}")).json()
    assert turn["degraded"] == ["attached"] * is_cut
    if is_cut:
        shown, whole = map(int, header.removeprefix("attached=").split("/"))
        assert shown < size <= whole
        assert str(whole) in prompt


@pytest.mark.settings(attached_tokens=1000, openai_system_tokens=50)
async def test_settings_say_how_much_is_shown(sdk: AsyncOpenAI, model_server: ModelServer) -> None:
    rules = {"role": "system", "content": "Answer in verse. " * 40}
    answer = await _ask(sdk, [rules, *_open_webui(contract("zh", 6_000), QUESTION["zh"])])
    instructions, attached = answer.headers["X-Anamnesis-Cut"].split(", ")
    assert instructions.startswith("instructions=")
    assert instructions.endswith("/679")
    assert int(attached.removeprefix("attached=").split("/")[0]) < 1_500
    assert FACT["zh"] in str(model_server.requests[-1].body)


@pytest.mark.settings(message_characters=50_000)
async def test_the_longest_message_is_a_setting(sdk: AsyncOpenAI, model_server: ModelServer) -> None:
    long = contract("zh", 45_000)
    await _ask(sdk, [{"role": "user", "content": long}])
    assert FACT["zh"] in str(model_server.requests[-1].body)
    with pytest.raises(openai.BadRequestError, match=r"at most 50000.*ANAMNESIS_MESSAGE_CHARACTERS"):
        await _ask(sdk, [{"role": "user", "content": long * 2}])
