"""The other side of `measure.in_child`: call a function of a benchmark, and print as JSON what it returns."""

import json
import sys
from importlib import import_module

from . import measure

if __name__ == "__main__":
    module, name, options, given = sys.argv[1:]
    options = measure.Options(**json.loads(options))
    measure.prepare(options)
    print(json.dumps(getattr(import_module(module), name)(options, **json.loads(given))))
