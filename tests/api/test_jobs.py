"""The job queue over HTTP."""

from uuid import UUID

import httpx
import pytest

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.jobs.tasks import WORKER_LOST

pytestmark = pytest.mark.untraced

OTHER = UUID("0190a000-0000-7000-8000-0000000000aa")


async def _defer(services: Services, tenant_id: UUID = DEFAULT_TENANT) -> None:
    async with services.database.tenant(tenant_id) as connection:
        await services.jobs.defer(connection, "look", tenant_id=tenant_id, turn_id=OTHER)


async def _fail(services: Services, job_id: int) -> None:
    async with services.database.pool.connection() as connection:
        await connection.execute("UPDATE procrastinate_jobs SET status = 'failed' WHERE id = %s", [job_id])
    await services.jobs.records.count_failure(job_id, WORKER_LOST)


async def test_jobs_are_listed_by_status_in_pages(client: httpx.AsyncClient, services: Services) -> None:
    for _ in range(5):
        await _defer(services)
    everything = (await client.get("/api/v1/jobs")).json()["items"]
    ids = [job["id"] for job in everything]
    assert ids == sorted(ids, reverse=True)
    assert len(ids) == 5
    first = (await client.get("/api/v1/jobs", params={"limit": 3})).json()
    second = (await client.get("/api/v1/jobs", params={"limit": 3, "after": first["next"]})).json()
    assert [job["id"] for job in first["items"] + second["items"]] == ids
    assert second["next"] is None

    await _fail(services, ids[2])
    [failed] = (await client.get("/api/v1/jobs", params={"status": "failed"})).json()["items"]
    assert failed | {"created_at": "", "failed_at": ""} == {
        "id": ids[2],
        "task": "look",
        "status": "failed",
        "ids": {"turn_id": str(OTHER)},
        "failures": 1,
        "reason": WORKER_LOST,
        "failed_at": "",
        "not_before": None,
        "created_at": "",
    }
    assert len((await client.get("/api/v1/jobs", params={"status": "waiting"})).json()["items"]) == 4
    assert (await client.get("/api/v1/jobs", params={"status": "todo"})).status_code == 422


async def test_a_failed_job_is_retried_and_no_other(client: httpx.AsyncClient, services: Services) -> None:
    await _defer(services)
    [job] = (await client.get("/api/v1/jobs")).json()["items"]
    early = await client.post(f"/api/v1/jobs/{job['id']}/retry")
    assert (early.status_code, early.json()["code"]) == (409, "conflict")
    await _fail(services, job["id"])
    retried = await client.post(f"/api/v1/jobs/{job['id']}/retry")
    assert retried.status_code == 200
    assert (retried.json()["status"], retried.json()["failures"]) == ("waiting", 0)
    assert (await client.post("/api/v1/jobs/999999/retry")).status_code == 404
    assert (await client.post(f"/api/v1/jobs/{2**63}/retry")).status_code == 422


async def test_the_queue_is_measured_and_a_database_that_is_away_breaks_no_scrape(
    client: httpx.AsyncClient, services: Services
) -> None:
    await _defer(services)
    await _defer(services)
    [job, _] = (await client.get("/api/v1/jobs")).json()["items"]
    await _fail(services, job["id"])
    async with services.database.pool.connection() as connection:
        await connection.execute("UPDATE procrastinate_events SET at = now() - interval '90 s'")
    measured = _values((await client.get("/metrics")).text)
    assert measured["anamnesis_jobs_waiting"] == "1.0"
    assert measured["anamnesis_jobs_failed"] == "1.0"
    assert 90 <= float(measured["anamnesis_jobs_oldest_waiting_seconds"]) < 120

    ready = (await client.get("/readyz")).json()["dependencies"]
    [worker] = [found for found in ready if found["name"] == "worker"]
    assert "1 waiting (oldest 9" in worker["detail"]
    assert "1 failed" in worker["detail"]

    await services.database.close()
    away = await client.get("/metrics")
    assert away.status_code == 200
    assert _values(away.text)["anamnesis_jobs_waiting"] == "NaN"


def _values(text: str) -> dict[str, str]:
    lines = [line.split(" ") for line in text.splitlines() if line.startswith("anamnesis_jobs_")]
    return {line[0]: line[1] for line in lines}
