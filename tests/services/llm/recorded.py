"""Response bodies in the shapes that endpoints send."""

from typing import Any

from tests.support.model_server import (
    Reply,
    ToolCall,
    chat_events,
    responses_events,
    sse,
)

Event = dict[str, Any]

ENGLISH = ["The ", "train ", "leaves ", "at ", "nine", "."]
MIXED = ["你好", "，世", "界", " – ", "naïve ", "👩‍🚀", "🇨🇳", "！\n", "“好”"]
TWO_CALLS = [
    ToolCall("current_time", {"zone": "Asia/Shanghai"}),
    ToolCall("weather", {"place": "北京", "days": 3}, "call_2"),
]
DONE = b"data: [DONE]\n\n"
_CHAT = {"id": "chatcmpl-7", "object": "chat.completion.chunk", "created": 1760000000, "model": "m-1"}
_PLACE = {"item_id": "msg_1", "output_index": 0, "content_index": 0}


def body(events: list[Event], *, done: bool = False) -> bytes:
    """The events as one body."""
    return b"".join(map(sse, events)) + (DONE if done else b"")


def chunk(delta: Event | None, finish: str | None = None, **more: Any) -> Event:
    """One chunk of Chat Completions."""
    return {**_CHAT, "choices": [{"index": 0, "delta": delta, "finish_reason": finish, **more}]}


def chat(*deltas: Event, finish: str = "stop", after: tuple[Event, ...] = ()) -> bytes:
    """A complete answer of Chat Completions."""
    first = chunk({"role": "assistant", "content": "", "refusal": None})
    return body([first, *map(chunk, deltas), chunk({}, finish), *after], done=True)


def _text(pieces: list[str]) -> list[Event]:
    return [{"content": piece} for piece in pieces]


def _scripted(*replies: Reply) -> list[Event]:
    """The events of the Responses API in order, the output of several replies in one response."""
    return [event for reply in replies for event in responses_events(reply, "m-1")]


def between(events: list[Event], after: str, *more: Event) -> list[Event]:
    """`events` with `more` behind the last event of the kind `after`."""
    at = max(index for index, event in enumerate(events) if event["type"] == after) + 1
    return [*events[:at], *more, *events[at:]]


def ending(events: list[Event], kind: str, **response: Any) -> list[Event]:
    """`events` with another last event."""
    last = events[-1]
    return [*events[:-1], {**last, "type": kind, "response": {**last["response"], **response}}]


_LOGPROBS = {"content": [{"token": "Hi", "logprob": -0.1, "bytes": [72, 105], "top_logprobs": []}]}
_USAGE = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
_DETAILS = {
    "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": None},
    "completion_tokens_details": {"reasoning_tokens": 1},
}

CHAT: dict[str, bytes] = {
    "english": chat(*_text(ENGLISH)),
    "chinese and emoji": chat(*_text(MIXED)),
    "scripted with usage": body(chat_events(Reply(ENGLISH), "m-1"), done=True),
    "usage with details": chat(
        *_text(ENGLISH), after=({**_CHAT, "choices": [], "usage": {**_USAGE, **_DETAILS}},)
    ),
    "usage with the last chunk": body([chunk({"content": "Hi"}), {**chunk({}, "stop"), "usage": _USAGE}]),
    "usage with every chunk": body(
        [{**chunk({"content": piece}), "usage": _USAGE} for piece in ENGLISH] + [chunk({}, "stop")]
    ),
    "service tier and fingerprint": body(
        [
            {**chunk({"content": "Hi"}), "system_fingerprint": "fp"},
            {**chunk({}, "stop"), "system_fingerprint": "fp", "service_tier": "default"},
        ]
    ),
    "one tool call": body(chat_events(Reply(tool_calls=TWO_CALLS[:1]), "m-1"), done=True),
    "two tool calls": body(chat_events(Reply(tool_calls=TWO_CALLS), "m-1"), done=True),
    "text, then a tool call": body(chat_events(Reply(MIXED, TWO_CALLS[1:]), "m-1"), done=True),
    "a tool call without an index": chat(
        {"tool_calls": [{"id": "c", "type": "function", "function": {"name": "now", "arguments": "{}"}}]},
        finish="tool_calls",
    ),
    "a tool call that is not JSON": chat(
        {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "now", "arguments": '{"zone": '}}]},
        finish="length",
    ),
    "refusal": chat({"refusal": "I can"}, {"refusal": "not."}),
    "logprobs": body(
        [
            chunk({"content": "Hi"}, logprobs=_LOGPROBS),
            chunk({"content": "Hi"}, logprobs=_LOGPROBS),
            chunk({}, "stop", logprobs=None),
        ]
    ),
    "cut by the token limit": chat(*_text(ENGLISH), finish="length"),
    "finish in the chunk of the last text": body([chunk({"content": "Hel"}), chunk({"content": "lo"}, "stop")]),
    "a finish without a delta": body(
        [chunk({"content": "Hi"}), {**_CHAT, "choices": [{"index": 0, "finish_reason": "stop"}]}]
    ),
    "a finish with a null delta": body([chunk({"content": "Hi"}), chunk(None, "stop")]),
    "reasoning beside the text": chat(
        {"content": None, "reasoning_content": "Hm."},
        {"content": "Yes", "reasoning_content": "!"},
        {"content": "."},
    ),
    "content filter results first": body(
        [
            {**_CHAT, "choices": [], "prompt_filter_results": [{"prompt_index": 0}]},
            {
                **chunk({"content": "Hi"}, content_filter_results={"hate": {"filtered": False}}),
                "obfuscation": "x9",
            },
            chunk({}, "stop"),
        ],
        done=True,
    ),
    "no text at all": chat(),
}
"""Bodies of Chat Completions."""


def _part(index: int, text: str) -> list[Event]:
    place = {**_PLACE, "content_index": index}
    return [
        {"type": "response.content_part.added", "part": {"type": "output_text", "text": ""}, **place},
        *({"type": "response.output_text.delta", "delta": letter, **place} for letter in text),
        {"type": "response.output_text.done", "text": text, **place},
    ]


def _reasoning(encrypted: str | None = None) -> list[Event]:
    item: Event = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": encrypted}
    place = {"item_id": "rs_1", "output_index": 0, "summary_index": 0}
    part = {"type": "summary_text", "text": ""}
    return [
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.reasoning_summary_part.added", "part": part, **place},
        {"type": "response.reasoning_summary_text.delta", "delta": "想", **place},
        {"type": "response.reasoning_summary_text.delta", "delta": "一想", **place},
        {"type": "response.reasoning_summary_text.done", "text": "想一想", **place},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
    ]


def _shifted(events: list[Event]) -> list[Event]:
    """The events one place further down in the output."""
    return [{**e, "output_index": e["output_index"] + 1} if "output_index" in e else e for e in events]


_PLAIN = _scripted(Reply(ENGLISH))
_CALLS = _scripted(Reply(tool_calls=TWO_CALLS))
_TEXT_AND_CALL = _scripted(Reply(MIXED, TWO_CALLS[1:]))
_WITHOUT_TEXT_DONE = [event for event in _TEXT_AND_CALL if not event["type"].endswith(("text.done", "part.done"))]
_CITATION = {
    "type": "url_citation",
    "url": "https://example.org/",
    "title": "T",
    "start_index": 0,
    "end_index": 3,
}

RESPONSES: dict[str, bytes] = {
    "english": body(_PLAIN),
    "chinese and emoji": body(_scripted(Reply(MIXED))),
    "one tool call": body(_scripted(Reply(tool_calls=TWO_CALLS[:1]))),
    "two tool calls": body(_CALLS),
    "text, then a tool call": body(_TEXT_AND_CALL),
    "text without its done events, then a tool call": body(_WITHOUT_TEXT_DONE),
    "two texts without done events": body(
        [
            *_PLAIN[:3],
            *(
                e
                for i, t in ((0, "abc"), (1, "def"), (0, "gh"))
                for e in _part(i, t)
                if e["type"].endswith("delta")
            ),
            _PLAIN[-1],
        ]
    ),
    "text around the start of a tool call": body(
        [*_PLAIN[:6], *_shifted(_CALLS[2:4]), *_PLAIN[6:9], *_shifted(_CALLS[4:5]), _PLAIN[-1]]
    ),
    "several parts": body([*_PLAIN[:3], *_part(0, "一二三"), *_part(1, "four"), *_part(2, "5"), _PLAIN[-1]]),
    "refusal": body(
        [
            *_PLAIN[:3],
            {"type": "response.refusal.delta", "delta": "I cannot.", **_PLACE},
            {"type": "response.refusal.done", "refusal": "I cannot.", **_PLACE},
            _PLAIN[-1],
        ]
    ),
    "reasoning, then text": body([*_PLAIN[:2], *_reasoning(), *_shifted(_PLAIN[2:])]),
    "encrypted reasoning, then calls": body([*_PLAIN[:2], *_reasoning("gAAA"), *_shifted(_CALLS[2:])]),
    "annotation in the text": body(
        [
            *_PLAIN[:6],
            {
                "type": "response.output_text.annotation.added",
                "annotation_index": 0,
                "annotation": _CITATION,
                **_PLACE,
            },
            *_PLAIN[6:],
        ]
    ),
    "logprobs": body(
        [{**e, "logprobs": _LOGPROBS["content"]} if e["type"].endswith("text.delta") else e for e in _PLAIN]
    ),
    "incomplete": body(
        ending(
            _PLAIN,
            "response.incomplete",
            status="incomplete",
            incomplete_details={"reason": "max_output_tokens"},
        )
    ),
    "no usage": body(ending(_PLAIN, "response.completed", usage=None)),
    "service tier": body(ending(_PLAIN, "response.completed", service_tier="flex", user="u")),
    "queued, and events of an unknown kind": body(
        [
            _PLAIN[0],
            {"type": "response.queued", "response": _PLAIN[0]["response"]},
            *between(
                _PLAIN[1:],
                "response.output_text.delta",
                {"type": "response.novelty", "what": [1, {"x": None}]},
            ),
        ]
    ),
    "unknown fields": body([{**event, "obfuscation": "z8", "extra": {"a": [1]}} for event in _PLAIN]),
    "no content index": body([{k: v for k, v in e.items() if k != "content_index"} for e in _PLAIN]),
    "a web search first": body(
        [
            *_PLAIN[:2],
            {
                "type": "response.output_item.done",
                "output_index": 0,
                "item": {
                    "id": "ws_1",
                    "type": "web_search_call",
                    "status": "completed",
                    "action": {"type": "search", "query": "天气"},
                },
            },
            *_shifted(_PLAIN[2:]),
        ]
    ),
}
"""Bodies of the Responses API."""

BODIES = {"chat": CHAT, "responses": RESPONSES}
