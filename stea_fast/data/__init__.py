"""Graphs and pairs of graphs: the data model, and how files, folders, other libraries and a generator fill it."""
