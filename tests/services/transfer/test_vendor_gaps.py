"""Exports in which something is missing or out of date, as products really write them."""

import copy
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from services.transfer.vendors.conversion import Vendor
from tests.services.transfer.exports import EXPORTS, chatgpt, claude, openwebui, written
from tests.services.transfer.test_vendors import SAID, read

WRITTEN = datetime(2025, 12, 24, 18, tzinfo=UTC)
_TIMES = {"create_time", "update_time", "created_at", "updated_at", "timestamp", "createdAt", "exportAt"}


def _timeless(value: Any) -> Any:
    if isinstance(value, list):
        return [_timeless(each) for each in value]
    if isinstance(value, dict):
        return {name: None if name in _TIMES else _timeless(each) for name, each in value.items()}
    return value


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("vendor", list(SAID))
def test_conversation_without_any_time_is_as_old_as_its_file(vendor: Vendor, zipped: bool, tmp_path: Path) -> None:
    path = written(tmp_path, vendor, _timeless(EXPORTS[vendor]), zipped=zipped)
    if not zipped:
        os.utime(path, (WRITTEN.timestamp(), WRITTEN.timestamp()))

    lines, counted = read(path, vendor)

    assert (counted.conversations, counted.errors) == (1, [])
    told = {line["created_at"][:10] for line in lines}
    assert told == {WRITTEN.date().isoformat()} if not zipped else len(told) == 1


@pytest.mark.parametrize("leaf", [None, "gone"])
def test_leaf_that_is_not_there_is_replaced_by_the_newest(leaf: str | None, tmp_path: Path) -> None:
    chats, conversations = openwebui(), chatgpt()
    chats[0]["chat"]["history"]["currentId"] = leaf
    conversations[0]["current_node"] = leaf
    newest = copy.deepcopy(conversations[0]["mapping"]["q2"])
    conversations[0]["mapping"] = {"q2": newest} | conversations[0]["mapping"]

    chat, _ = read(written(tmp_path, "openwebui", chats, zipped=False), "openwebui")
    conversation, _ = read(written(tmp_path, "chatgpt", conversations[:1], zipped=False), "chatgpt")

    assert [(line["role"], line["content"]) for line in chat[1:]] == SAID["openwebui"]
    assert ("assistant", "A fine dog!") in [(line["role"], line["content"]) for line in conversation[1:]]


def test_conversation_that_is_not_to_be_remembered_is_left_out_and_counted(tmp_path: Path) -> None:
    secret, other = chatgpt()
    lines, counted = read(
        written(tmp_path, "chatgpt", [{**secret, "is_do_not_remember": True}, other], zipped=False), "chatgpt"
    )
    assert lines == []
    assert counted.left_out["conversations that are not to be remembered"] == 1


def test_text_of_attachments_comes_with_their_message_and_is_nobodys_words(tmp_path: Path) -> None:
    [conversation] = claude()
    report = {"file_name": "report.txt", "extracted_content": "Sales ``` rose."}
    conversation["chat_messages"][2] |= {"attachments": [report, {"file_name": "photo.png"}]}
    lines, counted = read(written(tmp_path, "claude", [conversation], zipped=False), "claude")
    assert lines[1]["content"] == "I live in Hamburg.\n\nreport.txt\n```\nSales ~~~ rose.\n```"
    assert counted.left_out["images and files"] == 1

    [chat] = openwebui()
    file = {"type": "file", "name": "menu.md", "file": {"data": {"content": "Soup"}}}
    chat["chat"]["history"]["messages"]["q1"]["files"] = [file]
    lines, counted = read(written(tmp_path, "openwebui", [chat], zipped=False), "openwebui")
    assert lines[1]["content"] == "I like blue.\n\nmenu.md\n```\nSoup\n```"
    assert "images and files" not in counted.left_out
