#!/usr/bin/env python3
"""Measures rlx and its peers in turns: in every round rlx, ONNX Runtime on model files, and each peer, a pinned process at a time, with the
machine's limits probed before each. For developers; docs/bench.md says how the result becomes docs/performance.md.

    RLX_MODELS=DIR nice -n -10 PYTHON rounds.py --rlx BINARY --peers DIR -o FILE [-r ROUNDS] [-t THREADS] [-s SECONDS] [PREFIX...]

DIR holds peers.py; PYTHON is the interpreter that has the peers' packages, with what they need beside it. FILE gets, of each workload and
peer, one line with the least figures of all rounds and the least time of each (`rounds`). What each process printed is kept in a log, from
which FILE can be made again (--condense). Ctrl-C keeps what was measured so far.
"""
import argparse
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))

# Which peers run which rows: those that were ever the best at one of them, or near it. The rest would make a round twice as long.
RIVALS = {
    "onnxruntime": ["gemm.f32", "gemm.i8dyn", "layernorm", "rmsnorm", "softmax", "gelu", "exp", "conv", "dw", "lstm", "model.resnet50", "model.mobilenetv2"],
    "onnxruntime-fused": ["model.minilm"],
    "openvino": ["gemm.f32", "rmsnorm", "gelu", "cumsum", "attn.prefill", "conv", "dw", "lstm", "model", "overhead"],
    "torch": ["gemm.bf16", "gemm.i8dyn", "gemm.f32.1x", "layernorm", "softmax", "gelu", "cumsum", "attn.prefill.", "conv.f32.c64", "conv.f32.c3", "fft", "dit", "overhead"],
    "jax": ["gemm.f32", "layernorm", "chain8", "scan", "conv.f32.c64", "conv.f32.c256", "fft", "dit", "overhead"],
    "ggml": ["gguf", "attn.decode", "attn.prefill_causal"],
    "numpy": ["gemm.f32.1"],
    "rust-rlx": ["gemm.f32.1", "gemm.f32.512x512", "layernorm", "rmsnorm", "softmax", "gelu", "exp", "cumsum", "chain8", "scan", "attn", "conv", "dw", "lstm", "fft", "dit", "overhead"],
}


def chosen(prefixes, wanted):
    """The prefixes that name what both lists want; all of the first without a second."""
    if not wanted:
        return prefixes
    return sorted({max(p, w, key=len) for p in prefixes for w in wanted if p.startswith(w) or w.startswith(p)})


def rows(args, prefixes):
    """How many workloads begin with one of the prefixes."""
    listed = subprocess.run([sys.executable, os.path.join(args.peers, "peers.py"), "list"], capture_output=True, text=True, check=True).stdout
    names = [text.split()[0] for text in listed.splitlines()] + ["model.onnx." + m["name"] for m in json.load(open(os.path.join(HERE, "models.json")))]
    return sum(not prefixes or n.startswith(tuple(prefixes)) for n in names)


def estimate(args):
    """Seconds of a round on an idle machine: a process takes about 5 to start and probe, a row half a second beside the time asked for."""
    processes = [args.prefix, chosen(["model.onnx", "model.minilm"], args.prefix)]
    processes += [chosen(p, args.prefix) for peer, p in RIVALS.items() if not args.only or peer in args.only]
    return sum(5 + rows(args, p) * (args.seconds + 0.5) for i, p in enumerate(processes) if p or i == 0)


def steps(args):
    """(name, command, environment) of the processes of a round."""
    t, s = ["-t", str(args.threads)], ["-s", str(args.seconds)]
    env = dict(os.environ, PEERS_LIMITS="", PYTHONWARNINGS="ignore")
    yield "rlx", [args.rlx, "bench", "--json", *t, *s, *args.prefix], env
    models = chosen(["model.onnx", "model.minilm"], args.prefix)
    if models:
        yield "onnxruntime on files", [sys.executable, os.path.join(HERE, "ort_models.py"), "--peers", args.peers, *t, *s, *models], env
    for peer, prefixes in RIVALS.items():
        names = chosen(prefixes, args.prefix)
        if peer == "rust-rlx" and not os.path.exists(os.path.join(os.path.dirname(sys.prefix), "rust/release/rust-rlx-bench")):
            print(f"{peer}: left out: it is not built", file=sys.stderr)
            continue
        if names and (not args.only or peer in args.only):
            # "all" of one round is a process pinned to the last processors, with the environment that the peer needs.
            yield peer, [sys.executable, os.path.join(args.peers, "peers.py"), "all", "-r", "1", "-p", peer, "--timeout", str(args.timeout), *t, *s, *names], env


def run(command, env, threads, log):
    """Runs a pinned process whose lines go to the log as they come, and returns how many measurements there were."""
    cpus = sorted(os.sched_getaffinity(0))[-threads:]
    p = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True, preexec_fn=lambda: os.sched_setaffinity(0, cpus))
    count = 0
    try:
        for line in p.stdout:
            if line.startswith("{"):
                log.write(line)
                log.flush()
                count += 1
        p.wait()
    finally:
        if p.poll() is None:
            p.terminate()
            try:
                p.wait(10)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
    return count


def measure(args, log):
    begin, total = time.time(), args.rounds * estimate(args)
    plan = list(steps(args))
    probe = [args.rlx, "bench", "--json", "--limits", "-t", str(args.threads), "limit"]
    for r in range(args.rounds):
        for i, (name, command, env) in enumerate(plan):
            log.write(f"round {r + 1} {name}\n")
            print(f"round {r + 1} of {args.rounds}, {name} ({i + 1} of {len(plan)}): {clock(time.time() - begin)}" + f" of about {clock(total)}", file=sys.stderr, flush=True)
            run(probe, env, args.threads, log)
            if run(command, env, args.threads, log) == 0:
                print(f"{name}: no measurement", file=sys.stderr)
        total = (time.time() - begin) / (r + 1) * args.rounds
    run(probe, dict(os.environ), args.threads, log)


def clock(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def condense(log):
    """One line of each workload, peer and thread count: the least times and memory, the largest limits and error."""
    lines, current = {}, 0
    for text in open(log):
        if text.startswith("round "):
            current = int(text.split()[1])
        if not text.startswith("{"):
            continue
        d = json.loads(text)
        if d["workload"].startswith("service."):
            continue  # they are about a machine with processors to spare, not about peers
        k = (d["workload"], d["peer"], d["threads"])
        if d["workload"] == "machine":
            k = ("machine", d["peer"], 0)
        old = lines.setdefault(k, {})
        for name, v in d.items():
            have = old.get(name)
            if have is None or name in ("note", "version"):
                old[name] = v
            elif name in ("min_ms", "median_ms", "compile_ms", "peak_bytes"):
                old[name] = min(have, v)
            elif name in ("gflops", "gbps", "max_err", "reps"):
                old[name] = max(have, v)
        if not d["workload"].startswith(("limit.", "machine")):
            times = old.setdefault("rounds", {})
            times[current] = min(times.get(current, d["min_ms"]), d["min_ms"])
    for d in lines.values():
        d.pop("median_gflops", None), d.pop("median_gbps", None)
        for name in ("gflops", "gbps"):
            if name in d:
                d[name] = round(d[name], 1)
        for name in ("min_ms", "median_ms", "compile_ms"):
            if name in d:
                d[name] = round(d[name], 6)
        if "max_err" in d:
            d["max_err"] = float(f"{d['max_err']:.3g}")
        if "rounds" in d:
            d["rounds"] = [round(v, 6) for _, v in sorted(d["rounds"].items())]
    return sorted(lines.values(), key=lambda d: (d["workload"] != "machine", not d["workload"].startswith("limit.")))


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--rlx", help="the rlx binary")
    a.add_argument("--peers", help="the folder of peers.py")
    a.add_argument("-o", "--out", required=True, help="the file of measurements")
    a.add_argument("-r", "--rounds", type=int, default=3)
    a.add_argument("-t", "--threads", type=int, default=1)
    a.add_argument("-s", "--seconds", type=float, default=0.3, help="time per workload, peer and round")
    a.add_argument("--only", action="append", help="a peer; several of them by repeating the option")
    a.add_argument("--timeout", type=float, default=240, help="seconds for one peer in one round")
    a.add_argument("--log", help="the file of all that the processes print; FILE.log unless given")
    a.add_argument("--condense", action="store_true", help="only make FILE of the log again")
    a.add_argument("prefix", nargs="*")
    args = a.parse_args()
    if not args.condense and not (args.rlx and args.peers):
        a.error("--rlx and --peers are needed")
    log, stopped = args.log or args.out + ".log", False
    if not args.condense:
        with open(log, "w") as f:
            try:
                measure(args, f)
            except KeyboardInterrupt:
                stopped = True
                print("stopped: what was measured is kept", file=sys.stderr)
    with open(args.out, "w") as f:
        for d in condense(log):
            f.write(json.dumps(d) + "\n")
    print(f"{args.out}: {sum(1 for _ in open(args.out))} lines", file=sys.stderr)
    sys.exit(130 if stopped else 0)


if __name__ == "__main__":
    main()
