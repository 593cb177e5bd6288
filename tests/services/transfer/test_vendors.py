"""What is read of other products' exports."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from services.errors import InvalidInput
from services.transfer.vendors.conversion import Conversion, Vendor, VendorExport
from tests.services.transfer.exports import EXPORTS, INSTRUCTION, chatgpt, claude, librechat, openwebui, written

SAID: dict[Vendor, list[tuple[str, str]]] = {
    "chatgpt": [("user", "This is my dog Bruno."), ("assistant", "A fine dog!"), ("user", INSTRUCTION)],
    "claude": [("user", "I live in Hamburg."), ("assistant", "Hamburg it is.")],
    "openwebui": [("user", "I like blue."), ("assistant", "Blue suits you.")],
    "librechat": [("user", "I play the cello."), ("assistant", "Lovely!")],
}


def read(path: Path, vendor: Vendor, user: str | None = None) -> tuple[list[dict[str, Any]], Conversion]:
    """The lines that an export becomes, and what was counted."""
    into = Conversion()
    chunks = b"".join(VendorExport(vendor, path, user=user).lines(into))
    return [json.loads(line) for line in chunks.splitlines()], into


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("vendor", list(SAID))
def test_conversations_are_read_along_their_active_path_without_tools_and_instructions(
    vendor: Vendor, zipped: bool, tmp_path: Path
) -> None:
    lines, counted = read(written(tmp_path, vendor, EXPORTS[vendor], zipped=zipped), vendor, "u-1")

    session, *messages = lines
    assert session["kind"] == "session"
    assert [(line["role"], line["content"]) for line in messages] == SAID[vendor]
    assert {line["user_id"] for line in lines} == {"u-1"}
    assert {line["session_id"] for line in lines} == {session["session_id"]}
    assert session["session_id"].startswith(f"{vendor}:")
    assert len({line["external_id"] for line in messages}) == len(messages)
    assert [line["created_at"] for line in lines] == sorted(line["created_at"] for line in lines)
    assert all(line["created_at"].startswith("2025-11-01T12:") for line in lines)
    assert (counted.conversations, counted.messages) == (1, len(messages))
    assert counted.left_out["other branches"] >= 1
    assert counted.errors == []


def test_marks_in_what_chatgpt_said_are_no_words(tmp_path: Path) -> None:
    conversation, _ = chatgpt()
    cited = '\ue200entity\ue202["city","Berlin"]\ue201 is big\ue200cite\ue202turn0search1\ue201.'
    conversation["mapping"]["a2"]["message"]["content"]["parts"] = [cited]
    lines, _ = read(written(tmp_path, "chatgpt", [conversation], zipped=False), "chatgpt")
    assert lines[2]["content"] == "Berlin is big."


def test_a_tree_reads_as_a_list_does(tmp_path: Path) -> None:
    listed, _ = read(written(tmp_path, "librechat", librechat(), zipped=False), "librechat")
    tree, _ = read(written(tmp_path, "librechat", librechat(recursive=True), zipped=False), "librechat")
    assert tree == listed


def test_memories_belong_to_the_users_that_the_export_names_unless_one_is_given(tmp_path: Path) -> None:
    path = written(tmp_path, "mem0", EXPORTS["mem0"], zipped=False)
    lines, counted = read(path, "mem0")
    assert [(line["user_id"], line["content"]) for line in lines] == [
        ("u-8", "Is allergic to peanuts"),
        ("u-9", "Prefers trains"),
    ]
    assert {(line["kind"], line["origin"]) for line in lines} == {("episode", "derived")}
    assert counted.memories == 2
    assert {line["user_id"] for line in read(path, "mem0", "u-1")[0]} == {"u-1"}
    chats = written(tmp_path, "openwebui", openwebui("u-2") + openwebui("u-3"), zipped=False)
    assert {line["user_id"] for line in read(chats, "openwebui")[0]} == {"u-2", "u-3"}
    assert {
        line["user_id"] for line in read(written(tmp_path, "claude", claude(), zipped=False), "claude")[0]
    } == {"me"}


def test_a_record_that_cannot_be_read_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    good, other = chatgpt()
    broken: list[Any] = [
        {"conversation_id": "x"},
        7,
        {**good, "create_time": "soon"},
        {**good, "conversation_id": None, "id": ""},
        {**good, "mapping": {**good["mapping"], "q1": []}},
        good,
        other,
    ]
    lines, counted = read(written(tmp_path, "chatgpt", broken, zipped=True), "chatgpt")

    assert len(lines) == 4
    assert counted.unread == 5
    assert [error.split(": ", 1)[0] for error in counted.errors] == [
        f"chatgpt.zip/export/conversations.json, record {number}" for number in range(1, 6)
    ]
    assert [error.split(": ", 1)[1] for error in counted.errors] == [
        "mapping is no object",
        "it is no object",
        "create_time is no time: 'soon'",
        "has no conversation_id or id",
        "mapping.q1 is no object",
    ]


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ('[{"uuid": "x", ', "claude.json, record 1: is not JSON, or breaks off"),
        ("hello", "claude.json, record 1: is not JSON"),
        ("", "claude.json, record 1"),
        ('[{"a": "\\ud800"}, nonsense]', "claude.json, record"),
    ],
)
def test_a_file_that_breaks_off_names_itself_and_the_record(content: str, named: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=named):
        read(written(tmp_path, "claude", content, zipped=False), "claude")


def test_a_file_of_another_kind_is_named(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.zip"
    damaged.write_bytes(b"PK\x03\x04nonsense")
    with pytest.raises(InvalidInput, match="damaged"):
        read(damaged, "chatgpt")
    with pytest.raises(InvalidInput, match="cannot be read"):
        read(tmp_path / "nothing.zip", "chatgpt")
    with pytest.raises(InvalidInput, match="is it an export of this product"):
        VendorExport("chatgpt", _photos(tmp_path)).archive.size()


def _photos(folder: Path) -> Path:
    path = folder / "photos.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("photo.jpg", b"")
    return path
