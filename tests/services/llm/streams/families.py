"""Streams in the shapes of servers that call themselves compatible with OpenAI, and what is to be read of each.

Each is written by hand after what is publicly known of its family.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

Event = dict[str, Any]
Call = tuple[str, dict[str, Any]]

DONE = b"data: [DONE]\n\n"
SEARCH: Call = ("search", {"query": "面馆"})
NOW: Call = ("now", {})


@dataclass(frozen=True)
class Family:
    """A stream, and the answer that it holds."""

    raw: bytes
    text: str = ""
    reasoning: str = ""
    calls: Sequence[Call] = ()
    usage: tuple[int, int, int] | None = None
    """Tokens of the prompt, of the answer, and cached ones; None = not reported."""
    finish: str = "stop"
    back: dict[str, Any] = field(default_factory=dict)
    """Fields that are sent back with its calls."""
    api: str = "chat"
    model: str = "m-1"


def frames(*events: Event | str, done: bool = True) -> bytes:
    """Events, and comments or other lines as they are, as one body."""
    lines = (each.encode() if isinstance(each, str) else b"data: " + orjson.dumps(each) for each in events)
    return b"".join(line + b"\n\n" for line in lines) + (DONE if done else b"")


def chunk(delta: Event | None = None, finish: Any = None, **more: Any) -> Event:
    """A chunk of Chat Completions; fields of the chunk beside the choice in `more`."""
    choice = {"index": 0, "delta": delta if delta is not None else {}, "finish_reason": finish}
    return {"id": "c-1", "object": "chat.completion.chunk", "model": "m-1", "choices": [choice], **more}


def call(index: Any, call_id: Any = None, name: Any = None, arguments: Any = None, **more: Any) -> Event:
    """A delta with one piece of a tool call; what is None is left out."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    piece = {"index": index, "id": call_id, "type": "function", "function": function, **more}
    return {"tool_calls": [{key: value for key, value in piece.items() if value is not None}]}


def usage(prompt: int, answer: int, **more: Any) -> Event:
    return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer, **more}


def calling(*deltas: Event) -> bytes:
    """Deltas that make up calls, and the end of them."""
    return frames(*map(chunk, deltas), chunk({}, "tool_calls"))


def said(*texts: str) -> list[Event]:
    return [chunk({"content": text}) for text in texts]


_ARGUMENTS = '{"query": "面馆"}'
_USED = (12, 5, 0)
_DETAIL = {"type": "reasoning.text", "index": 0}
_SIGNED = {"type": "thinking", "thinking": "Hm", "signature": "sig"}

CHAT: dict[str, Family] = {
    "OpenAI": Family(
        frames(
            chunk({"role": "assistant", "content": "", "refusal": None}, service_tier="default", usage=None),
            *[{**each, "usage": None, "obfuscation": "x7"} for each in said("你好", "，世界")],
            chunk({}, "stop"),
            {"choices": [], "usage": usage(12, 5, prompt_tokens_details={"cached_tokens": 8})},
        ),
        "你好，世界",
        usage=(12, 5, 8),
    ),
    "OpenAI, two calls at once": Family(
        frames(
            chunk({"role": "assistant", "content": None}),
            chunk(call(0, "call_a", "search", "")),
            chunk(call(0, arguments='{"query": ')),
            chunk(call(1, "call_b", "now", "")),
            chunk(call(0, arguments='"面馆"}')),
            chunk(call(1, arguments="{}")),
            chunk({}, "tool_calls"),
        ),
        calls=[SEARCH, NOW],
    ),
    "Azure": Family(
        frames(
            {"choices": [], "id": "", "model": "", "prompt_filter_results": [{"prompt_index": 0}]},
            *[{**each, "content_filter_offsets": {"check_offset": 1}} for each in said("Yes", ".")],
            {"choices": [{"index": 0, "finish_reason": None, "content_filter_results": {}, "delta": {}}]},
            chunk({}, "stop"),
        ),
        "Yes.",
    ),
    "DeepSeek, thinking before a call": Family(
        frames(
            chunk({"role": "assistant", "content": None, "reasoning_content": "用户想"}),
            chunk({"content": None, "reasoning_content": "吃面。"}),
            chunk({"content": "我找找。", "reasoning_content": None}),
            chunk(call(0, "call_0_f1", "search", "")),
            chunk(call(0, arguments=_ARGUMENTS)),
            chunk({"content": ""}, "tool_calls", usage=usage(12, 5, prompt_cache_hit_tokens=6)),
        ),
        "我找找。",
        "用户想吃面。",
        [SEARCH],
        (12, 5, 6),
        back={"reasoning_content": "用户想吃面。"},
    ),
    "DeepSeek, R1 through a server without a parser": Family(
        frames(*said("嗯，用户", "问好。\n", "</think>", "\n\n你好！"), chunk({}, "stop")),
        "你好！",
        "嗯，用户问好。\n",
        model="deepseek-ai/DeepSeek-R1-Distill-Qwen-7B",
    ),
    "DashScope, Qwen3 with usage in every chunk": Family(
        frames(
            chunk({"content": None, "reasoning_content": "想"}, usage=usage(12, 1)),
            chunk({"content": "好", "reasoning_content": None}, usage=usage(12, 3)),
            chunk({"content": "的"}, "stop", usage=usage(12, 5)),
        ),
        "好的",
        "想",
        usage=_USED,
        back={"reasoning_content": "想"},
    ),
    "DashScope, a call whose id comes once and is empty later": Family(
        calling(call(0, "call_x", "search", ""), call(0, "", "", '{"query": "'), call(0, "", None, '面馆"}')),
        calls=[SEARCH],
    ),
    "Zhipu GLM, a whole call in one delta": Family(
        calling(call(0, "call_9", "search", _ARGUMENTS)), calls=[SEARCH]
    ),
    "Moonshot, usage in the choice": Family(
        frames(
            *said("好", "的"),
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": usage(12, 5)}]},
        ),
        "好的",
        usage=_USED,
    ),
    "Doubao, Seed with its own tag": Family(
        frames(*said("<seed:think>", "想想", "</seed:think>", "好"), chunk({}, "stop")), "好", "想想"
    ),
    "MiniMax, the whole message at the end": Family(
        frames(
            *said("你", "好"),
            {"choices": [{"finish_reason": "stop", "message": {"content": "你好"}}], "usage": usage(12, 5)},
            done=False,
        ),
        "你好",
        usage=_USED,
    ),
    "MiniMax, thoughts in the content before a call": Family(
        frames(
            *said("<think>\n要查", "\n</think>\n\n", "稍等"),
            chunk(call(0, "c1", "search", _ARGUMENTS)),
            chunk({}, "tool_calls"),
        ),
        "稍等",
        "\n要查\n",
        [SEARCH],
    ),
    "SiliconFlow, name and role in every delta": Family(
        frames(
            chunk({"role": "assistant", **call(0, "019a", "search", "")}),
            chunk({"role": "assistant", **call(0, "019a", "search", '{"query": ')}),
            chunk({"role": "assistant", **call(0, "019a", "search", '"面馆"}')}),
            chunk({"role": "assistant", "content": ""}, "tool_calls", usage=usage(12, 5)),
        ),
        calls=[SEARCH],
        usage=_USED,
    ),
    "Mistral, Magistral's parts": Family(
        frames(
            chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]}),
            chunk({"content": [{"type": "text", "text": "Oui"}]}),
            chunk({"content": "."}, "stop"),
        ),
        "Oui.",
        "Hm.",
    ),
    "Groq": Family(
        frames(
            chunk({"role": "assistant", "content": ""}, x_groq={"id": "req_1"}),
            chunk({"reasoning": "Think."}),
            *said("Yes."),
            chunk({}, "stop", x_groq={"id": "req_1", "usage": usage(12, 5)}),
        ),
        "Yes.",
        "Think.",
        usage=_USED,
        back={"reasoning": "Think."},
    ),
    "OpenRouter": Family(
        frames(
            ": OPENROUTER PROCESSING",
            chunk({"reasoning": "Let", "reasoning_details": [{**_DETAIL, "text": "Let"}]}),
            chunk({"reasoning": " me", "reasoning_details": [{**_DETAIL, "text": " me", "signature": "s"}]}),
            ": OPENROUTER PROCESSING",
            chunk(call(0, "toolu_1", "search", _ARGUMENTS)),
            chunk({"content": ""}, "tool_calls", native_finish_reason="tool_use"),
            chunk({"content": ""}, None, usage=usage(12, 5)),
        ),
        reasoning="Let me",
        calls=[SEARCH],
        usage=_USED,
        back={"reasoning": "Let me", "reasoning_details": [{**_DETAIL, "text": "Let me", "signature": "s"}]},
    ),
    "Ollama, index always 0": Family(
        frames(
            chunk(call(0, "call_1", "search", _ARGUMENTS)),
            chunk(call(0, "call_2", "now", "{}")),
            chunk({"role": "assistant", "content": ""}, "tool_calls"),
        ),
        calls=[SEARCH, NOW],
    ),
    "vLLM": Family(
        frames(
            chunk({"role": "assistant", "content": ""}),
            chunk({"reasoning_content": "Hm", "reasoning": "Hm"}),
            chunk({"content": "Hi"}),
            {"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "stop", "stop_reason": None}]},
            {"choices": [], "usage": usage(12, 5)},
        ),
        "Hi",
        "Hm",
        usage=_USED,
        back={"reasoning_content": "Hm"},
    ),
    "vLLM, another id in each delta": Family(
        calling(
            call(0, "chatcmpl-tool-1", "search"),
            call(0, "chatcmpl-tool-2", None, '{"query": '),
            call(0, "chatcmpl-tool-3", None, '"面馆"}'),
        ),
        calls=[SEARCH],
    ),
    "SGLang, no index": Family(
        frames(
            chunk(
                {"tool_calls": [{"id": "0", "type": "function", "function": {"name": "search"}}]},
                matched_stop=None,
            ),
            chunk({"tool_calls": [{"function": {"arguments": '{"quer'}}]}),
            chunk({"tool_calls": [{"function": {"arguments": 'y": "面馆"}'}}]}),
            chunk({}, "tool_calls"),
        ),
        calls=[SEARCH],
    ),
    "llama.cpp, arguments as an object": Family(
        calling(call(0, "x1", "search", {"query": "面馆"})), calls=[SEARCH]
    ),
    "KoboldCpp, finish reason as the text null": Family(
        frames(chunk({"content": "今天"}, "null"), chunk({"content": "天气不错"}, "null"), chunk({}, "stop")),
        "今天天气不错",
    ),
    "LocalAI, finish reason stop in every chunk": Family(
        frames(*(chunk({"content": each}, "stop") for each in ("今天", "天气", "不错"))), "今天天气不错"
    ),
    "TGI, a call as one object": Family(
        frames(
            chunk({"tool_calls": {"index": 0, "id": "", "function": {"name": "search", "arguments": ""}}}),
            chunk({"tool_calls": {"index": 0, "id": "", "function": {"name": "search", "arguments": _ARGUMENTS}}}),
            chunk({}, "stop"),
        ),
        calls=[SEARCH],
    ),
    "LiteLLM, Anthropic's signed thoughts": Family(
        frames(
            chunk({"reasoning_content": "Hm", "thinking_blocks": [_SIGNED]}),
            chunk(call(1, "tooluse_1", "search", "")),
            chunk(call(1, None, None, _ARGUMENTS)),
            chunk({}, "tool_calls"),
        ),
        reasoning="Hm",
        calls=[SEARCH],
        back={"reasoning_content": "Hm", "thinking_blocks": [_SIGNED]},
    ),
    "LibreChat before Bedrock, arguments under another index": Family(
        calling(
            call(0, "tooluse_1", "search", ""), call(1, None, None, '{"query": '), call(1, None, None, '"面馆"}')
        ),
        calls=[SEARCH],
    ),
    "Gemini, no index and several calls": Family(
        frames(
            chunk(
                {
                    "tool_calls": [
                        {"function": {"name": "search", "arguments": _ARGUMENTS}, "id": ""},
                        {"function": {"name": "now", "arguments": "{}"}, "id": ""},
                    ]
                },
                "stop",
            )
        ),
        calls=[SEARCH, NOW],
    ),
    "Gemini, reasons in capitals": Family(frames(*said("So"), chunk({}, "MAX_TOKENS")), "So", finish="length"),
    "one-api, an end mark and nothing else": Family(frames(*said("完整", "回答")), "完整回答"),
    "a gateway without blank lines": Family(
        b"\n".join(b"data: " + orjson.dumps(each) for each in [*said("a", "b"), chunk({}, "stop")])
        + b"\ndata: [DONE]\n",
        "ab",
    ),
    "a gateway with empty frames": Family(
        b"\xef\xbb\xbfdata:\n\ndata: {}\n\ndata: null\n\n"
        + frames(
            {"choices": None}, {"choices": []}, chunk(None), *said("a"), {"object": "ping"}, chunk({}, "stop")
        ),
        "a",
    ),
    "Chinese gateway, arguments in a fence": Family(
        calling(call(0, "1", "search", "```json\n" + _ARGUMENTS + "\n```")), calls=[SEARCH]
    ),
    "Chinese gateway, an empty object before the arguments": Family(
        calling(call(0, "1", "search", "{}"), call(0, None, None, _ARGUMENTS)), calls=[SEARCH]
    ),
    "a byte order mark, no blank line at the end": Family(
        b"\xef\xbb\xbf" + frames(*said("你", "好")).rstrip(b"\n"), "你好"
    ),
    "an index as text": Family(calling(call("0", "c-1", "search", _ARGUMENTS)), calls=[SEARCH]),
    "arguments that are empty": Family(calling(call(0, "c-1", "now", "")), calls=[NOW]),
    "the function call of old": Family(
        frames(chunk({"function_call": {"name": "search", "arguments": _ARGUMENTS}}), chunk({}, "function_call")),
        calls=[SEARCH],
    ),
    "a second choice, and two end marks": Family(
        frames(
            {"choices": [{"index": at, "delta": {"content": text}} for at, text in enumerate("AZ")]},
            chunk({}, "stop"),
        )
        + DONE,
        "A",
    ),
    "a gateway that answers JSON": Family(
        orjson.dumps(
            {"choices": [{"message": {"content": "whole"}, "finish_reason": "stop"}], "usage": usage(12, 5)}
        ),
        "whole",
        usage=_USED,
    ),
    "an answer about the tags": Family(
        frames(*said("Models write `<think>` first and ", "`</think>` after it."), chunk({}, "stop")),
        "Models write `<think>` first and `</think>` after it.",
    ),
}
"""Streams of Chat Completions."""


def response(**more: Any) -> Event:
    return {"id": "resp_1", "object": "response", "status": "completed", "model": "m-1", "output": [], **more}


def message(*texts: str) -> Event:
    parts = [{"type": "output_text", "text": text} for text in texts]
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": parts}


def function(
    call_id: str | None = "call_1", name: str = "search", arguments: str = _ARGUMENTS, **more: Any
) -> Event:
    item = {"type": "function_call", "id": "fc_1", "call_id": call_id}
    return {**item, "name": name, "arguments": arguments, **more}


_IN_OUT = {"input_tokens": 12, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 3}}


def _arguments(text: str, **more: Any) -> Event:
    return {"type": "response.function_call_arguments.delta", "delta": text, **more}


def _delta(text: str, **more: Any) -> Event:
    return {"type": "response.output_text.delta", "delta": text, **more}


RESPONSES: dict[str, Family] = {
    "OpenAI": Family(
        frames(
            {"type": "response.created", "response": response(status="in_progress")},
            {"type": "response.output_item.added", "output_index": 0, "item": message()},
            _delta("Hi", item_id="msg_1", output_index=0, content_index=0),
            {"type": "response.output_text.done", "text": "Hi"},
            {"type": "response.output_item.done", "output_index": 0, "item": message("Hi")},
            {"type": "response.completed", "response": response(output=[message("Hi")], usage=_IN_OUT)},
            done=False,
        ),
        "Hi",
        usage=(12, 5, 3),
    ),
    "vLLM, output indexes that reasoning and text share": Family(
        frames(
            {"type": "response.reasoning_text.delta", "delta": "Hm", "output_index": 0},
            {"type": "response.output_item.added", "output_index": 0, "item": message()},
            _delta("Hi", output_index=0),
            {"type": "response.completed", "response": response(usage=_IN_OUT)},
        ),
        "Hi",
        "Hm",
        usage=(12, 5, 3),
    ),
    "GitHub Copilot, another item id in each event": Family(
        frames(
            {
                "type": "response.output_item.added",
                "output_index": 0,
                "item": function("c1", arguments="", id="a"),
            },
            _arguments('{"query": ', output_index=0, item_id="b"),
            _arguments('"面馆"}', output_index=0, item_id="c"),
            {"type": "response.output_item.done", "output_index": 0, "item": function("c1", id="d")},
            {"type": "response.completed", "response": response(output=[function("c1", id="e")])},
        ),
        calls=[SEARCH],
    ),
    "LiteLLM, one output index for two calls": Family(
        frames(
            {"type": "response.output_item.added", "output_index": 1, "item": function("c1", arguments="")},
            _arguments(_ARGUMENTS, output_index=1),
            {"type": "response.output_item.added", "output_index": 1, "item": function("c2", "now", "")},
            _arguments("{}", output_index=1),
            {"type": "response.completed", "response": response()},
        ),
        calls=[SEARCH, NOW],
    ),
    "LM Studio, bare deltas": Family(
        frames(
            {"type": "response.reasoning_summary_text.delta", "delta": "Hm"},
            _delta("H"),
            _delta("i"),
            {"type": "response.completed", "response": response()},
        ),
        "Hi",
        "Hm",
    ),
    "LocalAI, only the last event": Family(
        frames({"type": "response.completed", "response": response(output=[message("Hi"), function()])}),
        "Hi",
        calls=[SEARCH],
    ),
    "a gateway that answers JSON": Family(
        orjson.dumps(response(output=[{"type": "reasoning", "summary": []}, message("Hi")], usage=_IN_OUT)),
        "Hi",
        usage=(12, 5, 3),
    ),
    "a gateway with the end mark alone": Family(frames(_delta("Hi")), "Hi"),
    "incomplete": Family(
        frames(
            _delta("Hi"),
            {
                "type": "response.incomplete",
                "response": response(status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
            },
        ),
        "Hi",
        finish="length",
    ),
}
"""Streams of the Responses API."""

FAULTS: dict[str, tuple[bytes, str, str]] = {
    "OpenRouter, in the middle": (
        frames(
            {
                "error": {"code": 502, "message": "Provider disconnected"},
                "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}],
            }
        ),
        "llm_server_error",
        "Provider disconnected",
    ),
    "one-api, JSON": (
        orjson.dumps({"error": {"message": "该令牌额度已用尽", "type": "one_api_error"}}),
        "llm_no_credit",
        "该令牌额度已用尽",
    ),
    "MiniMax": (
        frames({"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}, "choices": None}),
        "llm_no_credit",
        "insufficient balance",
    ),
    "DashScope": (
        frames({"code": "InvalidParameter", "message": "Range of input length should be [1, 30720]"}),
        "llm_context_too_long",
        "Range of input length",
    ),
    "Baidu": (
        frames({"error_code": 18, "error_msg": "Open api qps request limit reached"}, done=False),
        "llm_rate_limited",
        "qps request limit",
    ),
    "a proxy, a message alone": (
        b"event: error\n" + frames({"message": "upstream went away"}, done=False),
        "llm_server_error",
        "upstream went away",
    ),
    "Zhipu GLM, network error": (
        frames(chunk({"content": ""}, "network_error")),
        "llm_server_error",
        "network_error",
    ),
}
"""Errors inside a response with status 200: the body, its failure, and words of the log."""
