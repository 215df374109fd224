"""Everything that running the paper needs beside `odl`, the paper itself."""

import odl

if not hasattr(odl, "PROTOCOL"):  # another package is imported as odl, too
    raise SystemExit(
        f"{odl.__file__} is another package named odl, as the Operator Discretization Library: uninstall it, or make "
        "an environment without it, and install on-demand-learning there again"
    )
