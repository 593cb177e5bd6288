"""Addresses of Redis: one server, a service behind Sentinels, or a cluster."""

from dataclasses import dataclass
from typing import Literal, Self
from urllib.parse import parse_qsl, unquote, urlsplit

Kind = Literal["server", "sentinel", "cluster"]

_KINDS: dict[str, Kind] = {
    f"{protocol}+{kind}": kind for protocol in ("redis", "rediss") for kind in ("sentinel", "cluster")
}
_PORTS = {"sentinel": 26379, "cluster": 6379}
_SENTINELS_OWN = "sentinel_"


@dataclass(frozen=True)
class RedisAddress:
    """An address, taken apart if the driver cannot read it itself."""

    url: str
    kind: Kind
    nodes: tuple[tuple[str, int], ...] = ()
    """Sentinels, or nodes of the cluster."""
    service: str = ""
    """Name of the service at the Sentinels."""
    options: str = ""
    """Address of a single server without host, for the driver: credentials, database and options."""
    sentinel_username: str | None = None
    sentinel_password: str | None = None

    @classmethod
    def parse(cls, url: str) -> Self:
        """Read an address.

        Besides those that the driver reads:
        `redis+sentinel://[user:password@]host[:26379][,host…]/service[/database]` and
        `redis+cluster://[user:password@]host[:6379][,host…]`, both also with `rediss` for TLS, and with the
        driver's options after `?`; `sentinel_username` and `sentinel_password` are the Sentinels' own.

        Raises:
            ValueError: it is none; says why, without the address, which may hold a password.
        """
        scheme, found, _ = url.partition("://")
        if found and scheme in {"redis", "rediss", "unix"}:
            return cls(url, "server")
        kind = _KINDS.get(scheme)
        if not found or kind is None:
            raise ValueError("not a redis://, rediss://, unix://, redis+sentinel:// or redis+cluster:// address")
        parts = urlsplit(url)
        credentials, _, hosts = parts.netloc.rpartition("@")
        nodes = tuple(_node(host, _PORTS[kind]) for host in hosts.split(","))
        service, _, database = parts.path.strip("/").partition("/")
        if kind == "cluster":
            service, database = "", service
            if database not in {"", "0"}:
                raise ValueError("a cluster has no databases but 0")
        elif not service:
            raise ValueError(
                "after the Sentinels comes the service's name, as in redis+sentinel://host:26379/mymaster"
            )
        if database and not database.isdigit():
            raise ValueError(f"{database!r} is not the number of a database")
        own = dict(parse_qsl(parts.query))
        options = "&".join(each for each in parts.query.split("&") if not each.startswith(_SENTINELS_OWN))
        return cls(
            url,
            kind,
            nodes,
            unquote(service),
            f"{scheme.partition('+')[0]}://{credentials}{'@' if credentials else ''}/{database}?{options}",
            own.get("sentinel_username"),
            own.get("sentinel_password"),
        )


def _node(text: str, default_port: int) -> tuple[str, int]:
    host, found, port = text.rpartition(":")
    if not found or text.endswith("]"):  # an IPv6 address without a port
        host, port = text, str(default_port)
    if not host or not port.isdigit() or not 0 < int(port) < 2**16:
        raise ValueError(f"{text!r} is not of the form host:port")
    return host.strip("[]"), int(port)
