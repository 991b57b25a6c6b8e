"""What the project is timed by: its kernels and stages, alone and against other ways to compute the same."""
