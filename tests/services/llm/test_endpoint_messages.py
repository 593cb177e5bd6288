"""Endpoints' errors: what they are about, and what of them reaches a log."""

import httpx
import openai
import pytest

from services.errors import RefusalTopic
from services.llm.endpoint_messages import endpoint_message, for_log, topic_of

MESSAGES: dict[RefusalTopic, tuple[str, ...]] = {
    "tools": (
        "registry.ollama.ai/library/gemma2:2b does not support tools",
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        "tools param requires --jinja flag",
        "No endpoints found that support tool use.",
        "Unrecognized request argument supplied: functions",
        "body.tools: Extra inputs are not permitted",
    ),
    "messages": (
        "System message must be at the beginning.",
        "After the optional system message, conversation roles must alternate user and assistant",
        "System role not supported",
        "messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
        "A message with 'tool_calls' must be followed by tool messages for each 'tool_call_id'.",
    ),
    "context": (
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens "
        "(8000 in the messages, 1000 in the functions). Please reduce the length of the messages or functions.",
        "input length and max_tokens exceed context limit: context window is 4096",
        "Range of input length should be [1, 30720]",
        "Prompt 超长",
        "Total tokens of image and text exceed max message tokens",
        "Invalid request: Your request exceeded model token limit: 8192",
        "token数量超过上限",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4500 `inputs` tokens",
        "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
    ),
    "credit": (
        "Insufficient Balance",
        "Access denied, please make sure your account is in good standing. Arrearage",
        "该令牌额度已用尽",
        "You exceeded your current quota, please check your plan and billing details.",
        "Your account has an overdue balance. AccountOverdueError",
    ),
    "rate": (
        "Open api qps request limit reached",
        "Requests rate limit exceeded, please try again later. Throttling.RateQuota",
        "请求过于频繁，请稍后再试",
    ),
    "stream_options": ("body.stream_options: Extra inputs are not permitted",),
    "unnamed": ("Extra inputs are not permitted",),
    "reasoning": (
        "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property "
        "'reasoning_content' is unsupported)]",
    ),
    "model": (
        "The model `large-9` does not exist or you do not have access to it.",
        'model "gemma9" not found, try pulling it first',
    ),
    "temperature": ("Unsupported value: 'temperature' does not support 0.3 with this model.",),
    "schema": ("This response_format type is unavailable now", "Invalid schema for response_format 'plan'"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("topic", "message"), [(topic, message) for topic, messages in MESSAGES.items() for message in messages]
)
def test_a_refusal_is_about_what_its_message_names(topic: RefusalTopic, message: str) -> None:
    assert topic_of(message) == topic


@pytest.mark.parametrize(
    "message", ["scripted 400", "Incorrect API key provided.", "Model names are case-sensitive."]
)
def test_another_refusal_is_about_nothing_in_particular(message: str) -> None:
    assert topic_of(message) is None


def test_the_code_and_the_parameter_count_too() -> None:
    assert topic_of("Bad request", code="context_length_exceeded") == "context"
    assert topic_of("Value is not supported", parameter="tools") == "tools"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"message": "no tools", "type": "invalid_request_error"}, "no tools"),
        ({"error": {"code": 500, "message": "tools param"}}, "tools param"),
        ({"detail": "Not Found"}, "Not Found"),
        (
            {"detail": [{"loc": ["body", "tools"], "msg": "Extra inputs", "input": "my diary"}]},
            "body.tools: Extra inputs",
        ),
        ("plain\n words", "plain words"),
        ("<html>Bad gateway</html>", "HTTP 400 with a text/html that holds no message"),
        (None, "HTTP 400 with a text/html that holds no message"),
    ],
)
def test_the_message_is_read_from_the_usual_bodies(body: object, said: str) -> None:
    request = httpx.Request("POST", "http://127.0.0.1/v1/chat/completions")
    response = httpx.Response(400, headers={"content-type": "text/html; charset=utf-8"}, request=request)
    error = openai.BadRequestError("Error code: 400", response=response, body=body)  # type: ignore[arg-type]
    assert endpoint_message(error) == said


@pytest.mark.parametrize(
    ("message", "secret"),
    [
        ("Incorrect API key provided: sk-proj-abcd****wxyz.", "abcd"),
        ("cannot reach http://ada:lovelace@models.example/v1", "lovelace"),
        ("cannot reach http://models.example/v1?api-key=0123456789abcdef", "0123456789abcdef"),
        ("token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl has expired", "eyJzdWIiOiJhZGEifQ"),
        ("the key hunter-two is unknown", "hunter-two"),
    ],
)
def test_secrets_are_removed(message: str, secret: str) -> None:
    shown = for_log(message, ["hunter-two"], [])
    assert secret not in shown
    assert "***" in shown


@pytest.mark.parametrize("words", ["my landlord wants to sell the flat in March", "我的房东打算三月份把公寓卖掉"])
def test_quotations_of_the_prompt_are_removed(words: str) -> None:
    prompt = ["You are kind.", f"Listen: {words}, what now?"]
    assert for_log(f"invalid content '{words}' at 3", [], prompt) == "invalid content '[prompt]' at 3"
