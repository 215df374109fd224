"""`python -m companion`: the command line of `companion.cli`."""

import sys

from companion.cli import companion

if __name__ == "__main__":
    sys.exit(companion())
