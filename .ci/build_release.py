"""Build sdist and wheel so that two builds of one commit have the same bytes.

    python .ci/build_release.py OUT

Times are those of the last commit, or SOURCE_DATE_EPOCH when that is set already. setuptools
honours that in wheels; the sdist is packed again, with sorted members and nobody's names. The wheel
is built from the sdist, which proves that the sdist is complete.
"""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Write both files to the folder that the command line names."""
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    stamp = os.environ.get("SOURCE_DATE_EPOCH") or _last_commit()
    os.environ["SOURCE_DATE_EPOCH"] = stamp
    with tempfile.TemporaryDirectory() as scratch:
        _build("--sdist", str(ROOT), scratch)
        (made,) = Path(scratch).glob("*.tar.gz")
        sdist = out / made.name
        sdist.write_bytes(_packed(made, int(stamp)))
        with tarfile.open(sdist) as archive:
            archive.extractall(scratch, filter="data")
        _build("--wheel", str(Path(scratch) / made.name.removesuffix(".tar.gz")), str(out))


def _last_commit() -> str:
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _build(kind: str, source: str, out: str) -> None:
    subprocess.run([sys.executable, "-m", "build", kind, "--outdir", out, source], check=True)


def _packed(sdist: Path, stamp: int) -> bytes:
    """The same members in the order of their names, with one time and no owner."""
    tar = io.BytesIO()
    with (
        tarfile.open(sdist) as source,
        tarfile.open(fileobj=tar, mode="w", format=tarfile.PAX_FORMAT) as target,
    ):
        for member in sorted(source.getmembers(), key=lambda member: member.name):
            member.mtime, member.pax_headers = stamp, {}
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            content = source.extractfile(member) if member.isfile() else None
            target.addfile(member, content)
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=packed, mode="wb", mtime=stamp) as file:
        file.write(tar.getvalue())
    return packed.getvalue()


if __name__ == "__main__":
    main()
