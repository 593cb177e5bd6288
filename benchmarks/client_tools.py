"""Whether clients of other people use their tools by way of this service: a task of ten steps by each, unchanged.

`python -m benchmarks.client_tools FOLDER [NAME …]`

FOLDER has an environment for each package: `agents` (openai-agents), `anthropic`, `pydanticai`, `af`
(agent-framework-openai), and `node` with the packages of `clients/tasks.mjs`. The scripted model calls the
client's tool step by step, three times two at once, once beside a tool of the service. A client passes if its
answer has all ten results and what memory knows.
"""

import argparse
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from benchmarks.processes import free_port
from tests.support.model_server import ModelServer, Received, Reply, ToolCall
from tests.support.service_process import ServiceProcess

_HERE = Path(__file__).parent / "clients"
_PYTHON = {
    "openai_chat": "agents",
    "openai_responses": "agents",
    "agents_chat": "agents",
    "agents_responses": "agents",
    "pydantic_ai": "pydanticai",
    "framework_chat": "af",
    "framework_responses": "af",
    "anthropic": "anthropic",
}
_NODE = ("ai_responses", "ai_chat", "ai_compatible", "ai_anthropic", "run_tools")
_STEPS = 10
_PAIRS = frozenset({2, 5, 8})
_BESIDE = 4
_PATIENCE_S = 120


def _reply(received: Received) -> Reply:
    """Call the next steps; when all have results, say them, and what memory knows."""
    items: list[dict[str, Any]] = received.body.get("input") or received.body.get("messages") or []
    text = str(items)
    if "Carry out the ten steps" not in text or "tools" not in received.body:
        return Reply(["Noted."])
    done = sum(f"result-{n}'" in text for n in range(1, _STEPS + 1))
    if done == _STEPS:
        known = "Leeds" if "Leeds" in text else "unknown"
        return Reply(["All done in ", known, ": ", ", ".join(f"result-{n}" for n in range(1, _STEPS + 1))])
    count = 2 if done + 1 in _PAIRS else 1
    calls = [ToolCall("step", {"n": n}, f"call_{n}") for n in range(done + 1, done + 1 + count)]
    if done + 1 == _BESIDE:
        calls.append(ToolCall("get_current_time", {}, "call_time"))
    return Reply(["One moment."] if done == 0 else [], calls)


def _run(name: str, folder: Path, url: str) -> tuple[bool, str, float]:
    """Return whether a client has carried out the task, its last line, and the seconds it took."""
    if name in _PYTHON:
        command = [str(folder / _PYTHON[name] / "bin/python"), str(_HERE / "tasks.py"), name, url]
    else:
        command = ["node", str(_HERE / "tasks.mjs"), name, url]
    begun = time.perf_counter()
    where = folder / "node" if name in _NODE else folder
    try:
        done = subprocess.run(command, cwd=where, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
        lines = [each for each in (done.stdout.strip() or done.stderr.strip()).splitlines() if each.strip()]
    except subprocess.TimeoutExpired:
        lines = ["it did not end"]
    said = lines[-1] if lines else ""
    whole = "Leeds" in said and all(f"result-{n}" in said for n in range(1, _STEPS + 1))
    return whole, said, time.perf_counter() - begun


def main() -> None:
    """Print a line for each client."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    names = asked.names or [*_PYTHON, *_NODE]
    with ModelServer() as model, tempfile.TemporaryDirectory(prefix="anamnesis-clients-") as data:
        Path(data).chmod(0o755)
        model.default = _reply
        settings: dict[str, Any] = {"llm_base_url": model.base_url, "llm_model": "scripted", "llm_api": "chat"}
        service = ServiceProcess(Path(data) / "data", free_port(), **settings).start()
        try:
            told = {"user_id": "u-1", "session_id": "s-0", "message": "I live in Leeds."}
            httpx.post(f"{service.url}/api/v1/chat", json=told, timeout=60).raise_for_status()
            passed = 0
            for name in names:
                ok, said, seconds = _run(name, asked.folder, service.url)
                passed += ok
                print(
                    f"{'ok  ' if ok else 'FAIL'} {name:20} {seconds:5.1f} s  {'' if ok else said[:300]}",
                    flush=True,
                )
            print(f"{passed} of {len(names)}")
        finally:
            service.stop()


if __name__ == "__main__":
    main()
