"""Dray and other clients of PostgreSQL."""
