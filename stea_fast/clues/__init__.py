"""What two graphs say of each other without a seed: names that are alike."""
