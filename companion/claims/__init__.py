"""Claims of the paper, predictions, and the scorecard."""
