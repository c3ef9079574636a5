"""python -m perfmodel."""

import sys

from perfmodel.cli.command_line import main

sys.exit(main())
