"""Pages of the documentation that show real output, and what brings it up to date."""
