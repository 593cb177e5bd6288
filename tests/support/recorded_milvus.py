"""A gRPC server that stands in for Milvus: it records requests and keeps only the names of collections."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
from pymilvus.grpc_gen import common_pb2, milvus_pb2, milvus_pb2_grpc, schema_pb2

VERSION = "v2.6.0"
_MISSING = 100


class RecordedMilvus(milvus_pb2_grpc.MilvusServiceServicer):  # type: ignore[misc]
    """Answers with success; `sent` has every request by the name of its method."""

    def __init__(self) -> None:
        self.sent: dict[str, list[Any]] = {}
        self.collections: dict[str, Any] = {}
        self.aliases: dict[str, str] = {}
        self.uri = ""

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if not name[0].isupper():
            return found

        def record(request: Any, context: Any) -> Any:
            self.sent.setdefault(name, []).append(request)
            answer: Callable[[Any], Any] = _ANSWERS.get(name, lambda *_: common_pb2.Status())
            return answer(self, request)  # type: ignore[call-arg]

        return record


def _create(server: RecordedMilvus, request: Any) -> Any:
    schema = schema_pb2.CollectionSchema()
    schema.ParseFromString(request.schema)
    server.collections[request.collection_name] = schema
    return common_pb2.Status()


def _drop(server: RecordedMilvus, request: Any) -> Any:
    server.collections.pop(request.collection_name, None)
    return common_pb2.Status()


def _alias(server: RecordedMilvus, request: Any) -> Any:
    server.aliases[request.alias] = request.collection_name
    return common_pb2.Status()


def _drop_alias(server: RecordedMilvus, request: Any) -> Any:
    server.aliases.pop(request.alias, None)
    return common_pb2.Status()


def _missing(server: RecordedMilvus, name: str) -> Any:
    """Return the status of a request about a missing collection; None if it exists."""
    if server.aliases.get(name, name) in server.collections:
        return None
    return common_pb2.Status(code=_MISSING, reason="can't find collection", error_code=1)


def _search(server: RecordedMilvus, request: Any) -> Any:
    if (missing := _missing(server, request.collection_name)) is not None:
        return milvus_pb2.SearchResults(status=missing)
    return milvus_pb2.SearchResults(results=schema_pb2.SearchResultData(num_queries=1, topks=[0]))


def _describe(server: RecordedMilvus, request: Any) -> Any:
    name = server.aliases.get(request.collection_name, request.collection_name)
    if (missing := _missing(server, name)) is not None:
        return milvus_pb2.DescribeCollectionResponse(status=missing)
    return milvus_pb2.DescribeCollectionResponse(
        schema=server.collections[name],
        collection_name=name,
        aliases=[request.collection_name],
        consistency_level=2,
    )


_ANSWERS: dict[str, Any] = {
    "Connect": lambda *_: milvus_pb2.ConnectResponse(
        server_info=common_pb2.ServerInfo(build_tags=VERSION), identifier=1
    ),
    "GetVersion": lambda *_: milvus_pb2.GetVersionResponse(version=VERSION),
    "ShowCollections": lambda server, _: milvus_pb2.ShowCollectionsResponse(
        collection_names=list(server.collections)
    ),
    "CreateCollection": _create,
    "DropCollection": _drop,
    "CreateAlias": _alias,
    "AlterAlias": _alias,
    "DescribeCollection": _describe,
    "GetLoadingProgress": lambda *_: milvus_pb2.GetLoadingProgressResponse(progress=100),
    "GetLoadState": lambda *_: milvus_pb2.GetLoadStateResponse(state=common_pb2.LoadState.LoadStateLoaded),
    "Upsert": lambda *_: milvus_pb2.MutationResult(),
    "Delete": lambda *_: milvus_pb2.MutationResult(),
    "Search": _search,
    "DropAlias": _drop_alias,
    "GetFlushState": lambda *_: milvus_pb2.GetFlushStateResponse(flushed=True),
    "Flush": lambda *_: milvus_pb2.FlushResponse(),
}


@contextmanager
def recorded_milvus() -> Iterator[RecordedMilvus]:
    """Serve it on a free port."""
    servicer = RecordedMilvus()
    server = grpc.server(ThreadPoolExecutor(4))
    milvus_pb2_grpc.add_MilvusServiceServicer_to_server(servicer, server)
    servicer.uri = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    yield servicer
    server.stop(None).wait()
