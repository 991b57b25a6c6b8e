"""Quality against test links. Nothing outside this folder opens them."""
