"""`anamnesis eval`: how well memory finds what answers a question."""

from pathlib import Path
from typing import Annotated, Any

import typer

from api.cli.shell import FAILED, AsJson, open_all_services, print_json, progress_bar, run
from services.platform.settings import Settings

_FIGURES = ("recall@5", "recall@10", "recall@20", "hit@10", "mrr")


def evaluate(
    folder: Annotated[Path, typer.Argument(help="Holds conversations.jsonl and questions.jsonl.")],
    as_json: AsJson = False,
) -> None:
    """Measure recall on a question set: import it into a temporary tenant, ask every question, print the figures.

    Recall is counted in messages shown: the share of a question's evidence among the first 5, 10 and 20. Evidence
    is messages or, where a question names none, sessions. Beside it BM25, the encoder and their plain sum. A call
    that an engine does not answer is repeated.
    Questions of the category `adversarial`, which ask for what was never said, are left out.

    Example: `anamnesis eval benchmarks/questions`
    """

    async def work(settings: Settings) -> dict[str, Any]:
        from services.evaluation import dataset, evaluation  # noqa: PLC0415 — half a second, for this command

        questions = dataset.load(folder)
        async with open_all_services(settings) as services:
            measured = evaluation.Evaluation(
                settings, services.database, services.jobs, services.memory, services.embedder
            )
            with progress_bar() as progress:
                bars: dict[str, Any] = {}

                def on_step(step: str, done: int, total: int) -> None:
                    if step not in bars:
                        bars[step] = progress.add_task(step, total=total)
                    progress.update(bars[step], completed=done)

                return evaluation.report_of(settings, questions, await measured.run(questions, on_step))

    report = run(work)
    if as_json:
        print_json(report)
    else:
        _show(report)
    if report["refused"]:
        raise typer.Exit(FAILED)


def _show(report: dict[str, Any]) -> None:
    typer.echo(
        f"{report['set']}: {report['messages']} messages, {report['questions']} questions "
        f"({report['questions_without_evidence']} more name no evidence), {report['embedding']}"
    )
    if report["systems"]:
        typer.echo(f"{'':<22}{'n':>5}" + "".join(f"{name:>10}" for name in _FIGURES))
    for system, categories in report["systems"].items():
        for category, figures in categories.items():
            name = system if category == "all" else f"  {category}"
            cells = "".join(_cell(figures[each]) for each in _FIGURES)
            typer.echo(f"{name[:21]:<22}{figures['questions']:>5}{cells}")
    if latency := report["recall_ms"]:
        typer.echo(f"recall took {latency['p50']} ms (median), {latency['p95']} ms (95th percentile)")


def _cell(figure: dict[str, float]) -> str:
    half = (figure["high"] - figure["low"]) / 2
    return f"{figure['mean']:.3f}±{half:.2f}".replace("0.", ".").rjust(10)
