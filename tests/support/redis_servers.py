"""Redis as larger installations run it: with TLS, behind Sentinels, as a cluster."""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from redis import Redis

from services.conversations.event_log import EventLog
from services.errors import RateLimited, Unauthenticated
from services.identity.authentication import Tickets
from services.identity.rate_limits import RateLimits
from services.identity.tenants import DEFAULT_TENANT
from services.platform import redis
from services.platform.patience import CircuitBreaker
from services.platform.redis import RedisClient
from services.platform.settings import load_settings
from state.events import TurnEvent
from tests.support.folders import new_folder
from tests.support.ports import free_port, wait_for_port

PROGRAM = shutil.which("redis-server")
SLOTS = 16384
_SENTINELS = 3
_NODES = 3
_EVENTS = [TurnEvent(1, "turn", {}), TurnEvent(2, "token", "Hello")]


@dataclass
class RedisServer:
    """One process."""

    port: int
    process: subprocess.Popen[bytes]

    def client(self) -> Redis:
        """Return a client of this process only."""
        return Redis(port=self.port, decode_responses=True)

    def replication(self) -> dict[str, Any]:
        """Return what it reports about its role."""
        with self.client() as client:
            state: Any = client.info("replication")
        return dict(state)

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()


@contextmanager
def redis_process(folder: Path, *options: str, port: int | None = None) -> Iterator[RedisServer]:
    """Run one server; it ends with the block."""
    assert PROGRAM is not None
    port = port or free_port()
    plain = [] if "--tls-port" in options else ["--port", str(port)]
    command = [PROGRAM, *options, *plain, "--bind", "127.0.0.1", "--dir", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        wait_for_port(port)
        yield RedisServer(port, process)
    finally:
        process.kill()
        process.wait()


@contextmanager
def tls_server() -> Iterator[tuple[int, Path]]:
    """Run a server that speaks only TLS; yield its port and the certificate to trust."""
    with new_folder() as name:
        folder = Path(name)
        certificate, key = _self_signed(folder)
        files = ("--tls-cert-file", str(certificate), "--tls-key-file", str(key), "--tls-auth-clients", "no")
        port = free_port()
        with redis_process(folder, "--port", "0", "--tls-port", str(port), *files, "--save", "", port=port):
            yield port, certificate


@dataclass(frozen=True)
class Watched:
    """A master with one replica, and three Sentinels that know it as `mymaster`."""

    master: RedisServer
    replica: RedisServer
    address: str


@contextmanager
def watched_servers() -> Iterator[Watched]:
    """Start them, and wait until every Sentinel knows the replica and the others."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(new_folder()))
        master = stack.enter_context(redis_process(folder, "--save", "", "--repl-diskless-sync-delay", "0"))
        follows = ("--save", "", "--replicaof", f"127.0.0.1 {master.port}")
        replica = stack.enter_context(redis_process(folder, *follows))
        _until(lambda: replica.replication()["master_link_status"] == "up")
        sentinels = []
        for number in range(_SENTINELS):
            configuration = folder / f"sentinel-{number}.conf"
            configuration.write_text(
                f"sentinel monitor mymaster 127.0.0.1 {master.port} 2\n"
                "sentinel down-after-milliseconds mymaster 2000\nsentinel failover-timeout mymaster 2000\n"
            )
            sentinels.append(stack.enter_context(redis_process(folder, str(configuration), "--sentinel")))
        for sentinel in sentinels:
            _until(partial(_knows_all, sentinel))
        hosts = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in sentinels)
        yield Watched(master, replica, f"redis+sentinel://{hosts}/mymaster")


def _knows_all(sentinel: RedisServer) -> bool:
    with sentinel.client() as client:
        state: Any = client.sentinel_master("mymaster")
    return bool((state["num-slaves"], state["num-other-sentinels"]) == (1, _SENTINELS - 1))


def _is_complete(node: RedisServer) -> bool:
    with node.client() as client:
        return "cluster_state:ok" in str(client.execute_command("CLUSTER", "INFO"))


@contextmanager
def cluster_servers() -> Iterator[tuple[str, Sequence[RedisServer]]]:
    """Run a cluster of three nodes without replicas; yield its address and the nodes."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(new_folder()))
        nodes: list[RedisServer] = []
        buses: list[int] = []
        for number in range(_NODES):
            port, bus = free_port(), free_port()
            options = ("--cluster-enabled", "yes", "--cluster-config-file", f"nodes-{number}.conf", "--save", "")
            nodes.append(
                stack.enter_context(redis_process(folder, *options, "--cluster-port", str(bus), port=port))
            )
            with nodes[-1].client() as client:
                first, last = SLOTS * number // _NODES, SLOTS * (number + 1) // _NODES - 1
                client.execute_command("CLUSTER", "ADDSLOTSRANGE", first, last)
                buses.append(bus)
                client.execute_command("CLUSTER", "MEET", "127.0.0.1", nodes[0].port, buses[0])
        for node in nodes:
            _until(partial(_is_complete, node))
        yield f"redis+cluster://127.0.0.1:{nodes[0].port},127.0.0.1:{nodes[1].port}", nodes


def _until(done: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "the servers do not find each other"
        time.sleep(0.05)


def _self_signed(folder: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "redis")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .sign(key, SHA256())
    )
    files = folder / "certificate.pem", folder / "key.pem"
    files[0].write_bytes(certificate.public_bytes(Encoding.PEM))
    files[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return files


async def use_everything(client: RedisClient, address: str) -> None:
    events = EventLog(client, CircuitBreaker("Redis"), keep_s=60)
    turns = [uuid4() for _ in range(12)]  # in a cluster they are on all nodes
    await events.append(dict.fromkeys(turns, _EVENTS))
    assert [await events.read(turn, 1) for turn in turns] == [_EVENTS[1:]] * len(turns)
    assert await events.delete(turns) == len(turns)

    ticket = await Tickets(client).issue("Bearer key")
    assert await Tickets(client).redeem(ticket) == "Bearer key"
    with pytest.raises(Unauthenticated):
        await Tickets(client).redeem(ticket)

    settings = load_settings(redis_url=address, rate_limit_user_per_minute=2, rate_limit_tenant_per_minute=100)
    limits = RateLimits(settings, client, patience_s=30)
    users = [str(uuid4()) for _ in range(6)]
    for name in (*users, *users):
        await limits.count_turn(DEFAULT_TENANT, name)
    elsewhere = RateLimits(settings, client, patience_s=30)  # another process counts on
    for name in users:
        with pytest.raises(RateLimited):
            await elsewhere.count_turn(DEFAULT_TENANT, name)
    assert [key async for key in client.scan_iter(match="limits*")]
    assert await redis.probe(client) >= 0
