"""Whatever a model answers, and wherever a run is broken off: no source is lost, no swap is half done."""

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.platform.settings import Settings, load_settings
from tests.support.compression_faults import Tally, one_case
from tests.support.model_server import ModelServer

pytestmark = pytest.mark.anyio


@pytest.fixture
def settings(model_server: ModelServer) -> Settings:
    """Alike is here what has half of its words in common."""
    return load_settings(
        llm_model="scripted",
        llm_base_url=model_server.base_url,
        llm_api_key="secret-key",
        llm_timeout_s=5,
        memory_compression_similarity=0.5,
        memory_compression_cluster=2,
    )


@given(seed=st.integers(0, 2**31))
@hypothesis_settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], database=None
)
async def test_no_source_is_lost_and_undoing_brings_back_what_was(
    services: Services, model_server: ModelServer, seed: int
) -> None:
    tally = Tally()
    try:
        await one_case(services, model_server, seed, tally)
    finally:
        async with services.database.tenant(DEFAULT_TENANT) as connection:
            await connection.execute("DELETE FROM users")
    assert tally.wrong == []
