"""Who calls: tenants now, keys and tokens with authentication."""
