"""Sorting, in memory and beyond."""
