"""The commands of `stea-fast`, one file each.

Every file has `HELP`, `EXAMPLES`, `add_arguments(parser)` and `run(arguments, console)`.
"""
