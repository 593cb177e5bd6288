"""Identity of callers: tenants, API keys, tokens, and rate limits."""
