"""Benchmarks: ``python -m benchmarks.NAME [--preset debug|full] [--json OUT]``."""
