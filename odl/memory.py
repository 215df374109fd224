"""Where the memory of large tensors comes from."""

import ctypes
import sys

# Parameters of mallopt in malloc.h of the GNU C library, and the largest values that it takes.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
ALL, LARGEST = 2**31 - 1, 32 * 2**20


def keep() -> bool:
    """Keep freed memory in the process instead of giving it back to the system; answers whether that can be done.

    Every training step asks for the same tensors again, and the system would hand out each page anew and clear it
    first. Only the GNU C library can be told so.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    return bool(mallopt and mallopt(TRIM_THRESHOLD, ALL) and mallopt(MMAP_THRESHOLD, LARGEST))
