"""Follow the README's commands word for word: `python -m tests.packaging.follow_readme [PYTHON …]`.

For each interpreter, this one by default: an environment and a folder of their own, and the lines of the section
“Three commands” as they stand. Two things differ: the name of the distribution is the wheel of this checkout, and
no browser is opened. Then a fact is told and asked for. Prints the seconds of each step; the exit code is 1 if one
fails. Packages come from where `pip` is configured to find them.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import httpx
from hatchling.builders.wheel import WheelBuilder

from tests.support.ports import free_port

_ROOT = Path(__file__).parents[2]
_WAIT_S = 180.0


def main() -> None:
    """Follow them with each interpreter."""
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        (wheel,) = WheelBuilder(str(_ROOT)).build(directory=folder)
        for python in sys.argv[1:] or [sys.executable]:
            version = subprocess.run(
                [python, "--version"], check=True, capture_output=True, text=True
            ).stdout.strip()
            try:
                print(version, _followed(python, wheel), flush=True)  # noqa: T201
            except (AssertionError, subprocess.CalledProcessError, httpx.HTTPError) as error:
                failed = True
                print(version, f"failed: {error}", flush=True)  # noqa: T201
    sys.exit(failed)


def commands() -> list[str]:
    """The lines of the README's section “Three commands”, without their comments."""
    section = (_ROOT / "README.md").read_text(encoding="utf-8").split("## Three commands")[1]
    block = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert block is not None, "the section holds no commands"
    return [line.split("#")[0].strip() for line in block[1].splitlines()]


def _followed(python: str, wheel: str) -> str:
    install, serve, demo = commands()
    assert "anamnesis-agent" in install
    assert "--open" in serve
    took = {}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", f"{folder}/env"], check=True)
        port = free_port()
        variables = {
            name: value for name, value in os.environ.items() if not name.startswith(("ANAMNESIS_", "VIRTUAL"))
        }
        surroundings = {**variables, "PATH": f"{folder}/env/bin:{os.environ['PATH']}", "ANAMNESIS_PORT": str(port)}
        begun = time.monotonic()
        _run(install.replace("anamnesis-agent", wheel), folder, surroundings)
        took["install"] = time.monotonic() - begun
        command = serve.replace("--open", "").split()
        with subprocess.Popen(
            command, cwd=folder, env=surroundings, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as service:
            try:
                with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
                    _until_ready(client, service)
                    took["ready"] = time.monotonic() - begun
                    _ask(client, "first", "My dog is called Bruno.")
                    assert "Bruno" in _ask(client, "second", "What is my dog called?"), "the fact was not recalled"
                    took["first remembered fact"] = time.monotonic() - begun
                    _run(demo, folder, surroundings)
                    took["demo"] = time.monotonic() - begun
            finally:
                service.send_signal(signal.SIGINT)
                assert service.wait(60) == 0, "Ctrl-C did not stop it"
    return ", ".join(f"{step} {seconds:.0f} s" for step, seconds in took.items())


def _run(command: str, folder: str, surroundings: Mapping[str, str]) -> None:
    subprocess.run(command.split(), cwd=folder, env=surroundings, check=True, stdout=subprocess.DEVNULL)


def _until_ready(client: httpx.Client, service: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + _WAIT_S
    while time.monotonic() < until:
        assert service.poll() is None, "the service ended"
        try:
            if client.get("/readyz").is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    raise AssertionError("the service is not ready")


def _ask(client: httpx.Client, session: str, message: str) -> str:
    body = {"user_id": "me", "session_id": session, "message": message}
    answer: str = client.post("/api/v1/chat", json=body).raise_for_status().json()["answer"]
    return answer


if __name__ == "__main__":
    main()
