"""Where heavy work runs: in this process, in others, or on a cluster. Executors know nothing of graphs."""
