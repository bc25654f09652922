"""Results over networks."""
