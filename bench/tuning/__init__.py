"""How defaults were chosen: on hidden seeds, with all test links taken away."""
