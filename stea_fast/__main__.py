"""`python -m stea_fast`."""

import sys

from stea_fast.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
