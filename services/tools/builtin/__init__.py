"""The built-in tools, one module each; the registry finds every `TOOL`.

It is a `RegisteredTool`, or a function that makes one of `ToolServices`."""
