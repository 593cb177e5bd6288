"""Compare recall with its parts on a folder of sets: `python -m training.scorecard FOLDER ... [--json FILE]`.

For each set, and once more for those of its questions that name a time: the share of the evidence among the first
five and ten messages (recall) and in what a prompt would show, and how much of what is shown is evidence. Beside
it BM25, the encoder alone and the plain sum of both, each as a share of its best; by how much recall leads over
the best of these; the items that a prompt would show; and 95 % bootstrap intervals. The worst lead is said first,
and the rows begin with the worst. Sets are folders with
`conversations.jsonl` and `questions.jsonl`, or folders of such folders; `--learned` names those that weights were
learned from. Where a question names sessions as its evidence, a session is found with any of its messages.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from services.evaluation.dataset import Question, load
from services.evaluation.evaluation import fusion
from services.llm.builtin_embeddings import NAME
from services.memory.recall.working_set import WorkingSet
from services.search.queries import Heads, make_query
from services.search.ranking import kind_of, score
from services.search.selection import Floor
from services.search.units import Mask, Values
from services.text.tokenizer import terms
from training.asked_messages import said_then
from training.stores import encode, places_of, stores_of, working_set

_CUTS = (5, 10)
_FIRST, _DEPTH, _SHOWN = 10, 20, 8
_BASELINES = ("BM25", "encoder", "fusion")
_NAMES_TIME, _FEW = ", a time named", 10
_OF_IT, _ITEMS = "of it evidence", "items"
_HEADS = Heads.of(NAME)


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--learned", nargs="*", default=(), help="beginnings of names of sets learned from")
    given = parser.parse_args()
    found, rows = {}, list[tuple[list[float], str, str]]()
    for name, folder in _sets(given.folders):
        for part, figures in figures_of(folder).items():
            if part and len(figures["recall@10"]) < _FEW:
                continue
            intervals = {figure: _interval(values) for figure, values in figures.items()}
            lead = [
                intervals[f"recall@{cut}"][0] - max(intervals[f"{each}@{cut}"][0] for each in _BASELINES)
                for cut in _CUTS
            ]
            found[name + part] = {**intervals, "lead": lead}
            learned = any(name.startswith(each) for each in given.learned)
            cells = [f"{mean:.3f} ±{half:.3f}" for mean, half in (intervals[f"recall@{cut}"] for cut in _CUTS)]
            cells += [", ".join(f"{intervals[f'{each}@{cut}'][0]:.3f}" for cut in _CUTS) for each in _BASELINES]
            cells += [", ".join(f"{each:+.3f}" for each in lead)]
            cells += [f"{intervals[each][0]:.3f}" if each in intervals else "–" for each in ("shown", _OF_IT)]
            cells.append(f"{intervals[_ITEMS][0]:.1f}" if _ITEMS in intervals else "–")
            cells = [name + part, "yes" if learned else "no", str(len(figures["recall@10"])), *cells]
            rows.append((lead, name + part, f"| {' | '.join(cells)} |"))
    for at, cut in enumerate(_CUTS):
        worst, where = min((lead[at], each) for lead, each, _ in rows)
        print(f"worst margin over fusion, BM25 and encoder @{cut}: {worst:+.3f} ({where})")  # noqa: T201
    titles = ("set", "learned from", "n", "recall@5", "recall@10", *(f"{each}@5, @10" for each in _BASELINES))
    titles = (*titles, "lead@5, @10", "shown", _OF_IT, _ITEMS)
    print(f"\n| {' | '.join(titles)} |\n{'| --- ' * len(titles)}|")  # noqa: T201
    for _, _, row in sorted(rows, key=lambda each: min(each[0])):
        print(row)  # noqa: T201
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _sets(folders: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    for folder in folders:
        for file in sorted(folder.rglob("questions.jsonl")):
            yield str(file.parent.relative_to(folder.parent)), file.parent


def figures_of(folder: Path) -> Mapping[str, Mapping[str, list[float]]]:
    """Return the figures of each question of a set, and those of its questions that name a time."""
    dataset = load(folder)
    stores = stores_of(dataset)
    units = {user: working_set(messages) for user, messages in stores.items()}
    at_places = {user: dict(zip(places_of(messages), messages, strict=True)) for user, messages in stores.items()}
    figures: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for question in dataset.questions:
        said = at_places[question.user]
        evidence = question.sessions or question.evidence & {each.id for each in said.values()}
        if not evidence:
            continue
        found, names_time = _answers(question, units[question.user])
        for part in ("", _NAMES_TIME)[: 1 + names_time]:
            for name, ordered in found.items():
                of = [said[at].conversation if question.sessions else said[at].id for at in ordered]
                if name == "shown":
                    figures[part][name].append(len(evidence & set(of)) / len(evidence))
                    figures[part][_ITEMS].append(len(of))
                    if of:
                        figures[part][_OF_IT].append(sum(each in evidence for each in of) / len(of))
                    continue
                for cut in _CUTS:
                    figures[part][f"{name}@{cut}"].append(len(evidence & set(of[:cut])) / len(evidence))
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
    total = fusion(words, np.nan_to_num(meaning, nan=-1.0), mask)
    states = ~units.overview().states_nothing[ours.places[:_DEPTH]]
    likely, speaks = ours.probability[:_DEPTH][states], ours.spoken_for[:_DEPTH][states]
    floor, best = Floor.of(query, kind=kind_of(vectors, _HEADS)), float(likely.max(initial=0.0))
    admitted = list[int]()
    for at, each in enumerate(likely):
        if each >= floor.of_each(best, len(admitted)) and (speaks[at] or each >= best):
            admitted.append(at)
    return {
        "recall": ours.places[:_FIRST].tolist(),
        "BM25": by_words[:_FIRST].tolist(),
        "encoder": by_meaning[:_FIRST].tolist(),
        "fusion": _order(total, mask)[:_FIRST].tolist(),
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
