import pytest

from services.engines import Engines
from services.errors import ConfigurationError, DatabaseUnavailable
from services.platform.migrate import migrate, role_of


def test_a_missing_service_role_is_named(engines: Engines) -> None:
    assert engines.owner_url
    with pytest.raises(ConfigurationError, match="role nobody does not exist"):
        migrate(engines.owner_url, "nobody")


def test_an_address_where_nothing_answers_is_said() -> None:
    with pytest.raises(DatabaseUnavailable, match="ANAMNESIS_MIGRATION_DATABASE_URL: nothing listens"):
        migrate("postgresql://owner@127.0.0.1:1/nothing", "anamnesis")


@pytest.mark.parametrize(
    ("url", "role"),
    [("postgresql://anamnesis:pw@h:5432/d", "anamnesis"), ("postgresql://a.b@/d?host=/tmp", "a.b")],
)
def test_the_service_role_is_read_from_its_address(url: str, role: str) -> None:
    assert role_of(url) == role


def test_an_address_without_a_role_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="names no role"):
        role_of("postgresql://localhost/d")
