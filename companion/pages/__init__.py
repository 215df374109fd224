"""A file for each notebook that measures, of its name: its table, its figures, its sentences."""
