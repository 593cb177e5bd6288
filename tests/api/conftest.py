"""The application over real HTTP, in this process; and as its own process."""

import asyncio
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner, Result

from api.cli.main import app
from services.engines import Engines
from services.platform.embedded_postgres import OWNER_ROLE, SERVICE_ROLE, EmbeddedPostgres
from services.platform.migrate import migrate
from services.platform.settings import Settings
from tests.support.application import serving
from tests.support.folders import new_folder
from tests.support.model_server import BACKGROUND, ModelServer
from tests.support.ports import free_port
from tests.support.service_process import ServiceProcess
from tests.support.talk import KNOWN, Talk
from tests.support.transfer import message, ndjson

Anamnesis = Callable[..., Result]


@pytest.fixture(scope="session")
def _prepared_data_dir() -> Iterator[Path]:
    """A data folder as the service leaves it that was started once and told nothing."""
    with new_folder() as folder, asyncio.Runner() as runner:
        data = Path(folder) / "data"
        server = EmbeddedPostgres(data)
        runner.run(server.start())
        migrate(server.url(OWNER_ROLE), SERVICE_ROLE)
        runner.run(server.stop())
        yield data


@pytest.fixture
def empty_data_dir() -> Iterator[Path]:
    """A folder for embedded engines that are to be set up."""
    with new_folder() as folder:
        yield Path(folder) / "data"


@pytest.fixture
def data_dir(empty_data_dir: Path, _prepared_data_dir: Path) -> Path:
    """A folder for embedded engines: a copy of a prepared one, as to set one up takes longer than most tests."""
    subprocess.run(["cp", "-a", _prepared_data_dir, empty_data_dir], check=True)
    return empty_data_dir


@pytest.fixture(scope="session")
def _shared_service(_prepared_data_dir: Path, _model_server: ModelServer) -> Iterator[ServiceProcess]:
    with new_folder() as folder:
        data = Path(folder) / "data"
        subprocess.run(["cp", "-a", _prepared_data_dir, data], check=True)
        process = ServiceProcess(
            data,
            free_port(),
            llm_model="scripted",
            small_llm_model=BACKGROUND,
            llm_base_url=_model_server.base_url,
            llm_timeout_s="60",
        )
        yield process.start()
        process.stop()


@pytest.fixture
def shared_service(_shared_service: ServiceProcess, model_server: ModelServer) -> ServiceProcess:
    """The service as a process, for tests that leave it running: all of a run share it, each as its own users."""
    return _shared_service


@pytest.fixture
def service(data_dir: Path, model_server: ModelServer) -> Iterator[ServiceProcess]:
    """The service as a process, with everything embedded and the scripted model behind it."""
    process = ServiceProcess(
        data_dir,
        free_port(),
        llm_model="scripted",
        llm_base_url=model_server.base_url,
        llm_timeout_s="60",  # a slow machine must not end a turn before the test does
    )
    yield process.start()
    if process.process and process.process.poll() is None:
        process.stop()


@pytest.fixture
async def talk(client: httpx.AsyncClient, model_server: ModelServer) -> Talk:
    """The user u-1, of whom some things are known."""
    opened = Talk(client, model_server)
    await opened.begin(KNOWN)
    return opened


@pytest.fixture
def beside(settings: Settings, engines: Engines) -> Iterator[dict[str, str]]:
    """Variables with which commands find the test's stores, and the service, in a thread of this process."""
    with serving(settings, engines) as address:
        yield _variables(engines, address)


@pytest.fixture
def anamnesis(beside: dict[str, str]) -> Anamnesis:
    """Run a command on the test's service, or its stores."""
    return _runner(beside)


@pytest.fixture
def talked(anamnesis: Anamnesis, tmp_path: Path) -> Anamnesis:
    """Run a command on the test's service, after the user u-1 has said something."""
    return _after_a_talk(anamnesis, tmp_path)


@pytest.fixture(scope="module")
def shared_talked(
    shared_stores: tuple[Settings, Engines], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Anamnesis]:
    """Run a command on one service for all tests of a file whose commands are refused."""
    with serving(*shared_stores) as address:
        run = _runner(_variables(shared_stores[1], address))
        yield _after_a_talk(run, tmp_path_factory.mktemp("talk"))


def _variables(engines: Engines, address: str) -> dict[str, str]:
    return {
        "ANAMNESIS_DATABASE_URL": engines.database_url,
        "ANAMNESIS_MILVUS_URI": engines.milvus_uri,
        "ANAMNESIS_URL": address,
    }


def _runner(beside: dict[str, str]) -> Anamnesis:
    def run(*arguments: str, given: bytes = b"", **variables: str) -> Result:
        environment = {**beside, "COLUMNS": "200", "NO_COLOR": "1", **variables}
        return CliRunner().invoke(app, arguments, input=given, env=environment)

    return run


def _after_a_talk(anamnesis: Anamnesis, folder: Path) -> Anamnesis:
    file = folder / "talk.jsonl"
    file.write_bytes(ndjson(message(1, content="I live in Lyon."), message(2, content="我姓陈")))
    done = anamnesis("import", str(file))
    assert done.exit_code == 0, done.output
    return anamnesis
