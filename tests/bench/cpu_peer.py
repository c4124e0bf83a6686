#!/usr/bin/env python3
"""Attention on the CPU, ours and PyTorch's scaled_dot_product_attention in turn, in one run:

    ./dev build && tests/bench/cpu_peer.py --threads 1 16 --out peer.json

Both work on the same inputs, and their results must agree. Rates count 4 N² d FLOPs a head for the forward
pass and 10 for the backward pass, half of it under a causal mask, whatever is executed. The peak is that of
bare multiply-adds, measured in the same run. --peer none runs ours alone and needs no PyTorch.
"""

import argparse
import collections
import datetime
import json
import math
import os
import pathlib
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# How far results may lie apart, by their largest element.
TOLERANCE = {"f32": 2e-5, "f64": 1e-12}

Case = collections.namedtuple("Case", "direction type heads seq head_dim mask threads")


def flops(case):
    products = 2 if case.direction == "forward" else 5
    whole = products * 2 * case.heads * case.seq**2 * case.head_dim
    return whole / 2 if case.mask == "causal" else whole


class Ours:
    """Our program, which answers each line with one of JSON."""

    def __init__(self, program, tiles):
        try:
            pipe = subprocess.PIPE
            self.process = subprocess.Popen([program], stdin=pipe, stdout=pipe, text=True)
        except OSError as error:
            sys.exit(f"cpu_peer: {error}; ./dev build builds the program")
        self.options = [f"tiles={tiles}"] if tiles else []
        self.inputs = []

    def ask(self, *words):
        request = " ".join(map(str, words))
        self.process.stdin.write(request + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"error": "the program has ended"}
        if "error" in answer:
            sys.exit(f"cpu_peer: {request}: {answer['error']}")
        return answer

    def run(self, case, repeats, warm, *options):
        """The seconds of each of `repeats` calls."""
        counts = f"repeats={repeats}", f"warm={warm}"
        return self.ask(*case, *counts, *self.inputs, *self.options, *options)["runs"]


class Torch:
    """PyTorch, in this process."""

    def __init__(self):
        try:
            import torch
        except ImportError:
            sys.exit("cpu_peer: there is no PyTorch; --peer none runs ours alone")
        self.torch = torch
        self.inputs = None

    def facts(self):
        torch = self.torch
        parallel = torch.__config__.parallel_info()
        return {
            "name": "torch.nn.functional.scaled_dot_product_attention",
            "version": torch.__version__,
            "capability": torch.backends.cpu.get_cpu_capability(),
            "parallel": [line.strip() for line in parallel.splitlines() if line.strip()],
        }

    def dtype(self, case):
        return {"f32": self.torch.float32, "f64": self.torch.float64}[case.type]

    def draw(self, case, path):
        """Normal Q, K, V and dO, kept here and laid down in a file."""
        shape = (4, 1, case.heads, case.seq, case.head_dim)
        drawn = self.torch.from_file(path, shared=True, size=math.prod(shape), dtype=self.dtype(case))
        drawn.normal_(generator=self.torch.Generator().manual_seed(1))
        self.inputs = [tensor.clone() for tensor in drawn.view(shape).unbind(0)]

    def call(self, case):
        """What is timed: a function without arguments that returns its results."""
        torch = self.torch
        torch.set_num_threads(case.threads)
        q, k, v, d_o = self.inputs

        def attention(q, k, v):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=case.mask == "causal")

        if case.direction == "forward":

            def forward():
                with torch.no_grad():
                    return [attention(q, k, v)]

            return forward
        leaves = [tensor.clone().requires_grad_() for tensor in (q, k, v)]
        o = attention(*leaves)
        return lambda: torch.autograd.grad(o, leaves, d_o, retain_graph=True)

    def difference(self, case, results, path):
        """The largest one between `results` and those of the file, and the largest element."""
        results = self.torch.cat([tensor.flatten() for tensor in results])
        ours = self.torch.from_file(path, size=results.numel(), dtype=self.dtype(case))
        return (results - ours).abs().max().item(), results.abs().max().item()


def timed(call, repeats, warm):
    runs = []
    for i in range(warm + repeats):
        start = time.perf_counter()
        result = call()
        runs.append(time.perf_counter() - start)
        del result
    return runs[warm:]


def measure(case, runners, turns, turn_seconds, pin):
    """Lets the runners (each: repeats, warm → seconds) take turns. The first run of each tells how many of
    its runs fill a turn. Short ones begin each turn with one that isn't timed, so that they find the caches
    theirs and the other's threads asleep. Cores differ, most of all where others share them: what runs on one
    thread stays on one core for a turn of both, and each turn is on another."""
    cores = sorted(os.sched_getaffinity(0))
    plans = []
    for runner in runners:
        (first,) = runner(1, 0)
        plans.append((max(1, min(100, round(turn_seconds / first))), 1 if first < 0.5 else 0))
    seconds = [[] for _ in runners]
    for turn in range(turns):
        if case.threads == 1:
            pin({cores[(2 * turn + 1) % len(cores)]})
        for kept, runner, plan in zip(seconds, runners, plans):
            kept += runner(*plan)
    pin(cores)
    return [statistics.median(kept) for kept in seconds], seconds


def cpu_name():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--program", default=str(ROOT / "build/release/tests/bench/attention_rate"))
    parser.add_argument("--peer", choices=["torch", "none"], default="torch")
    parser.add_argument("--threads", type=int, nargs="+", default=sorted({1, os.cpu_count()}))
    parser.add_argument("--types", choices=["f32", "f64"], nargs="+", default=["f32", "f64"])
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--seq", type=int, nargs="+", default=[2048, 8192])
    parser.add_argument("--head-dim", type=int, nargs="+", default=[64, 128])
    parser.add_argument("--backward", action="store_true", help="the backward pass as well")
    parser.add_argument("--tiles", metavar="BrxBc", help="tiles of ours, such as 64x128")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--turn-seconds", type=float, default=0.2, help="what short runs are repeated for")
    parser.add_argument("--out", metavar="FILE", help="JSON with the machine, the versions and every run")
    return parser.parse_args()


def cases(args):
    """Grouped by what shares inputs: full before causal, f32 before f64."""
    for threads in args.threads:
        for type_ in sorted(args.types):
            for seq in args.seq:
                for head_dim in args.head_dim:
                    directions = ["forward"] + ["backward"] * args.backward
                    yield [
                        Case(direction, type_, args.heads, seq, head_dim, mask, threads)
                        for direction in directions
                        for mask in ("full", "causal")
                    ]


COLUMNS = [  # title, key, format
    ("pass", "direction", "<8"),
    ("type", "type", "<4"),
    ("threads", "threads", ">7"),
    ("N", "seq", ">6"),
    ("d", "head_dim", ">4"),
    ("mask", "mask", "<6"),
    ("ours", "ours_gflops", ">8.1f"),
    ("peer", "peer_gflops", ">8.1f"),
    ("ours/peer", "ours_over_peer", ">9.2f"),
    ("of peak", "ours_of_peak", ">7.1%"),
    ("peer's", "peer_of_peak", ">7.1%"),
    ("causal/full", "ours_causal_over_full", ">11.2f"),
    ("peer's", "peer_causal_over_full", ">7.2f"),
    ("f64/f32", "ours_f64_over_f32", ">7.2f"),
    ("difference", "difference", ">10.1e"),
]


def table_line(row=None):
    """A row of the table, or without one its titles."""
    cells = []
    for title, key, form in COLUMNS:
        width = form[0] + form[1:].split(".")[0].rstrip("f%e")
        text = title if row is None else format(row[key], form) if row.get(key) is not None else "-"
        cells.append(format(text, width))
    return "  ".join(cells).rstrip()


def main():
    args = arguments()
    ours = Ours(args.program, args.tiles)
    peer = Torch() if args.peer == "torch" else None
    report = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": shlex.join(["python3", *sys.argv]),
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "instructions": None,
        "peer": peer.facts() if peer else None,
        "peak_gflops": {},
        "rows": [],
    }
    print(f"{report['cpu']}, {report['cores']} cores; rates in GFLOP/s")
    if peer:
        print(f"peer: PyTorch {report['peer']['version']}, {report['peer']['capability']}")
        for line in report["peer"]["parallel"]:
            if line.startswith(("Intel", "MKL ")):
                print(f"      {line}")
    print("\n" + table_line(), flush=True)

    def pin(cores):
        for process in (0, ours.process.pid):
            os.sched_setaffinity(process, cores)

    seconds_of = {}  # case → ours, peer's
    agree = True
    with tempfile.TemporaryDirectory() as folder:
        inputs, outputs = os.path.join(folder, "in"), os.path.join(folder, "out")
        for number, group in enumerate(cases(args)):
            first = group[0]
            peak_name = f"{first.type} {first.threads}"
            if peak_name not in report["peak_gflops"]:
                peak = ours.ask("peak", first.type, first.threads)
                report["peak_gflops"][peak_name] = peak["gflops"]
                report["instructions"] = peak["target"]
            peak = report["peak_gflops"][peak_name]
            if peer:
                path = f"{inputs}{number}"  # Our program knows by the name that these are others.
                peer.draw(first, path)
                ours.inputs = [f"in={path}"]
            for case in group:
                runners = [lambda repeats, warm: ours.run(case, repeats, warm)]
                if peer:
                    call = peer.call(case)
                    runners.append(lambda repeats, warm: timed(call, repeats, warm))
                medians, runs = measure(case, runners, args.turns, args.turn_seconds, pin)
                seconds_of[case] = medians
                row = {**case._asdict(), "difference": None, "largest": None}
                for i, who in enumerate(["ours", "peer"][: len(runners)]):
                    row[f"{who}_seconds"] = medians[i]
                    row[f"{who}_gflops"] = 1e-9 * flops(case) / medians[i]
                    row[f"{who}_of_peak"] = row[f"{who}_gflops"] / peak
                    if case.mask == "causal":
                        full = seconds_of[case._replace(mask="full")]
                        row[f"{who}_causal_over_full"] = medians[i] / full[i]
                    if (single := case._replace(type="f32")) != case and single in seconds_of:
                        row[f"{who}_f64_over_f32"] = medians[i] / seconds_of[single][i]
                    row[f"{who}_runs"] = runs[i]
                if peer:
                    row["ours_over_peer"] = row["ours_gflops"] / row["peer_gflops"]
                    ours.run(case, 1, 0, f"out={outputs}")
                    row["difference"], row["largest"] = peer.difference(case, call(), outputs)
                    if not row["difference"] <= TOLERANCE[case.type] * row["largest"]:  # NaN too
                        agree = False
                        print("cpu_peer: the results of the next row disagree", file=sys.stderr)
                report["rows"].append(row)
                print(table_line(row), flush=True)
            if peer:
                os.remove(path)
    peaks = ", ".join(f"{name} {rate:.1f}" for name, rate in report["peak_gflops"].items())
    print(f"\nPeak with {report['instructions']}, by type and threads: {peaks}")
    if args.out:
        rows = ",\n".join("  " + json.dumps(row) for row in report.pop("rows"))  # one a line
        head = json.dumps(report, indent=1).removesuffix("\n}")
        pathlib.Path(args.out).write_text(f'{head},\n "rows": [\n{rows}\n ]\n}}\n', encoding="utf-8")
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
