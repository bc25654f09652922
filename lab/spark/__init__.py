"""Spark's connector beside Spark's own JDBC source, in a small standalone cluster."""
