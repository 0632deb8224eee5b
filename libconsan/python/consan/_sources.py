"""Keeps sources that a program makes at run time, so that reports can show their lines."""
import hashlib
import os
import re
import threading

_KERNEL = re.compile(r"__global__\s+(?:void\s+|__launch_bounds__\s*\([^)]*\)\s*|\w+\s+)*?(\w+)\s*\(")


def _folder():
    """None: the user has no folder for caches."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "consan", "sources") if os.path.isabs(cache) else None


_KEPT = 500  # files


def _prune(folder):
    """Removes those that were used least recently, if there are many. Other processes do so, too."""
    try:
        with os.scandir(folder) as entries:
            files = sorted((e.stat().st_mtime, e.path) for e in entries)
        for _, path in files[:max(0, len(files) - _KEPT)]:
            os.unlink(path)
    except OSError:
        pass


def _write(path, source):
    """A file of this process alone, which must not exist: no link is followed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "wb") as out:
        out.write(source)


def keep(source, name):
    """The path of a file with this source, named after its kernel; name if it cannot be written."""
    if os.path.exists(name):
        return name
    folder = _folder()
    if not folder:
        return name
    found = _KERNEL.search(source)
    text = source.encode(errors="replace")
    digest = hashlib.sha256(text).hexdigest()[:12]
    path = os.path.join(folder, f"{found[1][:100] if found else 'kernel'}-{digest}.cu")
    try:
        os.utime(path)
        return path
    except OSError:
        pass
    try:
        os.makedirs(folder, exist_ok=True)
        own = f"{path}.{os.getpid()}.{threading.get_ident()}"
        try:
            _write(own, text)
            os.replace(own, path)
        except OSError:
            if os.path.exists(own):
                os.unlink(own)
            raise
    except OSError:
        return name
    _prune(folder)
    return path


def restore(path):
    """Writes the source of a notebook's cell, which Python only has in memory, to its own path. The
    folder above it is everybody's."""
    import linecache
    import tempfile

    if os.path.exists(path) or not path.startswith(tempfile.gettempdir() + os.sep):
        return
    lines = linecache.getlines(path)
    if not lines:
        return
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        _write(path, "".join(lines).encode(errors="replace"))
    except OSError:
        pass
