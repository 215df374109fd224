"""`python -m companion`: the command line of `companion.cli`."""

import sys

if __name__ == "__main__":
    try:
        from companion.cli import companion

        sys.exit(companion())
    except KeyboardInterrupt:  # while it is imported
        sys.exit(130)
