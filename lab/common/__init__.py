"""What several benchmarks share: contenders, their servers and clients, races, and reports."""
