"""The command line, `stea-fast`."""
