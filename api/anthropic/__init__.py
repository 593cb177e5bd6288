"""`/v1/messages` for Anthropic's clients, over the same turns as `/v1` for OpenAI's."""
