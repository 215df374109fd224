"""`python -m odl`: the command line of `companion.cli`."""

import sys

if __name__ == "__main__":
    try:
        from companion.cli import program

        program()
    except KeyboardInterrupt:  # while it is imported
        sys.exit(130)
