"""The tools that come with the service, one module each: a module's `TOOL` is found by itself."""
