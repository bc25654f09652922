"""Systems of a paper, each with its own server and clients: `python -m lab.systems.bench`."""
