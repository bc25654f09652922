"""What a chunk should be: formats and compressors, on one core and over links."""
