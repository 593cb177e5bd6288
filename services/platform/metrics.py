"""Metrics for Prometheus. Labels are from fixed sets; no id is ever a label."""

import os

from prometheus_client import CONTENT_TYPE_LATEST as PLAIN
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.openmetrics import exposition as openmetrics

from services.platform.tracing import TracedHistogram

SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable of the client library: folder in which the processes of one service keep their metrics."""

_OPENMETRICS = "application/openmetrics-text"

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

TURNS = Counter("anamnesis_turns_total", "Turns that ended, by outcome.", ["status"])
UTILITY_REQUESTS = Counter(
    "anamnesis_utility_requests_total",
    "Requests of clients for titles, tags and the like, by what they were recognised by: header or template.",
    ["by"],
)
TURN_ERRORS = Counter("anamnesis_turn_errors_total", "Turns that ended with an error, by its code.", ["code"])
TURNS_REFUSED = Counter(
    "anamnesis_turns_refused_total",
    "Requests for turns that were refused before a turn was, by the code of the answer.",
    ["reason"],
)
TURNS_RUN_AGAIN = Counter(
    "anamnesis_turns_run_again_total", "Turns whose process was gone before any text, and that were run again."
)
TURNS_RUNNING = Gauge(
    "anamnesis_turns_running", "Turns that are running in this process.", multiprocess_mode="livesum"
)
FEEDBACK = Counter("anamnesis_feedback_total", "Ratings of answers, those that changed included.", ["rating"])
EXPERIMENT_TURNS = Counter(
    "anamnesis_experiment_turns_total",
    "Turns that ended, by experiment, variant and outcome.",
    ["experiment", "variant", "status"],
)
EXPERIMENT_FIRST_TOKEN_SECONDS = TracedHistogram(
    "anamnesis_experiment_first_token_seconds",
    "From the request to the first token of its answer, by experiment and variant.",
    ["experiment", "variant"],
    buckets=_SECONDS,
)
EXPERIMENT_FEEDBACK = Counter(
    "anamnesis_experiment_feedback_total",
    "Ratings of answers, by experiment and variant.",
    ["experiment", "variant", "rating"],
)
DEGRADED = Counter("anamnesis_degraded_total", "Turns that went without something, by what it was.", ["source"])
FIRST_TOKEN_SECONDS = TracedHistogram(
    "anamnesis_first_token_seconds", "From the request to the first token of its answer.", buckets=_SECONDS
)
NODE_SECONDS = TracedHistogram("anamnesis_node_seconds", "Time in each node.", ["node"], buckets=_SECONDS)
LLM_TOKENS = Counter("anamnesis_llm_tokens_total", "Tokens as the provider reports them.", ["kind"])
GEN_AI_SECONDS = TracedHistogram(
    "gen_ai_client_operation_duration_seconds",
    "Calls of language models, by OpenTelemetry's names; error_type is empty for those that succeeded.",
    ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "error_type"],
    buckets=(0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92),
)
GEN_AI_TOKENS = Histogram(
    "gen_ai_client_token_usage",
    "Tokens of calls of language models as the endpoint reports them, by OpenTelemetry's names.",
    ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "gen_ai_token_type"],
    buckets=tuple(4**power for power in range(11)),
)
SUMMARIES = Counter("anamnesis_summaries_total", "Rolling summaries: full, increment, or given up.", ["kind"])
TOPICS = Counter("anamnesis_topics_total", "Topics archived, and archivings given up.", ["kind"])
VISIT_SUMMARIES = Counter(
    "anamnesis_visit_summaries_total", "Summaries of visits and of days, and those given up.", ["kind"]
)

UNITS_INDEXED = Counter("anamnesis_units_indexed_total", "Units of episodes that were put into the index.")
WORKING_SET_BYTES = Gauge(
    "anamnesis_working_set_bytes",
    "Bytes of the working sets of memory in this process.",
    multiprocess_mode="livesum",
)
WORKING_SETS_LOADED = Counter("anamnesis_working_sets_loaded_total", "Working sets that were read as a whole.")
RECALLS_SKIPPED = Counter(
    "anamnesis_recalls_skipped_total", "Turns that were answered without recall, by what was broken.", ["reason"]
)
RECALL_SECONDS = TracedHistogram("anamnesis_recall_seconds", "Time in recall.", buckets=_SECONDS)
RECALLED = Counter("anamnesis_recalled_total", "Units that were recalled into prompts.")

MEMORY_FILINGS = Counter(
    "anamnesis_memory_filings_total",
    "Times that what a user had said was filed, by what decided: the model, or that nothing was said.",
    ["by"],
)
MEMORY_FILING_OPERATIONS = Counter(
    "anamnesis_memory_filing_operations_total",
    "What the model wanted filed: add, replace, end, leave_out; asked of the user, dropped or refused.",
    ["type"],
)

JOB_SECONDS = Histogram(
    "anamnesis_job_seconds",
    "Tries of background jobs, by task and outcome: succeeded, failed, postponed or cancelled.",
    ["task", "outcome"],
    buckets=(*_SECONDS, 120, 300, 600),
)

# Set when metrics are asked for.
DEPENDENCY_UP = Gauge(
    "anamnesis_dependency_up",
    "Whether what the service uses is well: 1 = it is, or was not needed yet; 0 = it is away, refuses or fails.",
    ["name"],
    multiprocess_mode="livemostrecent",
)

INDEX_WAITS_SECONDS = Gauge(
    "anamnesis_index_waits_seconds",
    "Time for which the episode that waits longest for the index was seen waiting.",
    multiprocess_mode="livemostrecent",
)
UPKEEP_OVERDUE_USERS = Gauge(
    "anamnesis_upkeep_overdue_users",
    "Users with changes of two days ago or more through which no night's upkeep has gone.",
    multiprocess_mode="livemostrecent",
)
BACKUP_AGE_SECONDS = Gauge(
    "anamnesis_backup_age_seconds",
    "Time since the last backup that was made with this data folder.",
    multiprocess_mode="livemostrecent",
)

# Describe the whole queue; set when metrics are asked for.
JOBS_WAITING = Gauge(
    "anamnesis_jobs_waiting",
    "Background jobs that wait, those for their next try included.",
    multiprocess_mode="livemostrecent",
)
JOBS_RUNNING = Gauge("anamnesis_jobs_running", "Background jobs that run.", multiprocess_mode="livemostrecent")
JOBS_FAILED = Gauge(
    "anamnesis_jobs_failed",
    "Background jobs that failed for good and are still kept.",
    multiprocess_mode="livemostrecent",
)
JOBS_OLDEST_SECONDS = Gauge(
    "anamnesis_jobs_oldest_waiting_seconds",
    "Age of the oldest job that could run.",
    multiprocess_mode="livemostrecent",
)


def exposition(accepted: str) -> tuple[bytes, str]:
    """Return the metrics of this process, or of all processes that serve one port, and their media type.

    Args:
        accepted: `Accept` header of the request. OpenMetrics, the only format with exemplars, is sent if it is
            named.
    """
    shown = REGISTRY
    if SHARED_FOLDER in os.environ:
        shown = CollectorRegistry()
        MultiProcessCollector(shown)  # type: ignore[no-untyped-call]
    if _OPENMETRICS in accepted.lower():
        shown_as: bytes = openmetrics.generate_latest(shown)  # type: ignore[no-untyped-call]
        return shown_as, openmetrics.CONTENT_TYPE_LATEST
    return generate_latest(shown), PLAIN
