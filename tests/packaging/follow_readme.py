"""Play the README of a fresh clone: `python -m tests.packaging.follow_readme [--wheel] [--tests] [PYTHON …]`.

For each interpreter, this one by default: a clone of this checkout's commit in an empty home, and the README's
commands as they stand, with the clone's address filled in. `make run` installs and serves, `make demo` loads the
demo, five messages are answered over HTTP and the guide is opened. With `--wheel`, `make wheel` builds one, which
is installed elsewhere and serves; with `--tests`, `make test` follows. Prints the seconds of each step and what is
installed in bytes; the exit code is 1 if one fails. Packages come from where `pip` is configured to find them.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import httpx

from tests.support.ports import free_port

_ROOT = Path(__file__).parents[2]
_PLACE = "<address of this repository>"
_INSTALL_S, _STEP_S, _TESTS_S, _STOP_S = 900.0, 120.0, 3600.0, 60.0
_TOLD = {
    "My dog is called Bruno.": "",
    "What is my dog called?": "Bruno",
    "我住在杭州。": "",
    "我住在哪里？": "杭州",
    "Forget that my dog is called Bruno.": "Bruno",
}
"""What is said, each in a conversation of its own, and what its answer holds."""


def main() -> None:
    """Play it with each interpreter."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--wheel", action="store_true")
    parser.add_argument("--tests", action="store_true")
    parser.add_argument("pythons", nargs="*", default=[sys.executable])
    options = parser.parse_args()
    failed = False
    for python in options.pythons:
        version = subprocess.run([python, "--version"], check=True, capture_output=True, text=True).stdout.strip()
        try:
            print(version, _played(python, wheel=options.wheel, tests=options.tests), flush=True)  # noqa: T201
        except (AssertionError, subprocess.SubprocessError, httpx.HTTPError) as error:
            failed = True
            print(version, f"failed: {error}", flush=True)  # noqa: T201
    sys.exit(failed)


def commands() -> list[str]:
    """The lines of the README's block of commands, without their comments."""
    section = (_ROOT / "README.md").read_text(encoding="utf-8").split("## Start")[1]
    block = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert block is not None, "the section holds no commands"
    return [line.split("#")[0].strip() for line in block[1].splitlines()]


def _played(python: str, *, wheel: bool, tests: bool) -> str:
    clone, run, demo, test = commands()
    assert (run, demo, test) == ("make run", "make demo", "make test")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        surroundings = _surroundings(folder, python)
        _run(clone.replace(_PLACE, str(_ROOT)), folder, surroundings, _STEP_S)
        checkout = folder / "anamnesis"
        took = _served(run, checkout, surroundings, demo)
        size = sum(each.lstat().st_size for each in (checkout / ".venv").rglob("*"))
        took.append(f".venv {size / 1e9:.2f} GB")
        if wheel:
            _run("make wheel", checkout, surroundings, _STEP_S)
            took += _of_wheel(checkout / "dist", folder / "elsewhere", surroundings)
        if tests:
            begun = time.monotonic()
            _run(test, checkout, surroundings, _TESTS_S)
            took.append(f"make test {time.monotonic() - begun:.0f} s")
    return ", ".join(took)


def _surroundings(folder: Path, python: str) -> dict[str, str]:
    """The variables of somebody who has nothing but this interpreter; how pip is configured stays."""
    programs, home = folder / "bin", folder / "home"
    programs.mkdir()
    home.mkdir()
    (programs / "python3").symlink_to(shutil.which(python) or python)
    kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_") or name == "LANG"}
    return {**kept, "HOME": str(home), "PATH": f"{programs}:{os.defpath}", "ANAMNESIS_PORT": str(free_port())}


def _of_wheel(built: Path, elsewhere: Path, surroundings: Mapping[str, str]) -> list[str]:
    """Install the wheel into an environment of its own, and serve from there."""
    elsewhere.mkdir()
    _run("python3 -m venv env", elsewhere, surroundings, _STEP_S)
    (wheel,) = built.glob("anamnesis_agent-*.whl")
    _run(f"env/bin/pip install {wheel}", elsewhere, surroundings, _INSTALL_S)
    return [
        "of the wheel:",
        *_served("env/bin/anamnesis serve", elsewhere, surroundings, "env/bin/anamnesis demo"),
    ]


def _served(run: str, folder: Path, surroundings: Mapping[str, str], demo: str) -> list[str]:
    begun, took = time.monotonic(), []
    address = f"http://127.0.0.1:{surroundings['ANAMNESIS_PORT']}"
    log = folder.parent / "run.log"
    with (
        log.open("w") as output,
        subprocess.Popen(
            run.split(),
            cwd=folder,
            env=surroundings,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as service,
        httpx.Client(base_url=address, timeout=_STEP_S) as client,
    ):
        try:
            _until_ready(client, service)
            took.append(f"`{run}` is ready after {time.monotonic() - begun:.0f} s")
            said = log.read_text()
            assert all(part in said for part in (f"{address}/console", f"{address}/guide", "Ctrl-C")), said
            for path in ("/guide/", "/guide/zh/", "/console"):
                assert client.get(path).status_code == httpx.codes.OK, path
            begun = time.monotonic()
            _run(demo, folder, surroundings, _STEP_S)
            took.append(f"`{demo}` {time.monotonic() - begun:.0f} s")
            for number, (message, expected) in enumerate(_TOLD.items()):
                answer = _ask(client, f"conversation {number}", message)
                assert expected in answer, f"{message!r} was answered with {answer!r}"
            took.append(f"{len(_TOLD)} messages answered")
        finally:
            os.killpg(service.pid, signal.SIGINT)  # as Ctrl-C does
            service.wait(_STOP_S)
    return took


def _run(command: str, folder: Path, surroundings: Mapping[str, str], seconds: float) -> None:
    """Run a command, whose output is told; if it takes too long, all that it started ends with it."""
    with subprocess.Popen(
        command, shell=True, cwd=folder, env=surroundings, stdout=sys.stderr, start_new_session=True
    ) as process:
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if code:
        raise subprocess.CalledProcessError(code, command)


def _until_ready(client: httpx.Client, service: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + _INSTALL_S
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
