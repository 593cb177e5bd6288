"""Tenants in several databases: which one holds a tenant, and moving tenants between them."""
