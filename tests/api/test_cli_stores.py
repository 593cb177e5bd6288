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


def test_core_memory_is_shown_and_forgotten(talked: Anamnesis) -> None:
    known = {"allergies": ["peanuts"], "home": "Lyon"}
    assert talked("api", "PUT", "users/u-1/core-memory/human", f"content:={json.dumps(known)}").exit_code == 0
    shown = _json(talked("api", "GET", "users/u-1/core-memory", "--json"))
    assert shown["items"][0]["content"] == known
    forgotten = talked("api", "POST", "users/u-1/memory/forget", "what=my home in Lyon", "--json")
    assert _json(forgotten)["operation_id"] is not None


def test_failed_jobs_are_listed_and_retried(talked: Anamnesis) -> None:
    assert _json(talked("api", "GET", "jobs", "status=failed", "--json"))["items"] == []
    assert talked("jobs", "retry", "--all").stdout == "0 jobs wait for a worker.\n"
    missing = talked("jobs", "retry", "999999")
    assert (missing.exit_code, missing.stderr) == (1, "anamnesis: There is no job 999999.\n")


def test_what_was_said_is_searched(talked: Anamnesis) -> None:
    search = ("api", "POST", "users/u-1/episodes/search", "query=Where do I live?")
    done = talked(*search, "--json")
    (found,) = [each for each in _json(done)["items"] if "Lyon" in each["content"]]
    assert done.stderr == "", "a working set is made without Milvus"
    assert "Lyon" in talked(*search).stdout
    assert found["episode_type"] == "turn"


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["export", "nobody"], 1, "There is no user 'nobody'."),
        (["api", "POST", "users/u-1/memory/forget", "what= "], 2, "what: "),
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
    for wrong in (["api", "GET", "jobs"], ["api", "GET", "jobs", "--key", "ank_wrong"]):
        refused = anamnesis(*wrong)
        said = "anamnesis: The service refuses the key; set ANAMNESIS_KEY, or use --key.\n"
        assert (refused.exit_code, refused.stderr) == (1, said)
    assert anamnesis("api", "GET", "jobs", "--key", made["admin"]).exit_code == 0
    read = anamnesis("api", "GET", "conversations", "--json", ANAMNESIS_KEY=made["memory:read"])
    assert _json(read)["items"] == []
    weak = anamnesis("api", "GET", "retention", ANAMNESIS_KEY=made["memory:read"])
    assert (weak.exit_code, "admin" in weak.stderr, weak.stderr.count("\n")) == (1, True, 1)


@pytest.mark.parametrize("arguments", [["export", "u-1"], ["import", "-"]], ids=" ".join)
def test_without_a_service_one_line_names_its_address_and_how_to_start_it(arguments: list[str]) -> None:
    port = free_port()
    done = CliRunner().invoke(app, arguments, env={"ANAMNESIS_PORT": str(port)})
    address = f"http://127.0.0.1:{port}"
    said = f"anamnesis: No service is running at {address}; start one with: anamnesis serve\n"
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", said)


def test_an_address_of_something_else_is_said_to_be_one(model_server: ModelServer) -> None:
    done = CliRunner().invoke(app, ["api", "GET", "jobs", "--url", model_server.base_url])
    assert (done.exit_code, "is that the address of Anamnesis?" in done.stderr) == (1, True), done.stderr
    wrong = CliRunner().invoke(app, ["api", "GET", "jobs", "--url", "localhost:8000"])
    assert (wrong.exit_code, wrong.stderr.count("\n")) == (2, 1)
