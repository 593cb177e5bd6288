"""Nonsense of a model about ordinary messages changes no memory."""

from pathlib import Path

from benchmarks.ordinary_messages import Nonsense, changes_of, texts_in
from services.memory.reading.plain_forms import plain_forms

_FOLDER = Path(__file__).parents[2] / "benchmarks/data/everyday"
_MOST = 60


def test_nonsense_changes_nothing() -> None:
    texts = [text for _, text in texts_in(_FOLDER)]
    model = Nonsense(texts, seed=7)
    told = texts[:: len(texts) // _MOST]
    assert [text for text in told if plain_forms(text)] == []
    changed = {kind: changes_of(text, answer(text)) for text in told for kind, answer in model.kinds.items()}
    assert not any(changed.values())


def test_the_users_words_with_a_known_id_do() -> None:
    operation = '{"op": "replace", "id": "m2", "text": "works at Zephyr", "quote": "left Northbank"}'
    assert changes_of("I left Northbank, I work at Zephyr now.", f"[{operation}]") != []
