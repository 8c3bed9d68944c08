"""`python -m partwise` is the command `partwise`."""

import sys

from partwise.cli import main

sys.exit(main())
