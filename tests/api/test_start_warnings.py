"""What is doubtful about a start is said in its log."""

import pytest

from api.cli.working import warn_of_surroundings
from services.bootstrap import Services
from services.platform.settings import Settings, load_settings
from tests.support.ports import free_port


@pytest.fixture
def settings() -> Settings:
    """Without a model; nothing listens where Redis should be."""
    return load_settings(redis_url=f"redis://127.0.0.1:{free_port()}/0")


async def test_a_redis_that_is_away_is_named_with_its_setting(
    services: Services, capsys: pytest.CaptureFixture[str]
) -> None:
    await warn_of_surroundings(services)
    assert "Redis cannot be used; check ANAMNESIS_REDIS_URL" in "".join(capsys.readouterr())


async def test_a_zone_that_was_set_is_not_doubted(services: Services, capsys: pytest.CaptureFixture[str]) -> None:
    await warn_of_surroundings(services)
    assert "ANAMNESIS_DEFAULT_TIMEZONE" not in "".join(capsys.readouterr())
