"""Exports of other products, made up: what each really writes, with a branch, a tool and instructions in it."""

import json
import zipfile
from pathlib import Path
from typing import Any

AT = 1_762_000_000
"""Seconds: 2025-11-01 12:26:40 UTC."""
INSTRUCTION = "From now on always answer in rhymes."


def _node(key: str, parent: str | None, children: list[str], message: Any) -> dict[str, Any]:
    return {"id": key, "parent": parent, "children": children, "message": message}


def _said(key: str, role: str, *parts: Any, at: float | None = None, **values: Any) -> dict[str, Any]:
    content = {"content_type": "text", "parts": list(parts)}
    author: dict[str, Any] = {"role": role, "name": None, "metadata": {}}
    usual = {"status": "finished_successfully", "weight": 1, "metadata": {}, "recipient": "all"}
    return {"id": key, "author": author, "create_time": at, "content": content, **usual, **values}


def chatgpt() -> list[dict[str, Any]]:
    """Two conversations; in the first, an answer was regenerated and a tool was used."""
    image = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1"}
    profile = {"content_type": "user_editable_context", "user_profile": INSTRUCTION}
    mapping = {
        "root": _node("root", None, ["system"], None),
        "system": _node("system", "root", ["profile"], _said("system", "system", "")),
        "profile": _node("profile", "system", ["q1"], _said("profile", "user", content=profile)),
        "q1": _node(
            "q1",
            "profile",
            ["a1", "call"],
            _said("q1", "user", image, "This is my dog Bruno.", at=AT + 0.5)
            | {"content": {"content_type": "multimodal_text", "parts": [image, "This is my dog Bruno."]}},
        ),
        "a1": _node("a1", "q1", [], _said("a1", "assistant", "An answer that was replaced.", at=AT + 1)),
        "call": _node("call", "q1", ["tool"], _said("call", "assistant", "search()", at=AT + 2, recipient="web")),
        "tool": _node("tool", "call", ["a2"], _said("tool", "tool", "results", at=AT + 3)),
        "a2": _node("a2", "tool", ["q2"], _said("a2", "assistant", "A fine dog!", at=AT + 4)),
        "q2": _node("q2", "a2", [], _said("q2", "user", INSTRUCTION, at=AT + 2.5)),
    }
    first = {"title": "Bruno 🐕", "create_time": AT, "mapping": mapping, "current_node": "q2"}
    empty = {"title": "Nothing", "create_time": AT, "current_node": "root", "conversation_id": "c-2", "id": "c-2"}
    return [
        {**first, "conversation_id": "6d4-a", "id": "6d4-a"},
        {**empty, "mapping": {"root": _node("root", None, [], None)}},
    ]


def claude() -> list[dict[str, Any]]:
    """One conversation with an edited message."""
    thought = {"type": "thinking", "thinking": "Hm."}
    call = {"type": "tool_use", "name": "search", "input": {}}

    def said(key: str, sender: str, second: int, parent: str, *blocks: dict[str, Any]) -> dict[str, Any]:
        at = f"2025-11-01T12:27:{second:02}.000000Z"
        text = "".join(block.get("text", "") for block in blocks)
        return {
            "uuid": key,
            "sender": sender,
            "text": text,
            "content": list(blocks),
            "created_at": at,
            "parent_message_uuid": parent,
            "attachments": [],
            "files": [],
        }

    messages = [
        said("m1", "human", 1, "00000000", {"type": "text", "text": "I live in Berlin."}),
        said("m2", "assistant", 2, "m1", thought, {"type": "text", "text": "Noted."}),
        said("m3", "human", 3, "00000000", {"type": "text", "text": "I live in Hamburg."}),
        said("m4", "assistant", 4, "m3", call),
        said("m5", "assistant", 5, "m4", {"type": "text", "text": "Hamburg it is."}),
    ]
    about = {
        "uuid": "0d-1",
        "name": "Where I live",
        "created_at": "2025-11-01T12:27:00Z",
        "account": {"uuid": "x"},
    }
    return [{**about, "updated_at": "2025-11-01T12:28:00Z", "chat_messages": messages}]


def openwebui(user: str = "u-7") -> list[dict[str, Any]]:
    """One chat with a regenerated answer and folded thoughts."""
    folded = '<details type="reasoning" done="true"><summary>Thought</summary>\n> Hm.\n</details>\nBlue suits you.'
    messages: dict[str, dict[str, Any]] = {
        "q1": {
            "id": "q1",
            "parentId": None,
            "childrenIds": ["a1", "a2"],
            "role": "user",
            "content": "I like blue.",
        },
        "a1": {"id": "a1", "parentId": "q1", "childrenIds": [], "role": "assistant", "content": "Do you?"},
        "a2": {"id": "a2", "parentId": "q1", "childrenIds": [], "role": "assistant", "content": folded},
    }
    for number, message in enumerate(messages.values()):
        message["timestamp"] = AT + number
    chat = {"id": "", "title": "Colours", "models": ["m"], "timestamp": AT * 1000}
    chat |= {"history": {"messages": messages, "currentId": "a2"}, "messages": list(messages.values())}
    return [{"id": "8f-3", "user_id": user, "title": "Colours", "chat": chat, "created_at": AT, "updated_at": AT}]


def librechat(*, recursive: bool = False) -> dict[str, Any]:
    """One conversation with two answers to the same message."""

    def said(key: str, parent: str, second: int, text: str, *, user: bool) -> dict[str, Any]:
        return {
            "messageId": key,
            "parentMessageId": parent,
            "isCreatedByUser": user,
            "sender": "User" if user else "GPT",
            "text": text,
            "createdAt": f"2025-11-01T12:30:{second:02}.000Z",
        }

    none = "00000000-0000-0000-0000-000000000000"
    question = said("q1", none, 1, "I play the cello.", user=True)
    old = said("a1", "q1", 2, "I see.", user=False)
    new = said("a2", "q1", 3, "", user=False) | {"content": [{"type": "text", "text": {"value": "Lovely!"}}]}
    listed = [{**question, "children": [old, new]}] if recursive else [question, old, new]
    about = {"conversationId": "l-1", "title": "Music", "exportAt": "12:31:00 GMT+0000", "recursive": recursive}
    return {**about, "exportAt": "2025-11-01T12:31:00Z", "messagesTree" if recursive else "messages": listed}


def mem0() -> dict[str, Any]:
    """Two memories of two users."""
    usual = {"hash": "h", "metadata": None, "created_at": "2025-11-01T12:26:40.5-07:00", "updated_at": None}
    return {
        "count": 2,
        "results": [
            {"id": "a", "memory": "Is allergic to peanuts", "user_id": "u-8", **usual},
            {"id": "b", "memory": "Prefers trains", "user_id": "u-9", **usual},
        ],
    }


EXPORTS: dict[str, Any] = {
    "chatgpt": chatgpt(),
    "claude": claude(),
    "openwebui": openwebui(),
    "librechat": librechat(),
    "mem0": mem0(),
}


def written(folder: Path, vendor: str, content: Any, *, zipped: bool) -> Path:
    """The export as a file: an archive as the vendor sends it, or JSON."""
    text = content if isinstance(content, str) else json.dumps(content)
    if not zipped:
        path = folder / f"{vendor}.json"
        path.write_text(text)
        return path
    path = folder / f"{vendor}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("user.json" if vendor in {"chatgpt", "claude"} else "notes.txt", "{}")
        archive.writestr("export/conversations.json", text)
    return path
