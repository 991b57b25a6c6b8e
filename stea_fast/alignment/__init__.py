"""From a pair of graphs to links with calibrated probabilities, and to the files that hold them."""
