"""``python -m rolltop_refsim.services NAME --port PORT ...``: one instance of one service."""

from __future__ import annotations

import sys

from rolltop_refsim.services.hosting import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
