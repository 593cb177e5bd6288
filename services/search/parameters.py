"""Numbers that the index and ranking share."""

# Of BM25; from 0.4 to 0.75 recall hardly depends on the second. Milvus Lite uses its own (1.5, 0.75): it only
# chooses the units that are ranked.
BM25_K1 = 1.2
BM25_B = 0.5
SEARCH_DEPTH = 100
"""Units that a search of the index returns for each leg."""
