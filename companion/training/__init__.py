"""Training: device, checkpoints, results and their files."""
