"""Cost of language models and embeddings: counted at each call, summed by day, limited by budgets."""
