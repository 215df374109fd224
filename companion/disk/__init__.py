"""Files under one root, provenance and progress."""
