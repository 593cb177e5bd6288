"""Prometheus evaluates every alert rule: its fault makes it fire in time, and it is silent while all is well."""

import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.test_observability import ALERTS, OBSERVABILITY, known_metrics

PROGRAM = shutil.which("promtool")
_ONE = 'instance="a:8000", job="anamnesis"'
_OF_PROMETHEUS = {"up": (), "process_resident_memory_bytes": ()}
_SELECTOR = re.compile(r"([a-z_]+)(?:\{([^}]*)\})?")


@dataclass(frozen=True)
class Fault:
    """Series that Prometheus reads every 15 seconds from the beginning of a fault, and what is told when."""

    series: dict[str, str]
    within: str
    labels: dict[str, str] = field(default_factory=dict)


_WHERE = {"instance": "a:8000", "job": "anamnesis"}
_DOWN = {"anamnesis_turns_total{status='completed'}": "100+0x9999"}

# Values as promtool writes them: `0+12x9999` = 12 more with every reading.
FAULTS = {
    "AnamnesisDown": Fault({"up": "0x9999"}, "3m", _WHERE),
    "AnamnesisTurnsFail": Fault(
        {
            "anamnesis_turns_total{status='failed'}": "0+1x9999",
            "anamnesis_turns_total{status='completed'}": "0+9x9999",
        },
        "7m",
    ),
    "AnamnesisFirstTokenSlow": Fault(
        {
            "anamnesis_first_token_seconds_bucket{le='5.0'}": "0+5x9999",
            "anamnesis_first_token_seconds_bucket{le='10.0'}": "0+10x9999",
            "anamnesis_first_token_seconds_bucket{le='+Inf'}": "0+10x9999",
        },
        "12m",
    ),
    "AnamnesisBusy": Fault({"anamnesis_turns_refused_total{reason='busy'}": "0+1x9999"}, "7m"),
    "AnamnesisJobsLate": Fault({"anamnesis_jobs_oldest_waiting_seconds": "301+15x9999"}, "12m"),
    "AnamnesisJobsFail": Fault({"anamnesis_jobs_failed": "1x9999"}, "17m"),
    "AnamnesisDegraded": Fault(
        {
            "anamnesis_degraded_total{source='redis'}": "0+3x9999",
            "anamnesis_degraded_total{source='request_budget'}": "0+9x9999",
        },
        "16m",
        {"source": "redis"},
    ),
    "AnamnesisRecallBroken": Fault({"anamnesis_recalls_skipped_total{reason='TimeoutError'}": "0+1x9999"}, "12m"),
    "AnamnesisMemoryFull": Fault(
        {"anamnesis_working_set_bytes": "900000000x9999", "process_resident_memory_bytes": "1000000000x9999"},
        "32m",
        _WHERE,
    ),
    "AnamnesisDatabaseAway": Fault(
        {"anamnesis_dependency_up{name='postgres'}": "0x9999", **_DOWN}, "2m", {"name": "postgres", **_WHERE}
    ),
    "AnamnesisRefused": Fault(
        {"anamnesis_turns_refused_total{reason='database_unavailable'}": "0+3x9999", **_DOWN},
        "3m",
        {"reason": "database_unavailable"},
    ),
    "AnamnesisRedisAway": Fault(
        {"anamnesis_dependency_up{name='redis'}": "0x9999"}, "3m", {"name": "redis", **_WHERE}
    ),
    "AnamnesisMilvusAway": Fault(
        {"anamnesis_dependency_up{name='milvus'}": "0x9999"}, "6m", {"name": "milvus", **_WHERE}
    ),
    "AnamnesisModelFails": Fault(
        {
            "anamnesis_turn_errors_total{code='llm_stream_broken'}": "0+2x9999",
            "anamnesis_turn_errors_total{code='llm_rate_limited'}": "0+2x9999",
            "anamnesis_turns_total{status='partial'}": "0+2x9999",
            "anamnesis_turns_total{status='failed'}": "0+2x9999",
            "anamnesis_turns_total{status='completed'}": "0+6x9999",
        },
        "3m",
    ),
    "AnamnesisIndexBehind": Fault({"anamnesis_index_waits_seconds": "1801+15x9999"}, "12m"),
    "AnamnesisUpkeepBehind": Fault({"anamnesis_upkeep_overdue_users": "3x9999"}, "25h"),
    "AnamnesisBackupOld": Fault({"anamnesis_backup_age_seconds": "172801+15x9999"}, "62m"),
}

WELL = {
    "up": "1x9999",
    "anamnesis_turns_total{status='completed'}": "0+99x9999",
    "anamnesis_turns_total{status='failed'}": "0+1x9999",
    "anamnesis_turn_errors_total{code='llm_timeout'}": "0+1x9999",
    "anamnesis_turn_errors_total{code='llm_parameter_refused'}": "0+60x9999",
    "anamnesis_turns_refused_total{reason='rate_limited'}": "0+9x9999",
    "anamnesis_first_token_seconds_bucket{le='5.0'}": "0+99x9999",
    "anamnesis_first_token_seconds_bucket{le='+Inf'}": "0+100x9999",
    "anamnesis_jobs_oldest_waiting_seconds": "20x9999",
    "anamnesis_jobs_failed": "0x9999",
    "anamnesis_working_set_bytes": "256000000x9999",
    "process_resident_memory_bytes": "510000000x9999",
    **{f"anamnesis_dependency_up{{name='{name}'}}": "1x9999" for name in ("postgres", "redis", "milvus")},
    "anamnesis_index_waits_seconds": "30x9999",
    "anamnesis_upkeep_overdue_users": "0x9999",
    "anamnesis_backup_age_seconds": "86400x9999",
}


def _inputs(series: dict[str, str]) -> list[dict[str, str]]:
    written = {
        f"{name.removesuffix('}')}, {_ONE}}}" if "{" in name else f"{name}{{{_ONE}}}": values
        for name, values in series.items()
    }
    return [{"series": name, "values": values} for name, values in written.items()]


def _fires(rule: dict[str, Any], fault: Fault) -> dict[str, Any]:
    told = {"exp_labels": {**fault.labels, **rule["labels"]}, "exp_annotations": rule["annotations"]}
    return {
        "name": rule["alert"],
        "interval": "15s",
        "input_series": _inputs(fault.series),
        "alert_rule_test": [
            {"eval_time": "0s", "alertname": rule["alert"], "exp_alerts": []},
            {"eval_time": fault.within, "alertname": rule["alert"], "exp_alerts": [told]},
        ],
    }


@pytest.mark.skipif(PROGRAM is None, reason="no promtool on this machine; install the system's package prometheus")
def test_each_alert_fires_within_its_time_and_none_while_all_is_well(tmp_path: Path) -> None:
    assert FAULTS.keys() == {rule["alert"] for rule in ALERTS}
    silent = [{"eval_time": "2h", "alertname": rule["alert"], "exp_alerts": []} for rule in ALERTS]
    tests = [_fires(rule, FAULTS[rule["alert"]]) for rule in ALERTS]
    tests.append({"name": "well", "interval": "15s", "input_series": _inputs(WELL), "alert_rule_test": silent})
    file = tmp_path / "faults.yaml"
    rules = [str(OBSERVABILITY / "alerts.yaml")]
    file.write_text(yaml.safe_dump({"rule_files": rules, "evaluation_interval": "1m", "tests": tests}))
    assert PROGRAM is not None
    done = subprocess.run([PROGRAM, "test", "rules", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_faults_are_series_that_the_service_writes() -> None:
    known = known_metrics() | _OF_PROMETHEUS
    for series in (WELL, *(fault.series for fault in FAULTS.values())):
        for written in series:
            name, labels = _SELECTOR.fullmatch(written).groups()  # type: ignore[union-attr]
            base = name.removesuffix("_bucket")
            assert base in known, written
            assert set(re.findall(r"(\w+)=", labels or "")) - {"le"} == set(known[base]), written
