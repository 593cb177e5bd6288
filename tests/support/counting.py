"""Coverage that is measured where it adds lines.

On Python 3.11 tracing costs a third of a test's processor time. Whole dialogues, browsers, attacks and generated
inputs run what narrower tests have reached line by line, so tracing pauses for them, with their fixtures; the
threads that they start are not traced either. What is imported when tests are collected is the same in every
process of tests: the first one traces it for all.
"""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

FOLDERS = frozenset(
    {"benchmarks", "chaos", "client", "console", "deploy", "docs", "golden", "packaging", "redteam", "scenarios"}
)
"""Folders below `tests/` for whose tests coverage pauses."""
FILES = frozenset(
    (
        "api/openai/test_client_sequences.py",
        "api/openai/test_open_webui.py",
        "api/test_authentication.py",
        "api/test_bad_requests.py",
        "api/test_cli_usage.py",
        "api/test_conversations.py",
        "api/test_durable_chat.py",
        "api/test_episode_search.py",
        "api/test_experts.py",
        "api/test_frames.py",
        "api/test_long_conversation.py",
        "graph/test_studio.py",
        "graph/turns/test_runner.py",
        "nodes/test_generate.py",
        "services/compression/test_compression.py",
        "services/compression/test_scheduler.py",
        "services/conversations/test_leases.py",
        "services/conversations/test_turns.py",
        "services/erasure/test_erasure.py",
        "services/experiments/test_assignment.py",
        "services/experiments/test_statistics.py",
        "services/forgetting/test_caches.py",
        "services/forgetting/test_receipts.py",
        "services/jobs/test_queue.py",
        "services/knowledge/test_chunking.py",
        "services/lineage/test_lineage.py",
        "services/lineage/test_origins.py",
        "services/llm/test_chat_models.py",
        "services/llm/test_complete.py",
        "services/llm/test_embeddings.py",
        "services/llm/test_lean_openai_equality.py",
        "services/llm/test_lean_openai_streams.py",
        "services/llm/test_structured_output.py",
        "services/llm/test_token_estimates.py",
        "services/maintenance/test_fading.py",
        "services/maintenance/test_pins.py",
        "services/memory/episodes/test_index.py",
        "services/memory/episodes/test_index_faults.py",
        "services/memory/episodes/test_index_races.py",
        "services/memory/test_as_of.py",
        "services/memory/test_cache.py",
        "services/memory/test_merge.py",
        "services/memory/test_shared_human.py",
        "services/memory/test_small_stores.py",
        "services/platform/test_embedded_engines.py",
        "services/platform/test_isolation.py",
        "services/platform/test_pooler.py",
        "services/platform/test_redis_installations.py",
        "services/summaries/test_daily_scheduler.py",
        "services/summaries/test_killed_worker.py",
        "services/summaries/test_rolling_summaries.py",
        "services/summaries/test_topics.py",
        "services/summaries/test_topics_answers.py",
        "services/text/test_dictionary.py",
        "services/time_reference/test_parse.py",
        "services/tools/test_archival_memory.py",
        "services/tools/test_core_memory_update.py",
        "services/tools/test_search_chat_history.py",
    )
)
"""Files whose tests take long for the few lines that no other test reaches."""


class CoveragePauses:
    """A plugin of pytest that stops and starts the coverage of this process; without coverage it does nothing."""

    def __init__(self) -> None:
        """Trace until something else is wanted."""
        self._coverage: Any = None
        self._counting = True
        self._counted: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self, session: pytest.Session) -> Generator[None, object, object]:
        """Collect in one process with coverage, and in the others without."""
        if session.config.pluginmanager.hasplugin("_cov"):
            from coverage import Coverage

            self._coverage = Coverage.current()
        worker = getattr(session.config, "workerinput", {}).get("workerid", "gw0")
        self._count(worker == "gw0")
        return (yield)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Choose the tests whose lines are counted; of the cases of one that starts something, the first."""
        functions = set()
        for item in items:
            function, _, case = item.nodeid.partition("[")
            again = case and function in functions and not item.get_closest_marker("unit")
            functions.add(function)
            if not again and _adds_lines(item):
                self._counted.add(item.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Count the lines of a test, or do not."""
        self._count(item.nodeid in self._counted)

    def _count(self, counting: bool) -> None:
        if self._coverage is not None and counting != self._counting:
            if counting:
                self._coverage.start()
            else:
                self._coverage.stop()
            self._counting = counting


def _adds_lines(item: pytest.Item) -> bool:
    path = item.path.relative_to(Path(__file__).parents[1])
    if path.parts[0] in FOLDERS or path.as_posix() in FILES or item.get_closest_marker("slow"):
        return False
    return not hasattr(getattr(item, "function", None), "hypothesis")
