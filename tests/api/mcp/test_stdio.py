"""`anamnesis mcp`: assistants that start a program."""

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from services.bootstrap import Services
from tests.api.mcp.conftest import Connect
from tests.api.mcp.test_tools import DOG, told
from tests.support.command import COMMAND, environment_of, run_command
from tests.support.ports import free_port

pytestmark = [pytest.mark.process, pytest.mark.untraced]


def _program(*arguments: str, **variables: str) -> StdioServerParameters:
    program, *fixed = COMMAND
    environment = environment_of(variables)
    return StdioServerParameters(command=program, args=[*fixed, "mcp", *arguments], env=environment)


async def test_in_front_of_a_running_service(url: str, connect: Connect, services: Services) -> None:
    async with Client(_program("--url", url, "--user", "u-1"), mode="legacy") as assistant:
        assert len((await assistant.list_tools()).tools) == 8
        await told(assistant, "remember", text=DOG)
        core = (await assistant.read_resource("memory://core/human")).contents[0]
        assert "Bruno" in getattr(core, "text", "")
        prompt = await assistant.get_prompt("with-memory", {})
        assert "Bruno" in getattr(prompt.messages[0].content, "text", "")
        assert len((await assistant.list_prompts()).prompts) == 1
        assert len((await assistant.list_resource_templates()).resource_templates) == 2
    async with connect({"X-User-Id": "u-1"}) as assistant:
        assert "Bruno" in str(await told(assistant, "profile"))


@pytest.mark.traced
def test_wrong_options_end_the_program_with_one_line() -> None:
    for arguments, named in (
        (["--user", " "], "--user"),
        (["--url", "localhost:8000"], "--url"),
        (["--url", f"http://127.0.0.1:{free_port()}"], "does not answer"),
    ):
        ran = run_command("mcp", *arguments, variables={})
        assert ran.returncode != 0
        assert named in ran.stderr
        assert ran.stderr.count("\n") == 1, ran.stderr
