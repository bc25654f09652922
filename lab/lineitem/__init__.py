"""TPC-H lineitem out of a server's memory into a table of another process."""
