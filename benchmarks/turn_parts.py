"""Cost of the libraries under a turn by themselves, next to the floor's whole turn.

`python -m benchmarks.turn_parts [--rounds 8] [--turns 40] [--json FILE]`

In one process, with a stand-in for the language model in another and a real PostgreSQL, twenty at a time: the
stock chat model's stream and the service's lean one (64 tokens); LangGraph with the state of a turn and nodes that
do nothing, which write 64 tokens; and PostgreSQL's driver with the round trips of an ordinary turn, whose
statements select a constant. Nothing of the service runs but its chat model and the type of its state. Then the
same for the floor as a server, which is what `make bench` compares a turn with.
"""

import argparse
import asyncio
import json
import random
import statistics
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import openai
import psycopg
import uvloop
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command
from pydantic import SecretStr
from rich.console import Console
from rich.table import Table

from benchmarks.processes import child, weigh
from benchmarks.rig import Client, floor, fresh_lanes, stand_in
from benchmarks.scripted_stores import scripted_stores
from benchmarks.stand_in_llm import TOKENS
from services.llm.lean_openai import LeanChatOpenAI
from state.conversation import ConversationState

_AT_ONCE = 20
_ROUND_TRIPS = (2, 3, 1, 1)
"""Statements of each round trip of an ordinary turn, without those that set the tenant (docs/scaling.md)."""
_SET_TENANT = "SELECT set_config('anamnesis.tenant_id', %s, true)"
_TENANT = "00000000-0000-7000-8000-000000000001"

Part = Callable[[], Awaitable[Any]]


async def _stock(model: ChatOpenAI) -> None:
    async for _ in model.astream([HumanMessage("Tell me about it.")]):
        pass


async def _lean(model: LeanChatOpenAI) -> None:
    await model.ainvoke([HumanMessage("Tell me about it.")], on_text=lambda _: None)


def _graph() -> Part:
    async def node(state: ConversationState) -> ConversationState:
        return ConversationState(features=state.get("features", []), timings={})

    async def generate(state: ConversationState, runtime: Runtime[None]) -> Command[str]:
        for _token in range(TOKENS):
            runtime.stream_writer({"status": "token", "content": "tok"})
        return Command(update=ConversationState(answer=state["kb_instructions"]), goto="persist")

    graph = StateGraph(ConversationState, context_schema=None)
    for name in ("route", "history", "persist"):
        graph.add_node(name, node)
    graph.add_node("generate", generate, destinations=("persist",))
    for one, next_one in ((START, "route"), ("route", "history"), ("history", "generate"), ("persist", END)):
        graph.add_edge(one, next_one)
    compiled = graph.compile()

    async def turn() -> None:
        state = ConversationState(kb_instructions="Tell me about it.")
        async for _ in compiled.astream(state, stream_mode=["updates", "custom"]):
            pass

    return turn


async def _statements(connections: "asyncio.Queue[psycopg.AsyncConnection[Any]]") -> None:
    for statements in _ROUND_TRIPS:
        connection = await connections.get()
        async with connection.pipeline():
            await connection.execute(_SET_TENANT, [_TENANT])
            cursors = [await connection.execute("SELECT %s::int", [each]) for each in range(statements)]
        for cursor in cursors:
            await cursor.fetchall()
        connections.put_nowait(connection)


async def _cpu_ms(part: Part, turns: int) -> float:
    """Milliseconds of CPU that a turn of the part takes in this process."""
    waiting = list(range(turns))

    async def lane() -> None:
        while waiting:
            waiting.pop()
            await part()

    begun = time.process_time()
    await asyncio.gather(*(lane() for _ in range(_AT_ONCE)))
    return (time.process_time() - begun) * 1000 / turns


async def measure(url: str, rounds: int, turns: int) -> dict[str, float]:
    """Measure the parts by turns, in random order: medians of the rounds."""
    options: dict[str, Any] = {"model": "stand-in", "base_url": url, "api_key": SecretStr("x")}
    http = openai.DefaultAioHttpClient()
    connections: asyncio.Queue[psycopg.AsyncConnection[Any]] = asyncio.Queue()
    async with scripted_stores() as stores:
        for _ in range(8):
            address = str(stores.engines.database_url)
            connections.put_nowait(await psycopg.AsyncConnection.connect(address, autocommit=True))
        parts: dict[str, Part] = {
            "the stock chat model": partial(_stock, ChatOpenAI(use_responses_api=True, **options)),
            "the lean chat model": partial(
                _lean,
                LeanChatOpenAI(use_responses_api=True, http_async_client=http, **options),
            ),
            "LangGraph": _graph(),
            "PostgreSQL's driver": partial(_statements, connections),
        }
        taken: dict[str, list[float]] = {name: [] for name in parts}
        for part in parts.values():
            await _cpu_ms(part, _AT_ONCE)
        for _ in range(rounds):
            for name in random.sample(list(parts), len(parts)):
                taken[name].append(await _cpu_ms(parts[name], turns))
        await http.aclose()
        while not connections.empty():
            await connections.get_nowait().close()
    return {name: statistics.median(values) for name, values in taken.items()}


def measure_floor(url: str, rounds: int, turns: int) -> float:
    """Milliseconds of CPU that a turn of the floor takes, as a separate server."""
    taken = []
    with floor(url, "responses") as bare, child(["-m", "benchmarks.load_client"], piped=True) as process:
        client = Client(process)
        client.measure(bare, bare.load(fresh_lanes(_AT_ONCE), _AT_ONCE))
        for _ in range(rounds):
            before = weigh(bare.pid).cpu_s
            client.measure(bare, bare.load(fresh_lanes(turns), _AT_ONCE))
            taken.append((weigh(bare.pid).cpu_s - before) * 1000 / turns)
    return statistics.median(taken)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.turn_parts", description=__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--turns", type=int, default=40, help="a round")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    options = parser.parse_args()
    with stand_in() as port:
        url = f"http://127.0.0.1:{port}/burst/v1"
        found = uvloop.run(measure(url, options.rounds, options.turns))
        whole = measure_floor(url, options.rounds, options.turns)
    table = Table("part", "CPU ms a turn", "to the floor", title="What a turn's libraries cost by themselves")
    for name, value in {**found, "the whole floor": whole}.items():
        table.add_row(name, f"{value:.1f}", f"{value / whole:.2f}")
    Console().print(table)
    if options.json:
        options.json.write_text(json.dumps({**found, "floor": whole}) + "\n")


if __name__ == "__main__":
    main()
