"""The numbers of the ranking, chosen together on dialogues and on unrelated remarks, Chinese and English."""

from dataclasses import dataclass
from typing import Literal

# Of BM25 in the index and in the ranking; from 0.4 to 0.75 recall hardly depends on the second. Milvus Lite uses
# its own (1.5, 0.75): it only chooses the units that are ranked.
BM25_K1 = 1.2
BM25_B = 0.6
SEARCH_DEPTH = 150
PREFERRED = 1.5
"""Times its score counts what was said in the time that a message refers to."""


@dataclass(frozen=True, slots=True)
class RankingParameters:
    """Weights are relative to the lexical leg, which has 1; the dense one has the embedding's quality.

    Attributes:
        fusion: Scores scaled to 0..1 within their list, or the ranks alone (`rrf_k`).
        window, visit: Weights of the terms of a message with its neighbours, and of a whole visit,
            where neighbours are about the same.
        window_dense: The neighbours' weight within the dense leg.
        association: Weight of what shares the distinctive terms of the best `seeds` units.
        coherent_at: Similarity of neighbours above chance from which they are trusted fully.
        pair_prior: Pairs of neighbours at which they are trusted by half.
        importance: How much the score grows from importance 0 to 1.
        age: How much of the score the oldest lose; the half-life is in days.
        duplicate_overlap: Share of common words from which two texts are duplicates.
        relevance: Weight of the share of the question that a unit meets, in the same words or in others.
        of_general_questions: How much less other words for the same count where how-tos and definitions are asked.
        by_assistant, only_asks, written, oneself, fitting, corrects: Factors for what the assistant said, for
            messages that state nothing, for memories that were written, for what users say of themselves where the
            question is about them, for texts with a value of the kind that is asked for, and for corrections.
        visit_gap_minutes: A longer pause between two units found in a conversation begins another visit;
            longer than the pause that ends a visit, because what lay between them may not have been found.
    """

    fusion: Literal["scores", "ranks"] = "scores"
    rrf_k: int = 10
    window: float = 0.8
    window_dense: float = 0.4
    visit: float = 0.8
    association: float = 0.15
    seeds: int = 3
    coherent_at: float = 0.06
    pair_prior: float = 15.0
    importance: float = 0.2
    age: float = 0.05
    half_life_days: float = 30.0
    age_floor: float = 0.5
    duplicate_overlap: float = 0.9
    visit_gap_minutes: float = 180.0
    relevance: float = 0.3
    of_general_questions: float = 0.4
    by_assistant: float = 0.5
    only_asks: float = 0.5
    written: float = 1.2
    oneself: float = 1.1
    fitting: float = 1.15
    corrects: float = 1.1
