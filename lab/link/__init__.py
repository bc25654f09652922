"""A slow or lossy link between two network namespaces."""
