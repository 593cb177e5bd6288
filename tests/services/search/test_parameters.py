from typing import Any, cast

from pymilvus import MilvusClient

from services.search.collection import make_collection
from services.search.parameters import BM25_B, BM25_K1


class Server:
    """Stands for a Milvus server: Milvus Lite takes the parameters of BM25 and goes by its own."""

    def __init__(self) -> None:
        self.indexes: Any = None

    def prepare_index_params(self) -> Any:
        return MilvusClient.prepare_index_params()

    def get_server_version(self) -> str:
        return "2.6.0"

    def create_collection(self, name: str, **_: Any) -> None: ...

    def create_index(self, name: str, indexes: Any, **_: Any) -> None:
        self.indexes = indexes

    def alter_collection_properties(self, name: str, properties: Any) -> None: ...

    def load_collection(self, name: str) -> None: ...


def test_the_index_is_made_with_the_bm25_of_the_ranking() -> None:
    server = Server()
    make_collection(cast("MilvusClient", server), "units", model="m", dimension=2)
    sparse = next(index for index in server.indexes if index.field_name == "sparse").to_dict()
    assert (sparse["bm25_k1"], sparse["bm25_b"]) == (BM25_K1, BM25_B)
