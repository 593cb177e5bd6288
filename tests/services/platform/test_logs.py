"""What a command configures for its process."""

import structlog
from structlog.testing import capture_logs

from services.platform.logs import configure_logs
from tests.support.logs import logs_as_before


def test_logs_of_later_tests_are_not_as_a_command_of_an_earlier_one_configured_them() -> None:
    log = structlog.get_logger("a module of the service")
    with logs_as_before():
        configure_logs("json", "error")
        log.error("seen")  # the first use, at which a logger keeps what is configured
    with capture_logs() as logs:
        log.info("seen again")
    assert [line["event"] for line in logs] == ["seen again"]
