"""The command's entrance, also as ``python -m configurator``; nothing heavy is loaded before it."""

from __future__ import annotations

import sys

__all__ = ["run"]


def run() -> int:
    """Run the command line and return its exit code; an interrupt while it loads is one line."""
    try:
        from configurator.cli import main

        return main()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(run())
