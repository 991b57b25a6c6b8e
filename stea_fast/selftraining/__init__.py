"""The loop of the paper: train, search, refine, select, train again."""
