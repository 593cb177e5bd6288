"""Decides who may see what is meant for operators, even while keys cannot be checked."""

import math
import time
from hashlib import sha256

from services.errors import CallerError, Unavailable
from services.identity.authentication import Authenticator
from services.identity.tenants import DEFAULT_TENANT
from services.platform.patience import Probes

_WITHIN_S = 1.0
_REMEMBERED_S = 3600.0


class Operators:
    """Recognises admins of the default tenant.

    An admin of the last hour still counts while keys cannot be checked: otherwise nobody could see the state of
    the service just when its database is away. This process keeps only digests of the keys.
    """

    def __init__(self, authenticator: Authenticator, probes: Probes) -> None:
        self._authenticator = authenticator
        self._probes = probes
        self._seen: dict[bytes, float] = {}

    async def include(self, authorization: str | None) -> bool:
        """Return, within a second, whether the sender of this header is an operator. Raises `Unavailable` if
        the key cannot be checked now, and was not an operator's in the last hour."""
        digest = sha256((authorization or "").encode()).digest()
        try:
            caller = await self._probes.ask(
                f"key {digest.hex()}", lambda: self._authenticator.caller_of(authorization), within_s=_WITHIN_S
            )
        except CallerError:
            self._seen.pop(digest, None)
            return False
        except (Unavailable, TimeoutError) as error:
            if time.monotonic() - self._seen.get(digest, -math.inf) < _REMEMBERED_S:
                return True
            raise Unavailable("The key cannot be checked now; try again in a moment.") from error
        is_one = caller.tenant_id == DEFAULT_TENANT and "admin" in caller.scopes
        if is_one:
            self._seen[digest] = time.monotonic()
        else:
            self._seen.pop(digest, None)
        return is_one
