import json
import os
import pty
import select
import subprocess
import time
from pathlib import Path

import pytest

from services.engines import Engines
from services.platform.embedded_postgres import SERVICE_ROLE, EmbeddedPostgres
from tests.support.command import PATIENCE_S, environment_of, run_command, start_command
from tests.support.cutting_proxy import CuttingProxy
from tests.support.fork_server import ForkedProcess
from tests.support.model_server import ModelServer, Reply
from tests.support.ports import free_port
from tests.support.service_process import ServiceProcess

pytestmark = [pytest.mark.slow, pytest.mark.traced]


def _anamnesis(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    return run_command(*arguments, variables=variables)


def test_a_misspelt_variable_is_a_warning(engines: Engines) -> None:
    done = _anamnesis(
        "migrate",
        ANAMNESIS_LLM_MODLE="m",
        ANAMNESIS_MILVUS_URI=engines.milvus_uri,
        ANAMNESIS_DATABASE_URL=engines.database_url,
        ANAMNESIS_MIGRATION_DATABASE_URL=str(engines.owner_url),
    )
    assert done.returncode == 0
    assert "did you mean ANAMNESIS_LLM_MODEL?" in done.stderr
    assert "The schema is at" in done.stdout


def test_doctor_names_what_is_wrong_and_what_to_do(engines: Engines) -> None:
    environment = {
        "ANAMNESIS_PORT": str(free_port()),
        "ANAMNESIS_DATABASE_URL": engines.database_url,
        "ANAMNESIS_MILVUS_URI": engines.milvus_uri,
        "ANAMNESIS_REDIS_URL": f"redis://127.0.0.1:{free_port()}/0",
    }
    done = _anamnesis("doctor", "--json", **environment)
    assert done.returncode == 0
    findings = json.loads(done.stdout)
    assert (findings["source"], findings["models"]) == ("shell", None)
    states = {found["name"]: found["state"] for found in findings["dependencies"]}
    assert (states["postgres"], states["milvus"], states["redis"]) == ("ok", "degraded", "degraded")
    shown = _anamnesis("doctor", **environment, COLUMNS="200").stdout
    assert shown.startswith("No service answers at http://127.0.0.1:")
    assert "Turns answer without it; see ANAMNESIS_REDIS_URL" in shown


def test_without_its_database_doctor_and_serve_end_with_one_line(engines: Engines) -> None:
    nowhere = {
        "ANAMNESIS_DATABASE_URL": "postgresql://anamnesis@127.0.0.1:1/nothing",
        "ANAMNESIS_MILVUS_URI": engines.milvus_uri,
    }
    # Both at once, as each tries for some seconds; on ports of their own, or the one finds the other
    serve = start_command("serve", variables={**nowhere, "ANAMNESIS_PORT": str(free_port())})
    doctor = _anamnesis("doctor", **nowhere, ANAMNESIS_PORT=str(free_port()))
    _, written = serve.communicate(PATIENCE_S)
    for code, said in ((doctor.returncode, doctor.stderr), (serve.wait(), written)):
        assert code == 1
        assert said == (
            "anamnesis: ANAMNESIS_DATABASE_URL: nothing listens at 127.0.0.1:1; is PostgreSQL running there?\n"
        )


def test_doctor_describes_the_running_service_and_asks_its_models(
    service: ServiceProcess, data_dir: Path, model_server: ModelServer
) -> None:
    address = {"ANAMNESIS_PORT": service.url.rsplit(":", 1)[1], "COLUMNS": "200"}
    unasked = _anamnesis("doctor", **address)
    assert unasked.stdout.startswith(f"The service that runs at {service.url}:")
    assert "not asked" in unasked.stdout
    assert model_server.requests == []

    by_folder = _anamnesis("doctor", ANAMNESIS_DATA_DIR=str(data_dir))
    assert by_folder.stdout.startswith(f"The service that runs at {service.url}:")

    model_server.default = lambda received: (
        Reply(status=400, error_message="scripted does not support tools")
        if received.body.get("tools")
        else Reply(["Certain", "ly."], gap_s=0.3)
    )
    asked = _anamnesis("doctor", "--ask", **address)
    assert asked.returncode == 0, asked.stderr
    row = next(line for line in asked.stdout.splitlines() if line.startswith("scripted "))
    assert row.split()[1:8] == ["main,", "small", "yes", "yes", "refused", "ignored", "native"]
    graded = _anamnesis("model", "check", **address)
    assert graded.stdout.startswith("scripted only answers: what users say is not filed by it.\n")
    assert "a word at the beginning of 4,000 tokens  wrong" in graded.stdout
    assert "cuts the context window" in graded.stdout
    assert "ANAMNESIS_MEMORY_FILING_GRADE=none" in graded.stdout
    kept = _anamnesis("model", "check", "--keep", **address)
    assert (kept.returncode, "The environment" in kept.stderr) == (1, True)
    assert "ANAMNESIS_LLM_TOOLS" in asked.stdout

    model_server.default = Reply(status=401, error_message="Incorrect API key provided: sk-verysecret")
    refused = _anamnesis("doctor", "--ask", "--json", **address)
    assert refused.returncode == 1
    [model, _] = json.loads(refused.stdout)["models"]
    assert not model["answers"]
    assert "ANAMNESIS_LLM_API_KEY" in model["advice"][0]
    assert "verysecret" not in refused.stdout


def test_a_database_without_our_tables_is_said_in_one_line(postgres: EmbeddedPostgres, engines: Engines) -> None:
    empty = postgres.url(SERVICE_ROLE, "postgres")
    done = _anamnesis(
        "serve",
        ANAMNESIS_DATABASE_URL=empty,
        ANAMNESIS_MILVUS_URI=engines.milvus_uri,
        ANAMNESIS_PORT=str(free_port()),
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "Run: anamnesis migrate" in done.stderr


def test_a_worker_of_its_own_starts_and_stops(engines: Engines) -> None:
    worker = _Terminal(
        "worker", ANAMNESIS_DATABASE_URL=engines.database_url, ANAMNESIS_MILVUS_URI=engines.milvus_uri
    )
    worker.sees("The worker is ready.")
    worker.types("\x03")
    assert worker.ends() == 0


class _Terminal:
    """A person at a terminal."""

    def __init__(self, *arguments: str, **variables: str) -> None:
        self.shown = ""
        self._terminal, theirs = pty.openpty()
        environment = environment_of({"TERM": "dumb", **variables})
        self._process = ForkedProcess(*arguments, environment=environment, terminal=theirs)
        os.close(theirs)

    def sees(self, text: str) -> None:
        end = time.monotonic() + 60
        while text not in self.shown:
            assert time.monotonic() < end, self.shown
            if select.select([self._terminal], [], [], 0.1)[0]:
                try:
                    self.shown += os.read(self._terminal, 4096).decode(errors="replace")
                except OSError:  # the program has ended
                    pytest.fail(self.shown)

    def types(self, text: str) -> None:
        self.shown = ""
        os.write(self._terminal, text.encode())

    def leaves(self) -> int:
        os.write(self._terminal, b"\x04")
        return self.ends()

    def ends(self) -> int:
        code = self._process.wait(60)
        os.close(self._terminal)
        return code


def test_a_conversation_in_the_terminal(shared_service: ServiceProcess, model_server: ModelServer) -> None:
    address = {"ANAMNESIS_PORT": shared_service.url.rsplit(":", 1)[1]}
    terminal = _Terminal("chat", "--user", "ada", **address)
    terminal.sees("New conversation")
    terminal.types("Hello [bold]there[/]\n")
    terminal.sees("Certainly, here is the answer.")

    model_server.script(Reply(["one ", "two"], gap_s=30))
    terminal.types("Count.\n")
    terminal.sees("one ")
    terminal.types("\x03")
    terminal.sees("what has come of the answer is kept")
    terminal.types("Still there?\n")
    terminal.sees("Certainly, here is the answer.")
    assert terminal.leaves() == 0

    again = _Terminal("chat", "--user", "ada", **address)
    again.sees("Hello [bold]there[/]")
    again.sees("(incomplete)")
    again.sees("Still there?")
    assert again.leaves() == 0


def test_an_answer_goes_on_where_its_connection_broke(
    shared_service: ServiceProcess, model_server: ModelServer
) -> None:
    with CuttingProxy(int(shared_service.url.rsplit(":", 1)[1]), cut_at=b"three ") as proxy:
        terminal = _Terminal("chat", "--user", "bea", ANAMNESIS_PORT=str(proxy.port))
        terminal.sees("New conversation")
        model_server.script(Reply(["one ", "two ", "three ", "four ", "five"], gap_s=0.3))
        terminal.types("Count.\n")
        terminal.sees("one two three four five")
        assert terminal.leaves() == 0
        proxy.shutdown()
    assert proxy.cuts == 1
    assert sum("Count." in request.said for request in model_server.requests) == 1
