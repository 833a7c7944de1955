"""One reader per file; importing a module here registers it."""
