"""Small helpers that know nothing of knowledge graphs: arrays, files, memory, progress, checks of arguments."""
