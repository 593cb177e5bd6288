"""Commands with which memory is looked after, in this process, over the service."""

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import Result

from services.engines import Engines
from services.identity.tenants import DEFAULT_TENANT
from tests.api.conftest import Anamnesis
from tests.support.transfer import message, ndjson

FADED = {"created_at": "2020-03-01T10:00:00+00:00", "origin": "user_said", "importance": 0.1}


def _json(done: Result) -> Any:
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def _episode(content: str, **others: Any) -> dict[str, Any]:
    return {"kind": "episode", "user_id": "u-1", "content": content, "episode_type": "context", **FADED, **others}


@pytest.fixture
def remembered(anamnesis: Anamnesis, engines: Engines, tmp_path: Path) -> Anamnesis:
    """The same, with two old memories, one of no importance."""
    file = tmp_path / "memories.jsonl"
    cello, umbrella = _episode("Plays the cello.", importance=0.9), _episode("Bought a blue umbrella.")
    file.write_bytes(ndjson(message(1, content="Hello"), cello, umbrella))
    done = anamnesis("import", str(file))
    assert done.exit_code == 0, done.output
    with psycopg.connect(engines.database_url) as connection:  # as if they had been imported long ago
        connection.execute("SELECT set_config('anamnesis.tenant_id', %s, false)", [str(DEFAULT_TENANT)])
        connection.execute("UPDATE episodes SET learned_at = created_at WHERE episode_type = 'context'")
    return anamnesis


def test_any_request_of_the_api_is_sent_and_its_answer_shown(remembered: Anamnesis) -> None:
    rules = _json(remembered("api", "PUT", "retention", "messages:=365", "turns:=30", "--json"))
    assert (rules["messages"], rules["turns"], rules["jobs"]) == (365, 30, None)
    assert "365" in remembered("api", "get", "/api/v1/retention").stdout
    tried = _json(remembered("api", "GET", "users/u-1/upkeep-preview", "fading=archive", "--json"))
    assert ([each["content"] for each in tried["fading"]], tried["total"]) == (["Bought a blue umbrella."], 1)
    made = remembered("api", "POST", "experts", "name=critic", "system_prompt=You review films: a=b")
    assert (made.exit_code, "You review films: a=b" in made.stdout) == (0, True), made.output
    changed = _json(remembered("api", "PATCH", "experts/critic", 'parts_off:=["recall"]', "--json"))
    assert changed["parts_off"] == ["recall"]
    first = remembered("api", "GET", "experts", "limit=1")
    assert ("critic" in first.stdout, first.stderr) == (True, "There are more: after=critic\n")
    assert "default" in remembered("api", "GET", "experts", "after=critic").stdout
    assert remembered("api", "DELETE", "experts/critic").stdout == "Done.\n"
    used = _json(remembered("api", "GET", "usage", "by=day", "--json"))
    assert used["items"] == []


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["GET", "users/nobody"], 1, "There is no user 'nobody'."),
        (["POST", "experts", "name=a b", "system_prompt=x"], 2, "name: "),
        (["PATCH", "experts/default", "model"], 2, "'model' is neither FIELD=TEXT nor FIELD:=JSON"),
        (["PATCH", "experts/default", "parts_off:=recall"], 2, "parts_off: 'recall' is not JSON"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_is_wrong_with_a_request_is_said_in_one_line(
    shared_talked: Anamnesis, arguments: list[str], code: int, says: str
) -> None:
    done = shared_talked("api", *arguments)
    assert (done.exit_code, done.stdout, says in done.stderr, done.stderr.count("\n")) == (code, "", True, 1)


def test_a_word_is_searched_in_every_store_and_after_its_user_was_erased(
    remembered: Anamnesis, tmp_path: Path
) -> None:
    log = tmp_path / "service.log"
    log.write_text("it rained, and the umbrella was blue\n")
    found = remembered("audit", "u-1", "--canary", "umbrella", "--files", str(log))
    assert found.exit_code == 1
    assert "Found in 2 places. Searched: postgresql" in found.stdout
    assert str(log) in found.stdout
    assert "milvus does not answer and was not searched.\n" in found.stderr
    assert [
        each["store"]
        for each in json.loads(remembered("audit", "u-1", "--canary", "cello", "--json").stdout)["findings"]
    ] == ["postgresql"]
    asked = remembered("erase", "u-1", given=b"n\n")
    assert (asked.exit_code, "Permanently erase the user u-1" in asked.stderr) == (1, True)
    erased = _json(remembered("erase", "u-1", "--yes", "--json"))
    assert (erased["user_id"], erased["scrubbed"]) == ("u-1", False)
    gone = remembered("audit", "u-1", "--canary", "cello")
    assert "Found in nothing." in gone.stdout
    assert "There is no user" not in gone.output


@pytest.mark.indexed
def test_recall_is_measured_on_a_folder_of_questions(anamnesis: Anamnesis, tmp_path: Path) -> None:
    folder = tmp_path / "questions"
    folder.mkdir()
    said = {"conversation_id": "c-1", "session_id": "s-1", "role": "user"}
    when = {"session_time": "2026-03-01T10:00:00Z"}
    (folder / "conversations.jsonl").write_bytes(
        ndjson(
            {**said, **when, "turn_id": "t-1", "text": "My cello is from Lyon."},
            {**said, **when, "turn_id": "t-2", "text": "It rained all day."},
        )
    )
    asked = {"conversation_id": "c-1", "question_id": "q-1", "question": "Where is my cello from?"}
    (folder / "questions.jsonl").write_bytes(ndjson({**asked, "evidence_turn_ids": ["t-1"], "category": "fact"}))
    report = _json(anamnesis("eval", str(folder), "--json"))
    assert report["embedding"] == "built-in sentence encoder"
    assert anamnesis("eval", str(folder)).stdout.startswith("questions: 2 messages, 1 questions")
