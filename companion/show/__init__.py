"""What the pages share to show: figures, tables, sentences, pictures."""
