"""`/v1` for OpenAI's clients, over the same turns and events as `/api/v1`."""
