"""`make bench`: what this project's speed is, against other ways to do the same on the same machine."""
