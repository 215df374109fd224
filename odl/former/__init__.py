"""Definitions by which results were measured, where those of today are faster and give the same numbers.

A module here has the name of the one in odl that it is of. `fingerprint` hashes what stands here in place of today's,
so that results stay current; tests/test_former.py compares the two. What no result was measured by is deleted.
"""
