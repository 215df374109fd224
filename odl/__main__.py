"""`python -m odl`: the command line of `companion.cli`."""

from companion.cli import program

if __name__ == "__main__":
    program()
