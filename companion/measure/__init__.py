"""What is measured beside the levels of Table 1: blocks, photographs with noise, gradients and hard mining's pool."""
