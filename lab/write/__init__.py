"""Writing into PostgreSQL: Dray beside other ways to get an Arrow table into a table."""
