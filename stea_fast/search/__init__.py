"""The nearest entities of the other graph: `topk`, its engines, and what makes them exact and equal."""
