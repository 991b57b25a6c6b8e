"""Every guess checked against the guesses for its neighbours: `refine`, its methods and its stages."""
