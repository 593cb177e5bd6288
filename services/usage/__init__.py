"""What language models and embeddings cost: counted where they are asked, kept by day, limited by budgets."""
