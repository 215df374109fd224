"""Photographs restored by trained networks."""
