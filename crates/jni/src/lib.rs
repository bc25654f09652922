//! Native functions for Java: plans of statements, parts of plans, and results.
