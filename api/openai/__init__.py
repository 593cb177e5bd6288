"""The ways in that OpenAI's clients speak: `/v1`, over the same turns and events as `/api/v1`."""
