"""`ringside` and `python -m ringside`: become the packaged tool."""

import os
import sys

from . import tool_path


def main() -> None:
    tool = tool_path()
    try:
        os.execv(tool, ["ringside"] + sys.argv[1:])
    except OSError as error:
        sys.exit("ringside: cannot run %s: %s; reinstall ringside-nccl with pip" % (tool, error.strerror))


if __name__ == "__main__":
    main()
