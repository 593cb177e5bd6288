"""Cost of language models and embeddings: counted where they are asked, kept by day, limited by budgets."""
