"""A user with some known facts, and a model that can be told which tools to call."""

from typing import Any

import httpx

from api.access import CONSOLE_HEADER
from tests.support.model_server import ModelServer, Reply, ToolCall

USER = "/api/v1/users/u-1"
KNOWN = {"allergies": ["peanuts"], "bank": "Northbank", "花粉": ["对花生过敏"]}


class Talk:
    """A user with some known facts, and a model that can be told which tools to call."""

    def __init__(self, client: httpx.AsyncClient, model_server: ModelServer) -> None:
        self.http = client
        self.model = model_server

    async def begin(self, known: dict[str, Any]) -> None:
        """Make the facts known, as if the user had written them in the console."""
        await self.say("Hello.")
        put = await self.http.put(
            f"{USER}/core-memory/human", json={"content": known}, headers={CONSOLE_HEADER: "1"}
        )
        assert put.status_code == 200, put.text

    async def say(self, message: str, session: str = "s-1", **more: Any) -> dict[str, Any]:
        """Say something to the service itself."""
        body = {"user_id": "u-1", "session_id": session, "message": message, **more}
        answer = await self.http.post("/api/v1/chat", json=body)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def say_as_client(self, *contents: str) -> None:
        """Say something through the OpenAI-compatible interface, after earlier messages of the user."""
        messages = [{"role": "user", "content": each} for each in contents]
        body = {"model": "default", "messages": messages, "user": "u-1"}
        answer = await self.http.post("/v1/chat/completions", json=body)
        assert answer.status_code == 200, answer.text

    def calls(self, *calls: tuple[str, dict[str, Any]]) -> None:
        """Make the model call these tools in its next turn, and then answer."""
        asked = [ToolCall(name, arguments, f"call_{at}") for at, (name, arguments) in enumerate(calls)]
        self.model.script(Reply(tool_calls=asked), Reply(["All right."]))

    @property
    def prompt(self) -> str:
        """Return what the model was sent last."""
        return "\n".join(text for _, text in self.model.requests[-1].prompt)

    @property
    def result(self) -> str:
        """Return what the tools told the model last."""
        items = self.model.requests[-1].body["input"]
        return "\n".join(str(each["output"]) for each in items if each.get("type") == "function_call_output")

    async def core(self) -> dict[str, Any]:
        """Return what is known."""
        (section,) = (await self.http.get(f"{USER}/core-memory")).json()["items"]
        content: dict[str, Any] = section["content"]
        return content

    async def waiting(self) -> list[str]:
        return [each["text"] for each in (await self.http.get(f"{USER}/memory-proposals")).json()["items"]]

    async def found(self, query: str) -> str:
        """Return what a search finds."""
        answer = await self.http.post(f"{USER}/episodes/search", json={"query": query})
        return " ".join(item["content"] for item in answer.json()["items"])
