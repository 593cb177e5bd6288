"""The console: pages for people, which use the public API alone."""
