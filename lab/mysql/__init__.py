"""MariaDB as a source: Dray beside other clients."""
