"""The console: web pages that use only the public API."""
