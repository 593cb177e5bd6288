"""`anamnesis eval`: how well memory finds what answers a question."""

import asyncio
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from api.cli.shell import FAILED, WRONG_USE, AsJson, fail, quiet_settings, told
from services.engines import migrate_if_owner, open_engines
from services.errors import AnamnesisError, InvalidInput
from services.platform.settings import Settings

if TYPE_CHECKING:
    from services.evaluation.dataset import Dataset
    from services.evaluation.evaluation import Evaluated

_FIGURES = ("recall@5", "recall@10", "recall@20", "hit@10", "mrr")


def evaluate(
    folder: Annotated[Path, typer.Argument(help="Holds conversations.jsonl and questions.jsonl.")],
    leave_out: Annotated[
        list[str] | None, typer.Option(help="A category that does not count in `all`; may be repeated.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure recall on a question set: import it into a temporary tenant, ask every question, print the figures.

    Recall is counted in messages shown: the share of a question's evidence among the first 5, 10 and 20.
    Questions of the category `adversarial`, which ask for what was never said, do not count in `all`.

    Example: `anamnesis eval benchmarks/questions`
    """
    from services.evaluation.dataset import load  # noqa: PLC0415 — help needs none of it

    settings = quiet_settings()
    try:
        dataset = load(folder)
        found = asyncio.run(_evaluate(settings, dataset))
    except InvalidInput as error:
        fail(told(error), WRONG_USE)
    except AnamnesisError as error:
        fail(error.message)
    report = _report(settings, dataset, found, {"adversarial", *(leave_out or ())})
    if as_json:
        typer.echo(json.dumps(report, ensure_ascii=False))
    else:
        _show(report)
    if found.refused:
        raise typer.Exit(FAILED)


async def _evaluate(settings: Settings, dataset: "Dataset") -> "Evaluated":
    from services.bootstrap import open_services  # noqa: PLC0415
    from services.evaluation.evaluation import Evaluation  # noqa: PLC0415
    from services.identity.tenants import Tenants  # noqa: PLC0415
    from services.transfer.wiring import make_importer  # noqa: PLC0415

    async with open_engines(settings) as engines:
        await migrate_if_owner(engines)
        async with open_services(settings, engines) as services:
            # The set must not be summarised.
            quiet = settings.model_copy(update={"memory_summaries": False, "memory_topics": False})
            importer = make_importer(quiet, services.database, services.jobs)
            evaluation = Evaluation(Tenants(services.database), importer, services.memory, services.embedder)
            with _progress() as progress:
                bars: dict[str, Any] = {}

                def on_step(step: str, done: int, total: int) -> None:
                    if step not in bars:
                        bars[step] = progress.add_task(step, total=total)
                    progress.update(bars[step], completed=done)

                return await evaluation.run(dataset, on_step)


def _report(settings: Settings, dataset: "Dataset", found: "Evaluated", left_out: set[str]) -> dict[str, Any]:
    from services.evaluation.metrics import figure, summarise  # noqa: PLC0415

    systems: dict[str, Any] = {}
    for system, scores in found.scores.items():
        if scores:
            categories = sorted({each.category for each in scores})
            counted = [each for each in scores if each.category not in left_out]
            groups = {
                "all": counted or scores,
                **{name: [s for s in scores if s.category == name] for name in categories},
            }
            systems[system] = {
                name: {
                    "questions": len(group),
                    **{key: asdict(value) for key, value in summarise(group).items()},
                }
                for name, group in groups.items()
            }
    ordered = sorted(found.milliseconds)
    return {
        "set": dataset.name,
        "embedding": settings.embedding_model or "built-in sentence encoder",
        "messages": found.messages,
        "refused": found.refused,
        "questions": len(dataset.questions),
        "questions_without_evidence": dataset.skipped,
        "systems": systems,
        "of_the_named_day": asdict(figure(found.of_the_day)) if found.of_the_day else None,
        "recall_ms": {
            "p50": round(ordered[len(ordered) // 2], 1),
            "p95": round(ordered[int(len(ordered) * 0.95)], 1),
        }
        if ordered
        else None,
    }


def _show(report: dict[str, Any]) -> None:
    typer.echo(
        f"{report['set']}: {report['messages']} messages, {report['questions']} questions "
        f"({report['questions_without_evidence']} more name no evidence), {report['embedding']}"
    )
    if report["systems"]:
        typer.echo(f"{'':<22}{'n':>5}" + "".join(f"{name:>10}" for name in _FIGURES))
    for system, categories in report["systems"].items():
        for category, figures in categories.items():
            if category == "all" or system == "recall":
                name = system if category == "all" else f"  {category}"
                cells = "".join(_cell(figures[each]) for each in _FIGURES)
                typer.echo(f"{name[:21]:<22}{figures['questions']:>5}{cells}")
    if day := report["of_the_named_day"]:
        typer.echo(f"of the first 10 messages, of the day that the question names: {day['mean']:.3f}")
    if latency := report["recall_ms"]:
        typer.echo(f"recall took {latency['p50']} ms (median), {latency['p95']} ms (95th percentile)")


def _cell(figure: dict[str, float]) -> str:
    half = (figure["high"] - figure["low"]) / 2
    return f"{figure['mean']:.3f}±{half:.2f}".replace("0.", ".").rjust(10)


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True))
