"""Write a file whole or not at all. Rows of a long run alone are appended instead (``rows.py``)."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(path: Path, content: str | bytes) -> None:
    """Write ``content`` so that a reader sees the old file or the new one, never a part of it.

    A link stays a link, and the file that it leads to is replaced. What is no regular file, such
    as a pipe or ``/dev/null``, is written to as it is. The permissions of an existing file stay.

    Raises ``OSError`` that names ``path``.
    """
    data = content.encode() if isinstance(content, str) else content
    target = Path(os.path.realpath(path))
    try:
        if target.is_symlink():
            raise OSError(errno.ELOOP, "a link that leads to itself")
        if target.exists() and not target.is_file():
            target.write_bytes(data)
        else:
            _replace(target, data)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None


def _replace(target: Path, data: bytes) -> None:
    import tempfile  # only when something is written

    handle, temporary = tempfile.mkstemp(
        prefix=f".{target.name[:40]}.", suffix=".partial", dir=target.parent
    )
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode(target))  # mkstemp makes files that only their owner may read
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _mode(target: Path) -> int:
    """The permissions of the file that is there, else those of a new one."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
