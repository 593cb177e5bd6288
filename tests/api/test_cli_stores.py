"""Commands that show and change what is stored, in this process, over the service."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from api.cli.main import app
from tests.api.conftest import Anamnesis
from tests.support.model_server import ModelServer
from tests.support.ports import free_port


def _json(done: Result) -> Any:
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_the_version_is_one_line() -> None:
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.stdout.split()[0]) == (0, "anamnesis")


def test_config_names_each_value_with_its_source_and_masks_secrets(anamnesis: Anamnesis, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("ANAMNESIS_PORT=8123\nANAMNESIS_CONTEXT_TIME=off\nANAMNESIS_POTR=1\n")
    secrets = {"OPENAI_API_KEY": "sk-secret", "ANAMNESIS_PORT": "8124", "ANAMNESIS_LLM_MODLE": "m"}
    done = anamnesis("config", "--json", **secrets)
    found = _json(done)
    settings = {each["variable"]: (each["value"], each["source"]) for each in found["settings"]}
    assert settings["ANAMNESIS_PORT"] == ("8124", "environment")
    assert settings["ANAMNESIS_CONTEXT_TIME"] == ("off", ".env")
    assert settings["ANAMNESIS_HOST"] == ("127.0.0.1", "default")
    assert settings["ANAMNESIS_LLM_API_KEY"] == ("**********", "environment")
    assert settings["ANAMNESIS_LLM_MODEL"] == (None, "default")
    assert "sk-secret" not in done.output
    assert found["unknown"] == [
        "ANAMNESIS_LLM_MODLE is not a setting; did you mean ANAMNESIS_LLM_MODEL?",
        "ANAMNESIS_POTR is not a setting; did you mean ANAMNESIS_PORT?",
    ]
    shown = anamnesis("config", **secrets)
    assert "sk-secret" not in shown.output
    assert "ANAMNESIS_LLM_API_KEY" in shown.stdout


def test_conversations_are_listed_shown_and_deleted(talked: Anamnesis) -> None:
    (listed,) = _json(talked("conversations", "list", "--user", "u-1", "--json"))
    assert (listed["user_id"], listed["expert"]) == ("u-1", "default")
    assert listed["session_id"] in talked("conversations", "list").stdout
    assert _json(talked("conversations", "list", "--user", "u-2", "--json")) == []
    shown = _json(talked("conversations", "show", listed["id"], "--json"))
    assert [each["content"] for each in shown["messages"]] == ["I live in Lyon.", "我姓陈"]
    assert "I live in Lyon." in talked("conversations", "show", listed["id"]).stdout
    refused = talked("conversations", "delete", listed["id"], given=b"n\n")
    assert (refused.exit_code, "Permanently delete" in refused.stderr) == (1, True)
    done = talked("conversations", "delete", listed["id"], "--yes")
    assert (done.exit_code, "2 messages" in done.stdout) == (0, True), done.output
    assert "milvus did not answer; a background job removes what it holds." in done.stderr
    assert _json(talked("conversations", "list", "--json")) == []
    gone = talked("conversations", "show", listed["id"])
    assert (gone.exit_code, gone.stderr) == (1, f"anamnesis: There is no conversation {listed['id']}.\n")


def test_one_item_of_core_memory_is_changed_and_the_others_stay(talked: Anamnesis) -> None:
    for item in ("peanuts", "cats"):
        assert talked("memory", "edit", "u-1", "allergies", "--add", item).exit_code == 0
    changed = talked("memory", "edit", "u-1", "allergies", "--remove", "cats")
    assert (changed.exit_code, changed.stdout) == (0, "allergies: peanuts\n")
    assert talked("memory", "edit", "u-1", "home", "Berlin").stdout == "home: Berlin\n"
    assert talked("memory", "edit", "u-1", "home", "--replace", "Berlin", "--by", "Lyon").stdout == "home: Lyon\n"
    shown = _json(talked("memory", "show", "u-1", "--json"))
    assert shown["core_memory"][0]["content"] == {"allergies": ["peanuts"], "home": "Lyon"}
    assert "allergies: peanuts" in talked("memory", "show", "u-1").stdout
    assert _json(talked("memory", "forget", "u-1", "my home in Lyon", "--json"))["operation_id"] is not None
    unmatched = talked("memory", "edit", "u-1", "allergies", "--remove", "dogs")
    assert (unmatched.exit_code, unmatched.stdout) == (1, "")
    assert (
        unmatched.stderr
        == "anamnesis: no single item of human.allergies matches; see: anamnesis memory show u-1\n"
    )
    deleted = talked("memory", "delete", "u-1", "human", "--yes")
    assert (deleted.exit_code, _json(talked("memory", "show", "u-1", "--json"))["core_memory"]) == (0, [])


def test_failed_jobs_are_listed_and_retried(talked: Anamnesis) -> None:
    assert _json(talked("jobs", "list", "--status", "failed", "--json")) == []
    assert talked("jobs", "retry", "--all").stdout == "0 jobs wait for a worker.\n"
    missing = talked("jobs", "retry", "999999")
    assert (missing.exit_code, missing.stderr) == (1, "anamnesis: There is no job 999999.\n")


def test_what_was_said_is_searched_and_a_memory_is_deleted(talked: Anamnesis) -> None:
    done = talked("memory", "search", "u-1", "Where do I live?", "--json")
    (found,) = [each for each in _json(done)["items"] if "Lyon" in each["content"]]
    assert done.stderr == "", "a working set is made without Milvus"
    assert "Lyon" in talked("memory", "search", "u-1", "Where do I live?").stdout
    assert talked("memory", "delete", "u-1", found["id"], "--yes").exit_code == 0
    assert "Lyon" not in talked("memory", "search", "u-1", "Where do I live?").stdout
    again = talked("memory", "delete", "u-1", found["id"], "--yes")
    assert (again.exit_code, again.stderr.count("\n")) == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["memory", "show", "nobody"], 1, "There is no user 'nobody'."),
        (["memory", "edit", "u-1", "home"], 2, "give one of: a value, --add, --remove, --replace with --by"),
        (["memory", "edit", "u-1", "01a1fd62-e395-7407-b7b8-45bfb81ca93b", "x"], 1, "There is no episode"),
        (["memory", "forget", "u-1", " "], 2, "what to forget is empty"),
        (["memory", "delete", "u-1", "nothing", "--yes"], 1, "There is no section 'nothing'."),
        (["eval", "nowhere"], 2, "cannot be read: No such file or directory"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_is_wrong_is_said_in_one_line(
    shared_talked: Anamnesis, arguments: list[str], code: int, says: str
) -> None:
    done = shared_talked(*arguments)
    assert (done.exit_code, done.stdout) == (code, ""), done.output
    assert done.stderr.startswith("anamnesis: ")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.settings(auth="api_key")
def test_a_service_that_asks_for_a_key_is_told_one_by_option_or_variable(anamnesis: Anamnesis) -> None:
    made = {
        scopes: _json(anamnesis("keys", "create", "--name", scopes, "--scope", scopes, "--json"))["key"]
        for scopes in ("admin", "memory:read")
    }
    for wrong in (["kb", "list"], ["kb", "list", "--key", "ank_wrong"]):
        refused = anamnesis(*wrong)
        said = "anamnesis: The service refuses the key; set ANAMNESIS_KEY, or use --key.\n"
        assert (refused.exit_code, refused.stderr) == (1, said)
    assert _json(anamnesis("kb", "list", "--json", "--key", made["admin"])) == []
    assert _json(anamnesis("conversations", "list", "--json", ANAMNESIS_KEY=made["memory:read"])) == []
    weak = anamnesis("api", "GET", "retention", ANAMNESIS_KEY=made["memory:read"])
    assert (weak.exit_code, "admin" in weak.stderr, weak.stderr.count("\n")) == (1, True, 1)


@pytest.mark.parametrize("arguments", [["memory", "show", "u-1"], ["import", "-"]], ids=" ".join)
def test_without_a_service_one_line_names_its_address_and_how_to_start_it(arguments: list[str]) -> None:
    port = free_port()
    done = CliRunner().invoke(app, arguments, env={"ANAMNESIS_PORT": str(port)})
    address = f"http://127.0.0.1:{port}"
    said = f"anamnesis: No service is running at {address}; start one with: anamnesis serve\n"
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", said)


def test_an_address_of_something_else_is_said_to_be_one(model_server: ModelServer) -> None:
    done = CliRunner().invoke(app, ["kb", "list", "--url", model_server.base_url])
    assert (done.exit_code, "is that the address of Anamnesis?" in done.stderr) == (1, True), done.stderr
    wrong = CliRunner().invoke(app, ["kb", "list", "--url", "localhost:8000"])
    assert (wrong.exit_code, wrong.stderr.count("\n")) == (2, 1)
