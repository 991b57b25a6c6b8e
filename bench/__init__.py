"""Everything measured: run as modules from the root of the project, for example `python -m bench.paper.run --list`."""
