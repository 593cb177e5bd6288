"""The task of `benchmarks.client_tools` by Python's clients: `python tasks.py NAME URL`, in their environments.

Each is used as its documentation does; nothing of it knows this service. The last line is the answer.
"""

# ruff: noqa: PLC0415 — each environment has one of these packages
# mypy: ignore-errors

import asyncio
import json
import sys
from typing import Any

TASK = "Carry out the ten steps where I live."
SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
USER = {"user": "u-1"}


def step(n: int) -> str:
    """Carry out a step and return its result."""
    return f"result-{n}"


async def openai_chat(url: str) -> str:
    """OpenAI's SDK, chat completions, streamed."""
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none")
    function = {"name": "step", "description": "Carry out a step.", "parameters": SCHEMA, "strict": True}
    messages: list[Any] = [{"role": "user", "content": TASK}]
    while True:
        async with client.chat.completions.stream(
            model="default", messages=messages, tools=[{"type": "function", "function": function}], **USER
        ) as stream:
            completion = await stream.get_final_completion()
        message = completion.choices[0].message
        if not message.tool_calls:
            return message.content
        messages.append(message)
        for call in message.tool_calls:
            said = step(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": said})


async def openai_responses(url: str) -> str:
    """OpenAI's SDK, responses, streamed, each following the one before."""
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none")
    tools: Any = [{"type": "function", "name": "step", "parameters": SCHEMA, "strict": True}]
    asked: Any = {"input": TASK}
    while True:
        async with client.responses.stream(model="default", tools=tools, **USER, **asked) as stream:
            response = await stream.get_final_response()
        calls = [each for each in response.output if each.type == "function_call"]
        if not calls:
            return response.output_text
        outputs = [
            {"type": "function_call_output", "call_id": each.call_id, "output": step(**json.loads(each.arguments))}
            for each in calls
        ]
        asked = {"input": outputs, "previous_response_id": response.id}


async def _agents(url: str, kind: str) -> str:
    from agents import Agent, ModelSettings, Runner, function_tool, set_tracing_disabled
    from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
    from agents.models.openai_responses import OpenAIResponsesModel
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    model = {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}[kind](
        model="default", openai_client=AsyncOpenAI(base_url=f"{url}/v1", api_key="none")
    )
    agent = Agent(
        name="A", model=model, tools=[function_tool(step)], model_settings=ModelSettings(extra_body=dict(USER))
    )
    result = Runner.run_streamed(agent, TASK, max_turns=20)
    async for _ in result.stream_events():
        pass
    return result.final_output


async def agents_chat(url: str) -> str:
    """OpenAI's Agents SDK over chat completions."""
    return await _agents(url, "chat")


async def agents_responses(url: str) -> str:
    """OpenAI's Agents SDK over responses."""
    return await _agents(url, "responses")


async def pydantic_ai(url: str) -> str:
    """Pydantic AI over chat completions."""
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel("default", provider=OpenAIProvider(base_url=f"{url}/v1", api_key="none"))
    agent = Agent(model, tools=[step], model_settings={"extra_body": dict(USER)})
    return (await agent.run(TASK)).output


async def _framework(url: str, name: str) -> str:
    import agent_framework.openai as clients
    from agent_framework import Agent

    client = getattr(clients, name)(model="default", base_url=f"{url}/v1", api_key="none")
    agent = Agent(client, tools=[step], default_options=dict(USER))
    return (await agent.run(TASK)).text


async def framework_chat(url: str) -> str:
    """Microsoft's Agent Framework over chat completions."""
    return await _framework(url, "OpenAIChatCompletionClient")


async def framework_responses(url: str) -> str:
    """Microsoft's Agent Framework over responses."""
    return await _framework(url, "OpenAIChatClient")


async def anthropic(url: str) -> str:
    """Anthropic's SDK with its own runner of tools."""
    from anthropic import AsyncAnthropic, beta_async_tool

    client = AsyncAnthropic(base_url=url, api_key="none")

    @beta_async_tool(name="step")
    async def carry_out(n: int) -> str:
        """Carry out a step and return its result."""
        return step(n)

    runner = client.beta.messages.tool_runner(
        model="default",
        max_tokens=500,
        tools=[carry_out],
        messages=[{"role": "user", "content": TASK}],
        metadata={"user_id": "u-1"},
    )
    message = await runner.until_done()
    return "".join(block.text for block in message.content if block.type == "text")


if __name__ == "__main__":
    print(asyncio.run(globals()[sys.argv[1]](sys.argv[2])))
