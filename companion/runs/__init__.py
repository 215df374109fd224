"""Which runs there are, what they cost, and how they are run."""
