"""What an endpoint refuses in a prompt is told, and left out from then on: the conversation goes on."""

from collections.abc import Callable
from typing import Any

import httpx
import openai
import orjson
import pytest

from tests.api.openai.conftest import sdk as sdk  # noqa: PLC0414 — a fixture
from tests.support.model_server import ModelServer, Received, Reply, ToolCall
from tests.support.openai_clients import OpenWebUi
from tests.support.talking import say

pytestmark = [pytest.mark.untraced, pytest.mark.settings(llm_api="chat")]

PHRASE = "敏感短语甲乙丙"


def _in_stream(error: Any) -> Reply:
    return Reply(raw=b"data: " + orjson.dumps(error) + b"\n\n")


ZHIPU = "系统检测到输入或生成内容可能包含不安全或敏感内容，请您避免输入易产生敏感内容的提示语，感谢您的配合。"
FILTERS = {
    "DeepSeek": Reply(status=400, error_message="Content Exists Risk", error_code="invalid_request_error"),
    "DashScope": Reply(
        status=400,
        error_code="data_inspection_failed",
        error_message="<400> InternalError.DataInspectionFailed: Input data may contain inappropriate content",
    ),
    "Zhipu": Reply(status=400, error_code="1301", error_message=ZHIPU),
    "Zhipu, in an answer": _in_stream({"error": {"code": "1301", "message": ZHIPU}}),
    "Zhipu, the finish alone": _in_stream(
        {"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "sensitive"}]}
    ),
    "Azure": Reply(
        status=400,
        error_code="content_filter",
        error_message="The response was filtered due to the prompt triggering Azure OpenAI's policy.",
    ),
    "Moonshot": Reply(status=400, error_message="The request was rejected because it was considered high risk."),
    "MiniMax": _in_stream({"base_resp": {"status_code": 1026, "status_msg": "input new_sensitive"}}),
    "OpenRouter": Reply(status=403, error_message="Input was flagged by moderation."),
    "StepFun": Reply(status=451, error_message="The content you provided or machine outputted is blocked."),
}
TOO_LONG = Reply(
    status=400,
    error_code="invalid_parameter_error",
    error_message="<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]",
)


def refusing(refusal: Reply, what: str = PHRASE) -> Callable[[Received], Reply]:
    """A model that refuses every prompt with these words."""
    return lambda asked: refusal if what in orjson.dumps(asked.body).decode() else Reply(["好", "的。"])


async def _refused(client: httpx.AsyncClient, code: str, message: str = PHRASE, **more: Any) -> None:
    body = {"user_id": "u-1", "session_id": "s-1", "message": message, **more}
    answer = await client.post("/api/v1/chat", json=body)
    assert (answer.status_code, answer.json()["code"]) == (400, code)


@pytest.mark.parametrize("name", FILTERS)
async def test_a_message_that_a_filter_refuses_is_in_no_later_prompt(
    name: str, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    model_server.default = refusing(FILTERS[name])
    await say(client, "我叫小林。")

    await _refused(client, "llm_content_refused")
    asked = len(model_server.requests)
    answer = await say(client, "换个话题，今天吃什么好？")

    assert (answer["answer"], answer["degraded"]) == ("好的。", [])
    assert len(model_server.requests) == asked + 1
    assert "我叫小林。" in model_server.requests[-1].said


async def test_an_answer_that_a_filter_breaks_off_is_in_no_later_prompt(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    text = {"choices": [{"index": 0, "delta": {"content": f"那是{PHRASE}"}}]}
    error = {
        "error": {"code": "data_inspection_failed", "message": "Output data may contain inappropriate content."}
    }
    pieces = [b"data: " + orjson.dumps(each) + b"\n\n" for each in (text, error)]
    model_server.script(Reply(raw_pieces=pieces, gap_s=0.2))
    model_server.default = refusing(FILTERS["DashScope"])
    await _refused(client, "llm_content_refused", "说说那件事。")
    assert (await say(client, "换个话题。"))["degraded"] == []
    assert "说说那件事" not in str(model_server.requests[-1].body)


async def test_a_message_that_is_too_long_for_the_model_is_in_no_later_prompt(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    model_server.default = refusing(TOO_LONG)
    await _refused(client, "llm_context_too_long")
    assert (await say(client, "换个话题。"))["degraded"] == []


async def test_a_clients_edit_and_its_next_message_are_answered(sdk: Any, model_server: ModelServer) -> None:
    model_server.default = refusing(FILTERS["DeepSeek"])
    tab = OpenWebUi(sdk)
    first = await tab.say("我叫小林。", parent="")
    with pytest.raises(openai.BadRequestError) as refused:
        await tab.say(PHRASE, parent=first, user_message="m-2", answer="a-2")
    assert refused.value.code == "llm_content_refused"
    after = await tab.say("说说别的", parent="a-2")
    await tab.say("说说更别的", parent=first)
    history = [{"role": "user", "content": "你好"}, {"role": "assistant", "content": "好的。"}]
    for user in ("u-2", None):
        shown = [*history, {"role": "user", "content": PHRASE}]
        with pytest.raises(openai.BadRequestError):
            await sdk.chat.completions.create(model="default", messages=shown, **({"user": user} if user else {}))
        # A client may show the refused message again, with the error in the place of an answer.
        shown += [{"role": "assistant", "content": "error"}, {"role": "user", "content": "说说别的"}]
        answer = await sdk.chat.completions.create(
            model="default", messages=shown, **({"user": user} if user else {})
        )
        assert answer.choices[0].message.content == "好的。"
    assert after.answer


async def test_what_is_refused_of_the_conversation_is_left_out_and_told(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    model_server.script(Reply(["那是", PHRASE]))
    await say(client, "说说那件事。")
    model_server.default = refusing(FILTERS["DashScope"])

    answer = await say(client, "谢谢，那今天吃什么？")

    assert (answer["answer"], answer["degraded"]) == ("好的。", ["history"])
    assert model_server.requests[-1].said == ["谢谢，那今天吃什么？"]
    assert "拒绝" in str(model_server.requests[-1].prompt)


async def test_a_refused_result_of_a_tool_is_left_out_and_told(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    await client.post("/api/v1/memories", json={"user_id": "u-1", "content": f"小林说过{PHRASE}"})
    model_server.script(Reply(tool_calls=[ToolCall("search_memory", {"query": "小林"})]))
    model_server.default = refusing(FILTERS["Azure"])
    answer = await say(client, "我们什么时候见面？")
    assert answer["answer"] == "好的。"
    assert PHRASE not in str(model_server.requests[-1].body)


NO_IMAGES = {
    "DeepSeek": "Failed to deserialize the JSON body into the target type: messages[1]: unknown variant "
    "`image_url`, expected `text` at line 1 column 262",
    "OpenRouter": "No endpoints found that support image input",
    "vLLM": "At most 0 image(s) may be provided in one request.",
    "SiliconFlow": "The model is not a VLM (Vision Language Model). Please use text-only prompts.",
    "Groq": "messages[1].content must be a string",
    "an address that is gone": "Failed to download image from https://example.com/a.png",
}


@pytest.mark.parametrize("name", NO_IMAGES)
async def test_images_that_a_model_refuses_are_left_out_and_the_text_stays(
    name: str, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    image = "https://example.com/a.png"
    model_server.default = refusing(Reply(status=400, error_message=NO_IMAGES[name]), image)
    await _refused(client, "llm_no_images", "看看这张图。", images=[image])

    degraded = [(await say(client, text))["degraded"] for text in ("那说说别的。", "再说说。")]

    assert degraded == [["images"], ["images"]]
    assert ["🖼 看看这张图。" in str(each.body) for each in model_server.requests[-2:]] == [True, True]
    assert sum(image in str(each.body) for each in model_server.requests) == 2  # then it is known


async def test_a_long_wait_that_an_endpoint_wants_is_told_to_the_caller(
    client: httpx.AsyncClient, sdk: Any, model_server: ModelServer
) -> None:
    model_server.default = Reply(status=429, headers={"Retry-After": "20"})
    body = {"user_id": "u-1", "session_id": "s-1", "message": "你好"}
    whole = await client.post("/api/v1/chat", json=body)
    stream = await client.post("/api/v1/chat/stream", json=body)
    with pytest.raises(openai.InternalServerError) as failed:
        await sdk.chat.completions.create(
            model="default", messages=[{"role": "user", "content": "你好"}], user="u-1"
        )
    assert [each.headers["Retry-After"] for each in (whole, failed.value.response)] == ["20", "20"]
    assert '"retry_after_s":20' in stream.text
    assert len(model_server.requests) == 3
