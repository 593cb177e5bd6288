"""Cost of a long conversation: the tokens of its prompts, turn by turn, under each strategy of context.

`python -m benchmarks.long_conversation [--turns 200] [--seed N] [--scale 1.0] [--json FILE]`
`python -m benchmarks.long_conversation --long | --ttft [--json FILE]`

The service is a process; a stand-in for the language model, with its own tokenizer, records its prompts.
The strategy `window` has a budget that holds everything: it is what a service without memory would send.
`--long` compares a turn's own time in a conversation of 10,000 messages and in one of 20; `--ttft` compares
the time to the first token with summaries and without. Both alternate.
"""

import argparse
import json
import signal
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.conversation_play import STRATEGIES, Played, play
from benchmarks.conversation_times import Comparison, compare_lengths, compare_summaries
from benchmarks.rig import interrupt_once

_SHOWN = (1, 15, 50, 100, 150, 200)
_SAME_BUDGET_WINDOW = 5715
"""A window whose 70 % are the default budget of 4,000 tokens that the strategy `summary` has."""


@dataclass(frozen=True)
class Aim:
    """Something that is to hold; no `holds` = it is reported but not judged."""

    name: str
    measured: str
    holds: bool | None = None

    @property
    def verdict(self) -> str:
        """For the table."""
        return {True: "met", False: "MISSED", None: ""}[self.holds]


def aims_of(played: dict[str, Played], turns: int) -> list[Aim]:
    """Return the aims for the conversations that were played."""
    aims: list[Aim] = []
    everything = played["window"].prompts if "window" in played else []
    for name, one in played.items():
        aims += [
            Aim(
                f"{name}: prefix reused over turns 2 to {last}", f"{one.shared(last):.1%}", one.shared(last) >= 0.9
            )
            for last in (50, 200)
            if turns >= last
        ]
        aims.append(Aim(f"{name}: of a prompt's beginning kept in the next, turns 2 on", f"{one.kept(turns):.1%}"))
        if name == "window":
            continue
        if turns >= 200:
            aims += _growth(one)
        for turn in (50, 200):
            if everything and turns >= turn:
                saved = 1 - one.prompts[turn - 1] / everything[turn - 1]
                wanted = f"{name}: at turn {turn} at least 90 % fewer tokens than everything"
                aims.append(Aim(wanted, f"{saved:.1%} fewer", saved >= 0.9))
    return aims


def _growth(one: Played) -> list[Aim]:
    ratio = one.prompts[199] / one.prompts[14]
    aims = [Aim(f"{one.strategy}: turn 200 at most 1.3 of turn 15", f"{ratio:.2f}", ratio <= 1.3)]
    if one.first_archive is not None and one.first_archive < 199:
        after = one.first_archive + 1
        ratio = one.prompts[199] / one.prompts[after - 1]
        wanted = f"{one.strategy}: turn 200 at most 1.3 of turn {after}, the first behind an archive"
        aims.append(Aim(wanted, f"{ratio:.2f}", ratio <= 1.3))
        highest = max(one.prompts[150:]) / max(one.prompts[: one.first_archive])
        wanted = f"{one.strategy}: the most of turns 151 to 200, to the most up to the first archive"
        aims.append(Aim(wanted, f"{highest:.2f}"))
    return aims


def show_conversation(one: Played, console: Console) -> None:
    """Print the sections at some turns."""
    names = list(dict.fromkeys(name for sections in one.sections for name in sections))
    table = Table(title=f"{one.strategy}: tokens of the prompt")
    for heading in ("turn", *names, "estimated", "stand-in's count", "prefix"):
        table.add_column(heading, justify="right")
    for turn in (turn for turn in _SHOWN if turn <= len(one.sections)):
        sections, prefix = one.sections[turn - 1], one.prefixes[turn - 1]
        cells = [str(sections.get(name, "")) for name in names]
        share = f"{prefix['share']:.0%}" if prefix else ""
        table.add_row(str(turn), *cells, str(sum(sections.values())), str(one.prompts[turn - 1]), share)
    console.print(table)
    if one.unsettled or one.degraded:
        console.print(f"{one.unsettled} turns did not wait for work behind them; {one.degraded} were degraded")


def show_aims(aims: Sequence[Aim], console: Console) -> None:
    """Print what was asked and what was found."""
    table = Table("aim", "measured", "")
    for aim in aims:
        table.add_row(aim.name, aim.measured, aim.verdict)
    console.print(table)


def _conversations(options: argparse.Namespace, console: Console) -> dict[str, Any]:
    played: dict[str, Played] = {}
    for strategy in options.strategies:
        played[strategy] = play(strategy, options.turns, options.seed, options.topics_window, options.scale)
        show_conversation(played[strategy], console)
    aims = aims_of(played, options.turns)
    show_aims(aims, console)
    return {"aims": [asdict(aim) for aim in aims], "conversations": [asdict(one) for one in played.values()]}


def _comparison(comparison: Comparison, console: Console) -> dict[str, Any]:
    table = Table("", comparison.one, comparison.other, "ratio", "aim", "")
    for row in comparison.rows:
        aim = "" if row.most is None else f"<= {row.most}"
        verdict = "" if row.most is None else "met" if row.ratio <= row.most else "MISSED"
        table.add_row(row.name, f"{row.one:.2f}", f"{row.other:.2f}", f"{row.ratio:.3f}", aim, verdict)
    console.print(table)
    return {**asdict(comparison), "ratios": {row.name: row.ratio for row in comparison.rows}}


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.long_conversation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1.0, help="of the lengths of messages and answers")
    parser.add_argument("--strategies", nargs="+", choices=STRATEGIES, default=STRATEGIES)
    parser.add_argument("--topics-window", type=int, default=_SAME_BUDGET_WINDOW, help="the experts' window")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    parser.add_argument("--rounds", type=int, help="turns of each kind with --long and --ttft")
    times = parser.add_mutually_exclusive_group()
    times.add_argument("--long", action="store_true", help="a turn's own time at message 10,000")
    times.add_argument("--ttft", action="store_true", help="the first token with summaries and without")
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt_once)
    console = Console(width=120)
    try:
        if options.long:
            figures = _comparison(compare_lengths(options.rounds or 30, options.seed), console)
        elif options.ttft:
            figures = _comparison(compare_summaries(options.rounds or 100, options.seed), console)
        else:
            figures = _conversations(options, console)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
