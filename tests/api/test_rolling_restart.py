"""Two API processes behind nginx are restarted one after the other, and no client notices."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from services.engines import Engines
from tests.conftest import free_port, wait_for_port
from tests.support.folders import new_folder
from tests.support.model_server import ModelServer, Reply
from tests.support.service_process import ServiceProcess, answer_of, events_of

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.soak,
    pytest.mark.skipif(shutil.which("nginx") is None, reason="no nginx on this machine"),
]

ANSWER = ["It ", "takes ", "a ", "little ", "time."]

_CONFIGURATION = """
{user}
worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    upstream anamnesis {{ server 127.0.0.1:{one} max_fails=0; server 127.0.0.1:{two} max_fails=0; }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://anamnesis; proxy_http_version 1.1;
            proxy_set_header Host localhost; proxy_set_header Connection ""; proxy_buffering off;
        }}
    }}
}}
"""


@pytest.fixture
def two_processes(
    engines: Engines, redis_server: str, model_server: ModelServer
) -> Iterator[tuple[ServiceProcess, ServiceProcess]]:
    """Two API processes over the same stores."""
    with new_folder() as folder, ExitStack() as stack:
        processes = []
        for name in ("one", "two"):
            process = ServiceProcess(
                Path(folder) / name,
                free_port(),
                database_url=engines.database_url,
                redis_url=redis_server,
                milvus_uri=engines.milvus_uri,
                llm_model="scripted",
                llm_base_url=model_server.base_url,
            )
            processes.append(process.start())
            stack.callback(process.end)
        yield processes[0], processes[1]


@pytest.fixture
def balancer(two_processes: tuple[ServiceProcess, ServiceProcess]) -> Iterator[str]:
    """Address of an nginx before them."""
    port = free_port()
    ports = [process.url.rpartition(":")[2] for process in two_processes]
    with new_folder() as folder:
        user = "user root;" if os.getuid() == 0 else ""
        text = _CONFIGURATION.format(user=user, folder=folder, port=port, one=ports[0], two=ports[1])
        configuration = Path(folder) / "nginx.conf"
        configuration.write_text(text)
        process = subprocess.Popen(["nginx", "-c", str(configuration), "-p", folder, "-e", f"{folder}/error.log"])
        wait_for_port(port)
        yield f"http://127.0.0.1:{port}"
        process.terminate()
        process.wait(10)


async def test_a_rolling_restart_loses_nothing(
    balancer: str, two_processes: tuple[ServiceProcess, ServiceProcess], model_server: ModelServer
) -> None:
    model_server.default = Reply(ANSWER, gap_s=0.1)
    restarted = asyncio.Event()
    answers: list[str] = []

    async def talk(number: int, client: httpx.AsyncClient) -> None:
        """One conversation, message upon message, without a second try of anything."""
        while not restarted.is_set():
            body = {"user_id": f"u-{number}", "session_id": "s", "message": f"message {len(answers)}"}
            async with client.stream("POST", "/api/v1/chat/stream", json=body) as response:
                assert response.status_code == 200, (await response.aread()).decode()
                lines = [line async for line in response.aiter_lines()]
            answers.append(answer_of(list(events_of(iter(lines)))))

    async def restart() -> None:
        await asyncio.sleep(0.5)
        for process in two_processes:
            assert await asyncio.to_thread(process.stop) == 0
            await asyncio.to_thread(process.start)
            await asyncio.sleep(0.5)
        restarted.set()

    async with httpx.AsyncClient(base_url=balancer, timeout=30) as client, asyncio.TaskGroup() as group:
        for number in range(12):
            group.create_task(talk(number, client))
        group.create_task(restart())
    assert set(answers) == {"".join(ANSWER)}
    assert len(answers) > 50
