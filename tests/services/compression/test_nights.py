"""Ninety nights with a model that fails one time in ten: nothing is lost, and memory does not grow without end."""

import pytest

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from tests.support.compression_nights import nights
from tests.support.model_server import ModelServer

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.soak]


async def test_ninety_nights_lose_nothing_and_merged_texts_do_not_pile_up(
    services: Services, model_server: ModelServer
) -> None:
    course, wrong = await nights(services, model_server, 90)
    assert wrong == []
    assert sum(night.failures for night in course) > 0
    last = course[-1]
    # Six subjects, of which fewer than four each wait, and what was said once.
    assert last.living <= 90 + 6 * 5
    assert last.consolidated <= 6
    assert (await services.lineage_audit.audit(DEFAULT_TENANT)).listed == []
