"""The commands of `stea-fast`, one file each: `HELP`, `EXAMPLES`, `add_arguments(parser)` and `run(arguments, console)`."""
