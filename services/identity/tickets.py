"""Tickets: valid for half a minute and one use, in place of a credential that a browser cannot send.

A page cannot set the header `Authorization` of a WebSocket. The ticket contains the key to the credential, and
Redis the encrypted credential: neither is useful without the other."""

from uuid import uuid4

from cryptography.fernet import Fernet, InvalidToken
from redis.exceptions import RedisError

from services.errors import Unauthenticated, Unavailable
from services.platform.redis import RedisClient

TICKET_S = 30


class Tickets:
    """Issues and redeems tickets, over all processes that share a Redis."""

    def __init__(self, cache: RedisClient) -> None:
        self._cache = cache

    async def issue(self, authorization: str) -> str:
        """A ticket for the sender of this header.

        Raises:
            Unavailable: it cannot be kept.
        """
        number, key = uuid4().hex, Fernet.generate_key()
        try:
            await self._cache.set(_name(number), Fernet(key).encrypt(authorization.encode()).decode(), ex=TICKET_S)
        except (RedisError, OSError) as error:
            raise Unavailable("No ticket can be kept now, as Redis does not answer; try again.") from error
        return f"{number}.{key.decode()}"

    async def redeem(self, ticket: str) -> str:
        """Return the header for which a ticket was issued, and invalidate the ticket.

        Raises:
            Unauthenticated: it was used, has expired, or never was one.
            Unavailable: it cannot be looked up.
        """
        number, _, key = ticket.partition(".")
        try:
            kept = str(await self._cache.getdel(_name(number)) or "")
        except (RedisError, OSError) as error:
            raise Unavailable(
                "The ticket cannot be looked up now, as Redis does not answer; try again."
            ) from error
        try:
            return Fernet(key).decrypt(kept.encode(), ttl=TICKET_S).decode()
        except (InvalidToken, ValueError) as error:
            raise Unauthenticated("The ticket was used or has expired; ask for another one.") from error


def _name(number: str) -> str:
    return f"ticket:{number}"
