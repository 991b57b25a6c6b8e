"""The paper's experiments as cells: what is run, how, where it is kept, and how it is shown."""
