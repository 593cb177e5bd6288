"""How much running tools together saves, and what recognising a question costs.

`python -m benchmarks.tools [--tools 5] [--seconds 0.1] [--rounds 20]`

Tools that sleep are run one after the other and all at once; the ratio says what the executor adds to the slowest.
Messages of several kinds are looked at for quick tools, as every turn is.
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Callable

from langchain_core.messages import ToolCall
from langchain_core.tools import tool
from rich.console import Console
from rich.table import Table

from services.platform.outgoing import OutgoingHttp
from services.tools.executor import ToolExecutor
from services.tools.quick import LONGEST_MESSAGE
from services.tools.registry import ToolRegistry
from services.tools.tool import RegisteredTool, ToolServices
from state.context import TurnContext

_MOST_RATIO = 1.5
"""How many times as long all tools at once may take as one."""
_MOST_LOOKING_MS = 1.0
_MESSAGES = {
    "a question that calls two": "今天北京天气怎么样，上海呢？",
    "another question": "推荐一部诺兰的电影，最好不要太长，我今晚想和朋友一起看。",
    "a statement": "My dog is called Bruno, and he does not like the weather in Paris.",
    "as long as is looked at": ("what is the weather like in a city of a land " * 9)[:LONGEST_MESSAGE],
    "and in Chinese": ("北京和上海、以及杭州今天" * 30)[:LONGEST_MESSAGE],
    "a long text": "He asked what time it is. " * 200,
}


async def _together(executor: ToolExecutor, calls: list[ToolCall]) -> float:
    begun = time.perf_counter()
    await executor.run(calls, TurnContext(), lambda *_: None)
    return time.perf_counter() - begun


async def measure_running(tools: int, seconds: float, rounds: int) -> tuple[float, float]:
    """Seconds of one tool alone, and of all of them at once: the median over the rounds."""

    @tool
    async def sleeps() -> str:
        """Sleep."""
        await asyncio.sleep(seconds)
        return "slept"

    executor = ToolExecutor(ToolRegistry([RegisteredTool(sleeps)]))
    calls = [ToolCall(name="sleeps", args={}, id=str(number)) for number in range(tools)]
    alone = [await _together(executor, calls[:1]) for _ in range(rounds)]
    together = [await _together(executor, calls) for _ in range(rounds)]
    return statistics.median(alone), statistics.median(together)


def measure_looking(look: Callable[[str], object], message: str) -> float:
    """Milliseconds: the median of 200."""
    look(message)
    taken = []
    for _ in range(200):
        begun = time.perf_counter()
        look(message)
        taken.append((time.perf_counter() - begun) * 1000)
    return statistics.median(taken)


def main() -> int:
    """Measure and show; 1 when a limit is not kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=20)
    asked = parser.parse_args()
    alone, together = asyncio.run(measure_running(asked.tools, asked.seconds, asked.rounds))
    ratio = together / alone
    table = Table("", "", title=f"{asked.tools} tools of {asked.seconds * 1000:g} ms")
    table.add_row("one alone", f"{alone * 1000:.1f} ms")
    table.add_row("all at once", f"{together * 1000:.1f} ms")
    table.add_row(f"ratio, at most {_MOST_RATIO:g}", f"{ratio:.3f}")
    registry = ToolRegistry.of_builtin_tools(ToolServices(http=OutgoingHttp(), weather_url="http://127.0.0.1:9"))
    looked = {name: measure_looking(registry.quick_calls, message) for name, message in _MESSAGES.items()}
    looking = Table("looking for quick tools", f"at most {_MOST_LOOKING_MS:g} ms")
    for name, milliseconds in looked.items():
        looking.add_row(name, f"{milliseconds:.3f} ms")
    Console().print(table, looking)
    return int(ratio > _MOST_RATIO or max(looked.values()) > _MOST_LOOKING_MS)


if __name__ == "__main__":
    raise SystemExit(main())
