"""Does what the installed program `vastai` does. Run as a module it is forked from a process that has its libraries."""

import sys

from vastai.cli.main import main

if __name__ == "__main__":
    sys.argv[0] = "vastai"
    sys.exit(main())
