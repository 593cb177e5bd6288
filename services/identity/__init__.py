"""Who calls: tenants, API keys, tokens, and how much each may ask for."""
