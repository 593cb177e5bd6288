"""Compare recall with its parts on a folder of sets: `python -m training.scorecard FOLDER ... [--json FILE]`.

For each set, and once more for those of its questions that name a time: the share of the evidence among the first
ten messages (recall) and in what a prompt would show, and how much of what is shown is evidence. Beside it BM25,
the encoder alone and reciprocal rank fusion, with 95 % bootstrap intervals. Sets are folders with
`conversations.jsonl` and `questions.jsonl`, or folders of such folders.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from services.evaluation.dataset import Question, load
from services.llm.builtin_embeddings import NAME
from services.memory.recall.working_set import WorkingSet
from services.search.queries import Heads, make_query
from services.search.ranking import kind_of, score
from services.search.selection import Floor
from services.search.units import Mask, Values
from services.text.tokenizer import terms
from training.recall_weights import encode, said_then, stores_of, working_set

_FIRST, _DEPTH, _SHOWN, _RRF = 10, 20, 8, 60
_NAMES_TIME, _FEW = ", a time named", 10
_HEADS = Heads.of(NAME)


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found = {}
    print("| set | n | recall@10 | BM25 | encoder | rank fusion | shown | of it evidence |")  # noqa: T201
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")  # noqa: T201
    for name, folder in _sets(given.folders):
        for part, figures in _figures(folder).items():
            if part and len(figures["recall"]) < _FEW:
                continue
            found[name + part] = {figure: _interval(values) for figure, values in figures.items()}
            cells = [f"{mean:.3f} ±{half:.3f}" for mean, half in found[name + part].values()]
            row = f"{name}{part} | {len(figures['recall'])} | {' | '.join(cells)}"
            print(f"| {row} |", flush=True)  # noqa: T201
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _sets(folders: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    for folder in folders:
        for file in sorted(folder.rglob("questions.jsonl")):
            yield str(file.parent.relative_to(folder.parent)), file.parent


def _figures(folder: Path) -> Mapping[str, Mapping[str, list[float]]]:
    """Return the figures of each question of a set, and those of its questions that name a time."""
    dataset = load(folder)
    stores = stores_of(dataset)
    units = {user: working_set(messages) for user, messages in stores.items()}
    places = {(user, said.id): at for user, messages in stores.items() for at, said in enumerate(messages)}
    figures: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for question in dataset.questions:
        evidence = {places[question.user, each] for each in question.evidence if (question.user, each) in places}
        if not evidence:
            continue
        found, names_time = _answers(question, units[question.user])
        for part in ("", _NAMES_TIME)[: 1 + names_time]:
            for name, places_found in found.items():
                figures[part][name].append(len(evidence & set(places_found)) / len(evidence))
            if shown := found.get("shown"):
                figures[part]["of it evidence"].append(len(evidence & set(shown)) / len(shown))
    return figures


def _answers(question: Question, units: WorkingSet) -> tuple[dict[str, list[int]], bool]:
    """Return what each way finds, and whether the question names a time."""
    query = make_query(question.text, question.said, speaker=question.speaker)
    if query is None:
        return {}, False
    mask = units.within(until=question.until)
    vectors = query.vectors(encode(list(query.embedded)))
    then = said_then(units, query, question.text, question.asked_at.date())
    ours = score(query, vectors, units, mask, _HEADS, then=then)
    [words], _ = units.by_words([terms(query.text)], mask)
    [meaning] = units.by_meaning(np.asarray(vectors[:1], dtype=np.float32))
    by_words, by_meaning = _order(words, mask), _order(meaning, mask)
    fused = np.zeros(len(mask))
    for order in (by_words, by_meaning):
        fused[order] += 1 / (_RRF + np.arange(1, len(order) + 1))
    states = ~units.overview().states_nothing[ours.places[:_DEPTH]]
    likely = ours.probability[:_DEPTH][states]
    floor = Floor.of(query, kind=kind_of(vectors, _HEADS))
    admitted = likely >= floor.of_each(float(likely.max(initial=0.0)))
    return {
        "recall": ours.places[:_FIRST].tolist(),
        "BM25": by_words[:_FIRST].tolist(),
        "encoder": by_meaning[:_FIRST].tolist(),
        "rank fusion": _order(fused, mask)[:_FIRST].tolist(),
        "shown": ours.places[:_DEPTH][states][admitted][:_SHOWN].tolist(),
    }, then is not None


def _order(values: Values, mask: Mask) -> "np.ndarray[tuple[int], np.dtype[np.intp]]":
    places = mask.nonzero()[0][::-1]
    return places[np.argsort(-values[places], kind="stable")]


def _interval(values: Sequence[float]) -> tuple[float, float]:
    """The mean and half of its 95 % bootstrap interval."""
    found = np.asarray(values)
    chance = np.random.default_rng(1)
    means = found[chance.integers(0, len(found), (1_000, len(found)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return round(float(found.mean()), 4), round(float(high - low) / 2, 4)


if __name__ == "__main__":
    main()
