"""The adapters that come with preplay, one tool family per file; each registers itself when imported."""
