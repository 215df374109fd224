"""What is measured beside the levels of Table 1: blocks, photographs, gradients, pools, other statistics."""
