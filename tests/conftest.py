"""Real engines for the tests: one PostgreSQL a run with a database a test, a scripted model server."""

import asyncio
import gc
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import hypothesis
import pytest
import structlog
from hypothesis import HealthCheck
from redis import Redis
from structlog.dev import plain_traceback

from services.bootstrap import Services, open_services
from services.engines import Engines, make_vault
from services.llm.builtin_embeddings import BuiltinEncoder
from services.platform.embedded_postgres import OWNER_ROLE, SERVICE_ROLE, EmbeddedPostgres
from services.platform.migrate import migrate
from services.platform.postgres import Database
from services.platform.settings import Settings, load_settings
from tests.support.counting import CoveragePauses
from tests.support.databases import Databases
from tests.support.folders import new_folder
from tests.support.logs import logs_as_before
from tests.support.model_server import ModelServer
from tests.support.ports import free_port, wait_for_port

if TYPE_CHECKING:
    from graph.turns.runner import TurnRunner
    from tests.support.milvus_server import MilvusServer
    from tests.support.weather_server import WeatherServer

ENCRYPTED = os.environ.get("TEST_ENCRYPTION") == "on"
"""Run the tests with encryption on; those marked `in_clear` are skipped."""
UNHURRIED_MS = 5_000
"""For recall: a machine under load must not decide what a prompt holds. Tests of its budget set their own."""
# The same inputs in every run, and no limit of time; `--hypothesis-profile=default` generates new ones each time.
hypothesis.settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
hypothesis.settings.load_profile("steady")
# Errors that tests cause are logged with short tracebacks: those that rich draws take longer than what is tested.
structlog.configure(
    [
        *structlog.get_config()["processors"][:-1],
        structlog.dev.ConsoleRenderer(exception_formatter=plain_traceback),
    ]
)
gc.disable()  # until all tests are collected: a fifth of that time, and nothing is found
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")  # as the service does, before anything imports it
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # so it is in a shell's background job, and inherited
    signal.signal(signal.SIGINT, signal.default_int_handler)
UNSAFE_BUT_FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=300")


ENGINES = frozenset(
    {"postgres", "milvus_uri", "milvus_server", "_redis_server", "empty_data_dir", "_shared_service"}
)
"""Fixtures that start a server or a process; a test that uses one of them is no unit test."""


_read: dict[str, Settings] = {}
"""Settings by what they were read from; to read them takes as long as to connect to the database."""


SHARED = frozenset({"shared_service", "studio"})
"""Fixtures that start a process for several tests."""


def pytest_configure(config: pytest.Config) -> None:
    """Pause coverage where it adds no lines."""
    config.pluginmanager.register(CoveragePauses())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the unit tests, and give every process its share of the long tests first."""
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        starts = ENGINES.intersection(fixtures) or any(map(item.get_closest_marker, ("process", "slow")))
        if not starts:
            item.add_marker(pytest.mark.unit)
        if ENCRYPTED and item.get_closest_marker("in_clear"):
            item.add_marker(pytest.mark.skip(reason="it looks at words in a store itself"))
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    sharing = [item for item in items if SHARED.intersection(getattr(item, "fixturenames", ()))]
    long = [item for item in items if item.get_closest_marker("slow") and item not in sharing]
    short = [item for item in items if not item.get_closest_marker("slow") and item not in sharing]
    cuts = [len(short) * number // processes for number in range(processes + 1)]
    items[:] = sharing  # by one process, so that what they share starts once
    for number in range(processes):
        items += [*long[number::processes], *short[cuts[number] : cuts[number + 1]]]


def pytest_collection_finish() -> None:
    """Leave what has been imported out of collections of garbage: each halts the process, and what it serves."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def _empty_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The current folder of unit tests, emptied after each that wrote there."""
    return tmp_path_factory.mktemp("empty")


@pytest.fixture(autouse=True)
def _no_settings_from_outside(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, _empty_folder: Path
) -> Iterator[None]:
    """No test reads the developer's own `.env` or variables, asks a real model, or logs as another told it to."""
    # Making and removing a folder takes longer than most unit tests.
    shares = not ENCRYPTED and request.node.get_closest_marker("unit") and "tmp_path" not in request.fixturenames
    folder: Path = _empty_folder if shares else request.getfixturevalue("tmp_path")
    _without_settings(monkeypatch, folder)
    if not request.node.get_closest_marker("soak"):  # which may install packages
        # Nobody asks over TLS; to read this machine's certificates for each client takes longer than a turn.
        monkeypatch.delenv("SSL_CERT_FILE", raising=False)
        monkeypatch.setenv("SSL_CERT_DIR", str(_empty_folder))
    with logs_as_before():
        yield
    if os.listdir(_empty_folder):
        shutil.rmtree(_empty_folder)
        _empty_folder.mkdir()


def _without_settings(environment: pytest.MonkeyPatch, folder: Path) -> None:
    for name in list(os.environ):
        if name.startswith(("ANAMNESIS_", "OPENAI_")):
            environment.delenv(name)
    environment.setenv("ANAMNESIS_DEFAULT_TIMEZONE", "Asia/Shanghai")  # and not this machine's
    environment.setenv("ANAMNESIS_MEMORY_FILING_QUIET_S", "0")
    environment.setenv("ANAMNESIS_MEMORY_FILING_PAUSE_S", "0")
    environment.setenv("ANAMNESIS_MEMORY_RECALL_BUDGET_MS", str(UNHURRIED_MS))
    # Fewer than usual, so that tests need not talk as long until there is a summary.
    environment.setenv("ANAMNESIS_MEMORY_SUMMARY_MIN_MESSAGES", "10")
    environment.setenv("ANAMNESIS_MEMORY_SUMMARY_UPDATE_DELTA", "5")
    if ENCRYPTED:
        environment.setenv("ANAMNESIS_ENCRYPTION", "on")
        environment.setenv("ANAMNESIS_ENCRYPTION_KEYS_DIR", str(folder / "keys"))
    environment.chdir(folder)


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    """A real server, its database migrated: the template of every test's own."""
    with new_folder() as folder, asyncio.Runner() as runner:
        server = EmbeddedPostgres(Path(folder), options=UNSAFE_BUT_FAST)
        runner.run(server.start())
        migrate(server.url(OWNER_ROLE), SERVICE_ROLE)
        yield server
        runner.run(server.stop())


@pytest.fixture(scope="session")
def databases(postgres: EmbeddedPostgres) -> Iterator[Databases]:
    """The server's databases for tests."""
    opened = Databases(postgres)
    yield opened
    opened.close()


@pytest.fixture
def database_name(databases: Databases) -> Iterator[str]:
    """A database for this test alone, migrated."""
    with databases.taken() as name:
        yield name


@pytest.fixture(scope="session")
def _encoder() -> None:
    """Load the built-in encoder before anybody waits for it."""
    BuiltinEncoder().load()


@pytest.fixture
def engines(
    request: pytest.FixtureRequest, postgres: EmbeddedPostgres, database_name: str, _encoder: None
) -> Engines:
    """Where the test's stores are; nothing listens where Milvus should be, unless a mark says otherwise."""
    milvus_uri = f"http://127.0.0.1:{free_port()}"
    if request.node.get_closest_marker("indexed"):
        milvus_uri = request.getfixturevalue("milvus_uri")
    if request.node.get_closest_marker("own_milvus"):
        milvus_uri = request.getfixturevalue("milvus_server").uri
    return Engines(
        database_url=postgres.url(SERVICE_ROLE, database_name),
        owner_url=postgres.url(OWNER_ROLE, database_name),
        milvus_uri=milvus_uri,
    )


@pytest.fixture
async def database(engines: Engines) -> AsyncIterator[Database]:
    """The test's database, as the service sees it."""
    opened = Database(engines.database_url, vault=make_vault(load_settings()))
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture(scope="session")
def _model_server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def model_server(_model_server: ModelServer) -> ModelServer:
    """A scripted model server without a script."""
    _model_server.reset()
    return _model_server


@pytest.fixture
def settings(model_server: ModelServer, request: pytest.FixtureRequest) -> Settings:
    """Settings with the scripted model behind the Responses API; marks or a parameter of a test give others."""
    others: dict[str, Any] = {}
    for mark in reversed([*request.node.iter_markers("settings")]):  # the nearest last
        others |= mark.kwargs
    given = getattr(request, "param", None)
    # what else a file's own fixture takes is not for this one
    return _settings(model_server, **{**others, **(given if isinstance(given, dict) else {})})


def _settings(model_server: ModelServer, **others: Any) -> Settings:
    usual: dict[str, Any] = {
        "llm_model": "scripted",
        "llm_base_url": model_server.base_url,
        "llm_api_key": "secret-key",
        "llm_timeout_s": 60,  # a slow machine must not end a turn before the test does
    }
    given = {**usual, **others}
    if os.listdir() or not all(isinstance(each, str | int | float | None) for each in given.values()):
        return load_settings(**given)
    variables = {name: value for name, value in os.environ.items() if name.startswith("ANAMNESIS_")}
    key = repr((sorted(given.items()), sorted(variables.items())))
    if key not in _read:
        _read[key] = load_settings(**given)
    return _read[key]


@pytest.fixture
async def weather() -> AsyncIterator["WeatherServer"]:
    """A server that is asked for the weather."""
    from tests.support.weather_server import WeatherServer

    async with WeatherServer() as server:
        yield server


@pytest.fixture
async def services(settings: Settings, engines: Engines) -> AsyncIterator[Services]:
    """All services, over the test's own database."""
    async with open_services(settings, engines) as opened:
        yield opened


@pytest.fixture(scope="session")
async def _one_loop(anyio_backend: str) -> None:
    """Keep one event loop: gRPC tells one loop what comes for another, and fails if a test has closed that."""


@pytest.fixture(scope="session")
def milvus_uri(_one_loop: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real Milvus Lite; each test's users are new, and find nothing of the others'."""
    from tests.support.milvus_server import embedded_milvus

    with embedded_milvus(tmp_path_factory.mktemp("milvus")) as uri:
        yield uri


@pytest.fixture
def milvus_server(_one_loop: None, tmp_path: Path) -> Iterator["MilvusServer"]:
    """A Milvus Lite of the test's own, to be broken."""
    from tests.support.milvus_server import MilvusServer

    server = MilvusServer(tmp_path / "milvus")
    server.start()
    yield server
    server.stop(signal.SIGKILL)


@pytest.fixture
async def remembering(settings: Settings, engines: Engines, milvus_uri: str) -> AsyncIterator[Services]:
    async with open_services(settings, replace(engines, milvus_uri=milvus_uri)) as opened:
        yield opened


@pytest.fixture
async def runner(services: Services) -> AsyncIterator["TurnRunner"]:
    """A turn runner over the services."""
    from tests.support.application import running_turns  # unit tests do without the application

    async with running_turns(services) as opened:
        yield opened


@pytest.fixture
async def url(services: Services, runner: "TurnRunner") -> AsyncIterator[str]:
    """Address of the application, served in this process."""
    from tests.support.application import served

    async with served(services, runner) as address:
        yield address


@pytest.fixture
async def client(url: str) -> AsyncIterator[httpx.AsyncClient]:
    """An HTTP client of the application."""
    # Plain HTTP: to load the certificates would take longer than most tests.
    async with httpx.AsyncClient(base_url=url, timeout=120, verify=False) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared_stores(
    postgres: EmbeddedPostgres, databases: Databases, _model_server: ModelServer
) -> Iterator[tuple[Settings, Engines]]:
    """Settings, and one database, for the tests of a file whose requests are refused: they change nothing."""
    with databases.taken() as name, new_folder() as folder:
        with pytest.MonkeyPatch.context() as environment:
            _without_settings(environment, Path(folder))
            settings = _settings(_model_server)
        engines = Engines(
            database_url=postgres.url(SERVICE_ROLE, name),
            owner_url=postgres.url(OWNER_ROLE, name),
            milvus_uri=f"http://127.0.0.1:{free_port()}",
        )
        yield settings, engines


@pytest.fixture(scope="module")
async def shared_services(anyio_backend: str, shared_stores: tuple[Settings, Engines]) -> AsyncIterator[Services]:
    """All services, for the tests of a file whose requests are refused."""
    async with open_services(*shared_stores) as opened:
        yield opened


@pytest.fixture(scope="module")
async def shared_url(shared_services: Services) -> AsyncIterator[str]:
    """Address of the application over the shared services."""
    from tests.support.application import running_turns, served

    async with running_turns(shared_services) as runner, served(shared_services, runner) as address:
        yield address


@pytest.fixture
async def shared_client(shared_url: str) -> AsyncIterator[httpx.AsyncClient]:
    """An HTTP client of the application over the shared services."""
    async with httpx.AsyncClient(base_url=shared_url, timeout=120, verify=False) as opened:
        yield opened


@pytest.fixture
def redis_server(_redis_server: str) -> str:
    """The address of a real Redis server with nothing in it."""
    with Redis.from_url(_redis_server) as client:
        client.flushall()
    return _redis_server


@pytest.fixture(scope="session")
def _redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("no redis-server on this machine; install the system's package")
    port = free_port()
    folder = tmp_path_factory.mktemp("redis")
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    process = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL)
    wait_for_port(port)
    yield f"redis://127.0.0.1:{port}/0"
    process.terminate()
    process.wait(60)
