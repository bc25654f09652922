"""Formats and sizes of chunks, on one core and over links."""
