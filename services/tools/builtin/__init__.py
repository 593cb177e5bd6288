"""The tools that come with the service, one module each: a module's `TOOL` is found by itself.

It is a `RegisteredTool`, or a function that makes one of `ToolServices`."""
