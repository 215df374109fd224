"""From margins to words: the judge, the claims, what was predicted, and verdicts as data."""
