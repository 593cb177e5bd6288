"""JavaScript's clients against the application: OpenAI's SDK, and the AI SDK.

They are skipped without Node, or without the packages, which are no dependency of the service:
`npm install --prefix FOLDER openai ai`, and `JAVASCRIPT_PACKAGES=FOLDER`.
"""

import asyncio
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from services.bootstrap import Services
from tests.support.fork_server import ROOT
from tests.support.model_server import ModelServer, Reply, ToolCall
from tests.support.openai_clients import contents

pytestmark = [pytest.mark.anyio, pytest.mark.process]


@pytest.fixture
def packages() -> Path:
    """The folder with the packages."""
    if shutil.which("node") is None:
        pytest.skip("no node on this machine")
    folder = Path(os.environ.get("JAVASCRIPT_PACKAGES", ROOT))
    missing = [name for name in ("openai", "ai") if not (folder / "node_modules" / name).is_dir()]
    if missing:
        pytest.skip(f"no {' and '.join(missing)} in {folder}/node_modules; see JAVASCRIPT_PACKAGES in {__name__}")
    return folder


async def run(program: str, packages: Path, folder: Path, *arguments: str) -> dict[str, Any]:
    """Run a program of `tests/javascript`; return what it prints."""
    text = (ROOT / "tests" / "javascript" / program).read_text()
    found: dict[str, Any] = json.loads(await output(text, packages, folder, *arguments))
    return found


async def output(text: str, packages: Path, folder: Path, *arguments: str) -> str:
    """What a program prints that stands beside the packages, where Node finds them."""
    (folder / "node_modules").symlink_to(packages / "node_modules")
    path = folder / "program.mjs"
    path.write_text(text)
    process = await asyncio.create_subprocess_exec(
        "node", str(path), *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    said, problem = await process.communicate()
    assert process.returncode == 0, problem.decode()
    return said.decode()


async def test_openais_sdk_takes_a_response_up_after_every_event(
    url: str, packages: Path, services: Services, model_server: ModelServer, tmp_path: Path
) -> None:
    model_server.script(Reply(["Hello."]), Reply([f"word{number} " for number in range(5)]))

    found = await run("responses.mjs", packages, tmp_path, url)

    assert found["answer"] == "Hello."
    assert found["text"] == "word0 word1 word2 word3 word4 "
    assert found["resumed"] == found["events"] - 1 > 8
    assert (found["models"], found["refused"]) == (["default"], 404)
    assert len(await contents(services)) == 4


async def test_the_ai_sdk_reads_a_chat_with_tools_and_takes_one_up_again(
    url: str, packages: Path, services: Services, model_server: ModelServer, tmp_path: Path
) -> None:
    model_server.script(
        Reply(tool_calls=[ToolCall("get_current_time", {})]),
        Reply(["It is ", "noon."]),
        Reply(["One ", "two ", "three"], gap_s=0.5),
    )

    found = await run("ui_stream.mjs", packages, tmp_path, url)

    assert found["answer"] == "It is noon."
    assert found["tool"] == ["get_current_time", "output-available"]
    assert found["resumed"] == "One two three"
    assert found["idle"] is None
    assert len(await contents(services)) == 4


async def test_the_documented_example_prints_the_streamed_answer(
    url: str, packages: Path, services: Services, model_server: ModelServer, tmp_path: Path
) -> None:
    model_server.script(Reply(["Your dog ", "is called ", "Bruno."]))
    (example,) = re.findall(r"^```ts\n(.*?)^```", (ROOT / "docs" / "build-on-it.md").read_text(), re.DOTALL | re.M)

    printed = await output(example.replace("http://127.0.0.1:8000", url), packages, tmp_path)

    assert printed == "Your dog is called Bruno."
    assert len(await contents(services)) == 2
