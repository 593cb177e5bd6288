"""Exports of assistants, messengers and memory services in the shapes that they are published in."""

import json
from pathlib import Path
from typing import Any

import pytest

from services.transfer.vendors.conversion import Vendor
from tests.services.transfer.test_vendors import read

AT = "2025-11-01T12:26:40+00:00"
_Said = list[tuple[str, str, str | None]]


def _node(parent: str | None, at: str, *fragments: tuple[str, str], **values: Any) -> dict[str, Any]:
    message = {"model": "deepseek-chat", "files": [], "inserted_at": at} | values
    message["fragments"] = [{"type": kind, "content": text} for kind, text in fragments]
    return {"parent": parent, "children": [], "message": message if fragments else None}


DEEPSEEK = [
    {
        "id": "d-1",
        "title": "狗",
        "inserted_at": "2025-11-01T20:26:40.505000+08:00",
        "mapping": {
            "root": _node(None, ""),
            "1": _node("root", AT, ("REQUEST", "我的狗叫布鲁诺。"), files=[{"file_name": "a.jpg"}]),
            "2": _node("1", AT, ("RESPONSE", "An older answer.")),
            "3": _node(
                "1", "2025-11-01T12:26:41+00:00", ("THINK", "Hm."), ("SEARCH", ""), ("RESPONSE", "好名字！")
            ),
        },
    }
]
GEMINI = [
    {
        "header": "Gemini Apps",
        "title": "Created Gemini Canvas x",
        "time": "2025-11-01T13:30:00Z",
        "products": ["Gemini Apps"],
    },
    {
        **{
            "header": "Gemini Apps",
            "title": "Prompted And what does he eat? Attached 1 file.",
            "products": ["Gemini Apps"],
        },
        **{"time": "2025-11-01T12:28:00Z", "safeHtmlItem": [{"html": "<p>Meat,<br>and <b>bones</b>.</p>"}]},
    },
    {"header": "Gemini Apps", "title": "Prompted My dog is Bruno.", "time": AT, "products": ["Gemini Apps"]},
    {"header": "Search", "title": "Searched for dogs", "time": AT, "products": ["Search"]},
    {
        "header": "Gemini Apps",
        "title": "Prompted Hello",
        "time": "2025-10-31T12:00:00Z",
        "products": ["Gemini Apps"],
    },
]
TAVERN = [
    {"user_name": "unused", "character_name": "unused", "create_date": 1762000000991, "chat_metadata": {}},
    {
        "name": "Seraphina",
        "is_user": False,
        "send_date": "November 1, 2025 12:26pm",
        "mes": "Hi.",
        "swipes": ["Hi.", "Yo."],
    },
    {"name": "Me", "is_user": True, "send_date": "2025-11-01T12:27:00Z", "mes": "My dog is Bruno."},
    {"name": "System", "is_user": False, "is_system": True, "send_date": 1762000041000, "mes": "hidden"},
]
CHARACTER = {
    "info": {"character": {"name": "Yoda"}},
    "histories": {
        "histories": [
            {
                "external_id": "h-1",
                "msgs": [
                    {"text": "Hm.", "src": {"is_human": False, "name": "Yoda"}},
                    {"text": "I am Luke.", "src": {"is_human": True, "name": "me"}},
                ],
            }
        ]
    },
}
TELEGRAM = {
    "personal_information": {"user_id": 7, "first_name": "Me"},
    "chats": {
        "about": "",
        "list": [
            {
                "name": "Anna",
                "type": "personal_chat",
                "id": 42,
                "messages": [
                    {"id": 1, "type": "service", "date_unixtime": "1762000000", "text": ""},
                    {"id": 2, "type": "message", "date_unixtime": "1762000000", "from": "Anna",
                     "from_id": "user42", "text": ["See ", {"type": "link", "text": "https://a.example"}]},
                    {"id": 3, "type": "message", "date_unixtime": "1762000001", "from": "Me", "from_id": "user7",
                     "text": "Thanks!"},
                    {"id": 4, "type": "message", "date": "2025-11-01T12:26:42", "from": "Me", "from_id": "user7",
                     "photo": "a.jpg", "text": ""},
                ],
            }
        ],
    },
}  # fmt: skip
WHATSAPP = (
    "[13/11/2025, 10:15:22] Anna: \u200eMessages are end-to-end encrypted.\n[13/11/2025, 10:15:22] Anna: Hello\n"
    "two lines\n\u200e[13/11/2025, 10:16:00] Me: \u200eimage omitted\n[13/11/2025, 22:16:00] Me: Hi: there\n"
    "[13/11/2025, 22:17:00] Me: Our cat \u200e<attached: 00000043-PHOTO-2025-11-13-22-17-00.jpg>\n"
    "[13/11/2025, 22:18:00] Anna: Sweet! \u200e<This message was edited>\n"
)
ANDROID = (
    "11/1/25, 1:05 PM - You created the group\n11/13/25, 1:05 PM - Ben: Lunch?\n"
    "11/13/25, 1:06\u202fPM - Cleo: Yes\n"
    "11/13/25, 1:07 PM - Cleo: My menu.pdf (file attached)\n11/13/25, 1:08 PM - Ben: This message was deleted\n"
)

CHATS: dict[str, tuple[Vendor, str, Any, _Said, dict[str, int]]] = {
    "deepseek": (
        *("deepseek", "conversations.json", DEEPSEEK),
        [("user", "我的狗叫布鲁诺。", None), ("assistant", "好名字！", None)],
        {"other branches": 1, "thoughts": 1, "tool": 1, "images and files": 1},
    ),
    "gemini": (
        *("gemini", "MyActivity.json", GEMINI),
        [
            ("user", "My dog is Bruno.", None),
            ("user", "And what does he eat?", None),
            ("assistant", "Meat,\nand bones.", None),
            ("user", "Hello", None),
        ],
        {"other activities": 2, "images and files": 1, "answers that the export lacks": 2},
    ),
    "sillytavern": (
        *("sillytavern", "Seraphina.jsonl", "\n".join(map(json.dumps, TAVERN))),
        [("assistant", "Hi.", None), ("user", "My dog is Bruno.", None)],
        {"other answers": 1, "system": 1},
    ),
    "characterai": (
        *("characterai", "Yoda.json", CHARACTER),
        [("assistant", "Hm.", None), ("user", "I am Luke.", None)],
        {},
    ),
    "telegram": (
        *("telegram", "result.json", TELEGRAM),
        [("user", "See https://a.example", "Anna"), ("user", "Thanks!", None)],
        {"service messages": 1, "images and files": 1},
    ),
    "whatsapp": (
        *("whatsapp", "WhatsApp Chat with Anna.txt", WHATSAPP),
        [
            ("user", "Hello\ntwo lines", "Anna"),
            ("user", "Hi: there", None),
            ("user", "Our cat", None),
            ("user", "Sweet!", "Anna"),
        ],
        {"images and files": 2, "service messages": 1},
    ),
    "whatsapp group": (
        *("whatsapp", "WhatsApp Chat with Lunch.txt", ANDROID),
        [("user", "Lunch?", "Ben"), ("user", "Yes", "Cleo")],
        {"service messages": 2, "images and files": 1},
    ),
    "letta": (
        *("letta", "agent.af"),
        {
            "name": "sam",
            "created_at": AT,
            "core_memory": [
                {"label": "human", "value": "Likes jazz.", "created_at": AT},
                {"label": "persona", "value": "x"},
            ],
            "messages": [
                {"role": "system", "content": [{"type": "text", "text": "rules"}], "created_at": AT},
                {"role": "user", "content": '{"type": "user_message", "message": "Hi"}', "created_at": AT},
                {"role": "assistant", "content": "thinking", "created_at": AT,
                 "tool_calls": [{"function": {"name": "send_message", "arguments": '{"message": "Hello!"}'}}]},
            ],
        },
        [("user", "Hi", None), ("assistant", "Hello!", None)],
        {"system": 1, "memory blocks about the agent": 1},
    ),
}  # fmt: skip


def _written(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


@pytest.mark.parametrize("case", CHATS)
def test_a_chat_is_read_with_its_speakers_and_what_is_left_out_is_counted(case: str, tmp_path: Path) -> None:
    vendor, name, content, said, left_out = CHATS[case]
    lines, counted = read(_written(tmp_path, name, content), vendor, "u-1")
    messages = [line for line in lines if "role" in line]
    assert [(line["role"], line["content"], line.get("speaker")) for line in messages] == said
    assert counted.errors == []
    assert dict(counted.left_out) == left_out
    assert len({(line["session_id"], line["external_id"]) for line in messages}) == len(messages)
    if case not in {"characterai", "gemini"}:
        assert {line["created_at"][:7] for line in messages} == {"2025-11"}


def test_an_agent_file_says_what_was_said_and_what_its_agent_knows_of_a_person(tmp_path: Path) -> None:
    def said(role: str, *texts: str, **more: Any) -> dict[str, Any]:
        content = [{"type": "text", "text": text} for text in texts]
        return {"role": role, "content": content, "created_at": AT, **more}

    human = "# Profile\n\nFirst name: Chad\nLast name: ?\n- Sails\n## Work\n**Role:**"
    note = [{"function": {"name": "memory_insert", "arguments": "{}"}}]
    agents = [
        {"name": "sam", "agent_type": "letta_v1_agent",
         "messages": [said("user", "<system-reminder>x</system-reminder>", "Hi"), said("assistant", "Hello!")]},
        {"name": "old", "agent_type": "memgpt_v2_agent",
         "messages": [said("user", "Hm"), said("assistant", "Chad is new.", tool_calls=note)]},
        {"name": "night", "agent_type": "sleeptime_agent", "messages": [said("user", "Look it through.")]},
    ]  # fmt: skip
    blocks = [{"label": "system/human/facts", "value": human}, {"label": "persona", "value": "x"}]
    file = json.dumps(json.dumps({"agents": agents, "blocks": blocks}))  # as older versions wrote it
    lines, counted = read(_written(tmp_path, "agent.af", file), "letta", "u-1")
    assert [line["content"] for line in lines if "role" in line] == ["Hi", "Hello!", "Hm"]
    known = [line["content"] for line in lines if line.get("kind") == "episode"]
    assert known == ["Profile: First name: Chad", "Profile: Sails"]
    assert counted.left_out["messages of a background agent"] == 1
    assert (counted.left_out["thoughts"], counted.errors) == (1, [])


def test_days_and_months_are_told_apart_or_told_to_be_a_guess(tmp_path: Path) -> None:
    group, _ = read(_written(tmp_path, "WhatsApp Chat with Lunch.txt", ANDROID), "whatsapp")
    assert group[-1]["created_at"] == "2025-11-13T13:06:00+00:00"
    unclear = "01/02/2025, 10:15 - Ben: Lunch?\n"
    lines, counted = read(_written(tmp_path, "WhatsApp Chat with Ben.txt", unclear), "whatsapp")
    assert lines[-1]["created_at"] == "2025-02-01T10:15:00+00:00"
    assert counted.left_out["times whose day and month are a guess"] == 1


MEMORIES: dict[Vendor, tuple[Any, str, str]] = {
    "mem0": (
        {
            "results": [
                {"id": "m", "memory": "Rents a flat", "created_at": AT, "updated_at": "2025-12-01T00:00:00Z",
                 "metadata": {"source": "chat"}, "categories": ["home"], "expiration_date": "2026-05-01"}
            ]
        },
        "Rents a flat [source: chat; categories: home] (until 2026-05-01)",
        AT,
    ),
    "zep": (
        {"edges": [{"uuid": "e", "fact": "Sam is at Acme", "valid_at": AT, "invalid_at": "2026-01-02T00:00:00Z"}]},
        "Sam is at Acme (until 2026-01-02)",
        AT,
    ),
    "langmem": (
        [
            {"namespace": ["u"], "key": "k", "created_at": AT,
             "value": {"kind": "Memory", "content": {"content": "Likes tea"}}}
        ],
        "Likes tea",
        AT,
    ),
    "hindsight": (
        {"items": [{"id": "h", "text": "Alice works at Acme", "context": "career", "mentioned_at": AT}]},
        "Alice works at Acme [context: career]",
        AT,
    ),
}  # fmt: skip


@pytest.mark.parametrize("vendor", MEMORIES)
def test_a_memory_keeps_its_time_and_what_is_noted_about_it(vendor: Vendor, tmp_path: Path) -> None:
    content, text, at = MEMORIES[vendor]
    (line,), counted = read(_written(tmp_path, "memories.json", content), vendor, "u-1")
    assert (line["kind"], line["content"], line["created_at"]) == ("episode", text, at)
    assert (counted.memories, counted.errors) == (1, [])


@pytest.mark.parametrize(
    ("content", "asked", "named"),
    [
        (DEEPSEEK, "chatgpt", "deepseek"),
        (GEMINI, "chatgpt", "gemini"),
        (CHARACTER, "librechat", "characterai"),
        (TAVERN, "claude", "sillytavern"),
        (TELEGRAM, "mem0", "telegram"),
    ],
)
def test_an_export_of_another_product_says_whose_it_looks_like(
    content: Any, asked: Vendor, named: str, tmp_path: Path
) -> None:
    _, counted = read(_written(tmp_path, "export.json", content), asked)
    assert counted.unread > 0
    assert counted.errors[0].endswith(f"; it looks like an export to be read with --from {named}")


@pytest.mark.parametrize(
    ("record", "product"),
    [({"conversations": [], "projects": []}, "Grok"), ({"chat-next-web-store": {}}, "NextChat")],
)
def test_an_export_that_has_no_reader_is_named_with_what_to_do(record: Any, product: str, tmp_path: Path) -> None:
    _, counted = read(_written(tmp_path, "export.json", record), "chatgpt")
    assert f"looks like an export of {product}, which has no reader" in counted.errors[0]
