from api.cli.top import read, rows

_EARLIER = """
# TYPE anamnesis_turns counter
anamnesis_turns_total{status="completed"} 10
# TYPE anamnesis_turns_running gauge
anamnesis_turns_running 2
# TYPE anamnesis_jobs_waiting gauge
anamnesis_jobs_waiting 7
# TYPE anamnesis_first_token_seconds histogram
anamnesis_first_token_seconds_bucket{le="0.1"} 5
anamnesis_first_token_seconds_bucket{le="0.5"} 9
anamnesis_first_token_seconds_bucket{le="+Inf"} 10
"""
_LATER = (
    _EARLIER.replace("} 10", "} 30").replace('le="0.5"} 9', 'le="0.5"} 29').replace('le="0.1"} 5', 'le="0.1"} 6')
)


def test_rates_are_those_of_all_processes_since_the_last_look() -> None:
    shown = list(rows(read([_LATER, _LATER], 12.0), read([_EARLIER, _EARLIER], 2.0)))
    assert ("turns completed", "4.0/s") in shown
    assert ("turns running", "4") in shown
    assert ("first token, 95th percentile", "≤ 0.5 s") in shown
