"""What is doubtful about a start that goes on nevertheless, in the log."""

import structlog

from services.bootstrap import Services
from services.errors import Unavailable
from services.platform import redis
from services.platform.machine_zone import zone_doubt

log = structlog.get_logger(__name__)


async def warn_of_surroundings(services: Services) -> None:
    """Say if a configured Redis does not answer, and if the time zone of new users is not the machine's."""
    settings = services.settings
    if settings.redis_url is not None:
        try:
            await redis.ping(services.redis)
        except Unavailable as error:
            log.warning("Redis does not answer; check ANAMNESIS_REDIS_URL", reason=error.message)
    if "default_timezone" not in settings.model_fields_set and (doubt := zone_doubt()):
        log.warning(f"{doubt}; set ANAMNESIS_DEFAULT_TIMEZONE if that is wrong")
