"""The tables that benchmarks fetch, and samples of real data to draw them from."""
