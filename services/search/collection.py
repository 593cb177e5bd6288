"""Makes a collection of an index: its fields, BM25 over the service's own terms, and an index of embeddings."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from services.platform.milvus import LITE, pymilvus
from services.text.caches import text_cache
from services.text.tokenizer import indexed_text, terms

if TYPE_CHECKING:
    from pymilvus import CollectionSchema, MilvusClient
    from pymilvus.milvus_client.index import IndexParams

MODEL, DIMENSION = "anamnesis.model", "anamnesis.dimension"
"""Properties of a collection: model of its embeddings, and their dimensions."""
VERSION = "anamnesis.version"
"""Property of a collection: version of what is indexed of a text."""

PARTITIONS = 256
"""Number of partitions in a Milvus server; a partition key's hash chooses its partition, and a search reads
one."""

_COPIED_AT_ONCE = 200
_MOST_TERMS_BYTES = 8000
MOST_TERMS = _MOST_TERMS_BYTES // 2
"""Maximum number of terms from which those for a row are chosen: more never fit, each with a space after it."""
_UNKNOWN = "0"

# Parameters of BM25; from 0.4 to 0.75 recall hardly depends on the second. Milvus Lite uses its own (1.5, 0.75);
# it only chooses the units that are then ranked.
BM25_K1 = 1.2
BM25_B = 0.5
SEARCH_DEPTH = 100
"""Number of units that a search of the index returns for each leg."""

TERMS_VERSION = "3"
"""Version of `indexed_terms`."""


def make_collection(
    client: "MilvusClient",
    name: str,
    *,
    model: str,
    dimension: int,
    version: str = TERMS_VERSION,
    add_own_fields: "Callable[[CollectionSchema], None] | None" = None,
) -> None:
    """Make an empty collection with its indexes; searches see it at once. Beside its terms and its embedding a
    row has the fields that are added; None = those of a unit."""
    indexes = client.prepare_index_params()
    add_vector_index(client, indexes, "embedding")
    indexes.add_index(
        "sparse",
        index_type="SPARSE_INVERTED_INDEX",
        metric_type="BM25",
        params={"bm25_k1": BM25_K1, "bm25_b": BM25_B},
    )
    schema = _schema(dimension, add_own_fields or _add_fields_of_unit)
    partitioned: dict[str, Any] = {}
    if not is_lite(client):  # Milvus Lite has no partitions
        key = next(field.name for field in schema.fields if field.is_partition_key)
        indexes.add_index(key, index_type="INVERTED")
        partitioned["num_partitions"] = PARTITIONS
    client.create_collection(name, schema=schema, **partitioned)
    client.create_index(name, indexes, sync=False)
    client.alter_collection_properties(name, {MODEL: model, DIMENSION: str(dimension), VERSION: version})
    client.load_collection(name)


def add_vector_index(client: "MilvusClient", indexes: "IndexParams", field: str) -> None:
    """Index a field of embeddings by cosine similarity: with a graph in a cluster, without one in Milvus Lite.

    If a filter leaves few rows, Milvus searches exactly by itself. Milvus Lite would always walk through the
    graph, and miss what is reached only through rows that the filter excludes; without a graph it is no slower.
    """
    if is_lite(client):
        indexes.add_index(field, index_type="FLAT", metric_type="COSINE")
    else:
        graph = {"M": 16, "efConstruction": 128}
        indexes.add_index(field, index_type="HNSW", metric_type="COSINE", params=graph)


def is_lite(client: "MilvusClient") -> bool:
    """Return whether a client's server is Milvus Lite."""
    return str(client.get_server_version()).startswith(LITE)


def copy_collection(client: "MilvusClient", name: str, into: str) -> int:
    """Copy the rows of a loaded collection into a new one; return their number."""
    properties = client.describe_collection(name)["properties"]
    dimension = int(properties[DIMENSION])
    make_collection(
        client, into, model=properties[MODEL], dimension=dimension, version=properties.get(VERSION, _UNKNOWN)
    )
    # The collection itself makes the sparse vectors of terms again.
    fields = [field.name for field in _schema(dimension, _add_fields_of_unit).fields if field.name != "sparse"]
    rows = client.query_iterator(name, batch_size=_COPIED_AT_ONCE, output_fields=fields)
    count = 0
    while batch := rows.next():
        client.upsert(into, [{field: row[field] for field in fields} for row in batch])
        count += len(batch)
    rows.close()
    return count


def is_of_older_version(properties: dict[str, Any], version: str) -> bool:
    """Tell whether the rows of a collection are not of a version, by its properties."""
    return properties.get(VERSION) != version


def is_of_model(properties: dict[str, Any], model: str, dimension: int) -> bool:
    """Tell whether a collection was made with this embedding model, by its properties."""
    found = properties.get(MODEL), properties.get(DIMENSION)
    return None in found or found == (model, str(dimension))


def _schema(dimension: int, add_own_fields: "Callable[[CollectionSchema], None]") -> "CollectionSchema":
    library = pymilvus()
    kinds = library.DataType
    schema = library.MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("id", kinds.VARCHAR, is_primary=True, max_length=36)
    add_own_fields(schema)
    # The service's own tokens: `standard` only has to cut at the spaces between them.
    analyzer = {"tokenizer": "standard"}
    schema.add_field("terms", kinds.VARCHAR, max_length=8192, enable_analyzer=True, analyzer_params=analyzer)
    schema.add_field("sparse", kinds.SPARSE_FLOAT_VECTOR)
    schema.add_field("embedding", kinds.FLOAT_VECTOR, dim=dimension)
    bm25 = library.Function(
        name="bm25",
        function_type=library.FunctionType.BM25,
        input_field_names=["terms"],
        output_field_names=["sparse"],
    )
    schema.add_function(bm25)
    return schema


def _add_fields_of_unit(schema: "CollectionSchema") -> None:
    kinds = pymilvus().DataType
    schema.add_field("episode_id", kinds.VARCHAR, max_length=36)
    schema.add_field("tenant_id", kinds.VARCHAR, max_length=36)
    schema.add_field("user_id", kinds.VARCHAR, max_length=36, is_partition_key=True)
    schema.add_field("expert_id", kinds.VARCHAR, max_length=36)
    schema.add_field("conversation_id", kinds.VARCHAR, max_length=36)
    schema.add_field("episode_type", kinds.VARCHAR, max_length=16)
    schema.add_field("importance", kinds.FLOAT)
    schema.add_field("created_at", kinds.INT64)


def terms_that_fit(terms: Sequence[str]) -> str:
    """Return as many terms as a field holds; the beginning of a long text says what it is about."""
    text = " ".join(terms).encode()
    if len(text) <= _MOST_TERMS_BYTES:
        return text.decode()
    cut = text[:_MOST_TERMS_BYTES]
    return cut[: cut.rfind(b" ")].decode(errors="ignore")


@text_cache(256)
def indexed_terms(text: str, speaker: str | None) -> Sequence[str]:
    """Return the terms of a message or memory, and of its speaker's name; none if it has no word."""
    # A working set and, some seconds later, the index need the terms of what was just said.
    return tuple(terms(indexed_text(speaker or "", text)))
