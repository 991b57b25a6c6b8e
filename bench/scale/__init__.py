"""How time, memory and quality grow with the graphs."""
