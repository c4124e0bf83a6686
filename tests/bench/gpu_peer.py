#!/usr/bin/env python3
"""Attention on the GPU, our kernels and PyTorch's in turn, on the same shapes in one run:

    ./dev build && tests/bench/gpu_peer.py --out peer.json

Rates count 4 B H N Nkv d FLOPs forward and 10 backward, half of it under a causal mask, whatever is executed.
Backward is timed without the forward pass that comes before it. Each round lets everyone
run once; a turn is a few runs that warm up and then some that are timed by CUDA events, each after the L2 was
flushed. A figure is the median over the rounds of each turn's median. Results are checked too: ours by
`flashsim measure` itself, PyTorch's against float64 on one head. --peer none runs ours alone.
"""

import argparse
import collections
import contextlib
import datetime
import json
import math
import pathlib
import shlex
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# How far PyTorch's result may lie from float64, by its largest element.
TOLERANCE = {"fp16": 5e-3, "fp32": 2e-3}  # memory-efficient may multiply float32 in TF32
FLUSH_BYTES = 512 * 1024 * 1024
WARM = 2

Shape = collections.namedtuple("Shape", "batch heads kv_heads seq kv_seq head_dim causal backward", defaults=[False])
SHAPES = {
    "few": [
        Shape(1, 32, 32, 8192, 8192, 128, False),
        Shape(1, 32, 32, 8192, 8192, 128, True),
        Shape(4, 16, 16, 2048, 2048, 64, False),
        Shape(4, 16, 16, 2048, 2048, 64, True),
        Shape(8, 16, 16, 1024, 1024, 128, False),
        Shape(1, 32, 8, 4096, 4096, 128, False),
    ],
    "long": [
        Shape(1, 4096 // head_dim, 4096 // head_dim, seq, seq, head_dim, causal)
        for head_dim in (64, 128)
        for seq in (2048, 4096, 8192, 16384)
        for causal in (False, True)
    ],
    "decode": [
        Shape(16, 32, 8, 1, 8192, 128, False),
        Shape(1, 32, 8, 1, 65536, 128, False),
        Shape(64, 32, 8, 1, 2048, 128, False),
        Shape(4, 32, 32, 1, 16384, 64, False),
        Shape(4, 32, 8, 16, 16384, 128, True),
    ],
    "backward": [
        Shape(1, 32, 32, 8192, 8192, 128, True, True),
        Shape(1, 32, 32, 8192, 8192, 128, False, True),
        Shape(1, 32, 32, 2048, 2048, 128, True, True),
        Shape(4, 16, 16, 4096, 4096, 64, True, True),
        Shape(4, 16, 16, 4096, 4096, 64, False, True),
    ],
}
TORCH_WAYS = ("eager", "math", "memory-efficient", "flash", "cudnn")


def flops(shape):
    whole = (10 if shape.backward else 4) * shape.batch * shape.heads * shape.seq * shape.kv_seq * shape.head_dim
    return whole / 2 if shape.causal else whole


class Refused(Exception):
    """A kernel that doesn't take the shape or the type."""


class Ours:
    """flashsim measure, a process for each turn."""

    def __init__(self, args):
        self.program = args.flashsim
        self.options = ["--repeats", str(args.repeats), "--cold", "--counters", "none"]
        self.options += ["--gpu", args.gpu] if args.gpu else []
        self.device = None

    def turn(self, kernel, type_, shape):
        """Median seconds, and the verdict on its result."""
        words = [self.program, "measure", "--kernel", kernel, "--dtype", type_, "--format", "json"]
        for name in ("batch", "heads", "kv_heads", "seq", "kv_seq", "head_dim"):
            words += ["--" + name.replace("_", "-"), str(getattr(shape, name))]
        words += ["--causal" if shape.causal else "--no-causal", *self.options]
        try:
            done = subprocess.run(words, capture_output=True, text=True, check=False)
        except OSError as error:
            sys.exit(f"gpu_peer: {error}; ./dev build builds flashsim, and --flashsim says where it is")
        if done.returncode not in (0, 1):
            raise Refused(" ".join(done.stderr.split()) or f"flashsim ended with status {done.returncode}")
        result = json.loads(done.stdout)["result"]
        self.device = result["device"]
        (measured,) = result["kernels"]
        if measured["measurement"] is None:
            raise Refused(f"its result is {measured['verdict']}")
        return measured["measurement"]["time"]["median_seconds"], measured["verdict"]


class Torch:
    """PyTorch's attention, in this process."""

    def __init__(self, args):
        try:
            import torch
            from torch.nn.attention import SDPBackend, sdpa_kernel
        except ImportError as error:
            sys.exit(f"gpu_peer: {error}; install PyTorch 2.5 or later with CUDA, or give --peer none")
        if not torch.cuda.is_available():
            sys.exit("gpu_peer: PyTorch sees no GPU; --peer none runs ours alone")
        self.torch = torch
        self.sdpa_kernel = sdpa_kernel
        self.backends = {
            "math": SDPBackend.MATH,
            "memory-efficient": SDPBackend.EFFICIENT_ATTENTION,
            "flash": SDPBackend.FLASH_ATTENTION,
            "cudnn": SDPBackend.CUDNN_ATTENTION,
        }
        self.repeats = args.repeats
        self.inputs = self.expected = self.mask = None
        self.flushed = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")
        torch.set_float32_matmul_precision("highest")  # float32 products, not TF32
        torch.manual_seed(1)

    def facts(self):
        return {"version": self.torch.__version__, "cuda": self.torch.version.cuda,
                "cudnn": self.torch.backends.cudnn.version(), "gpu": self.torch.cuda.get_device_name()}

    def draw(self, type_, shape):
        """Q, K and V for what follows, and what float64 makes of the first head."""
        torch = self.torch
        dtype = {"fp16": torch.float16, "fp32": torch.float32}[type_]

        def tensor(heads, seq):
            return torch.randn(shape.batch, heads, seq, shape.head_dim, device="cuda", dtype=dtype)

        self.inputs = (tensor(shape.heads, shape.seq), *(tensor(shape.kv_heads, shape.kv_seq) for _ in range(2)))
        self.inputs = [x.requires_grad_(shape.backward) for x in self.inputs]
        self.gradient = tensor(shape.heads, shape.seq) if shape.backward else None
        # The last query sees the last key, as in flashsim.
        hidden = torch.ones(shape.seq, shape.kv_seq, dtype=torch.bool, device="cuda").triu(
            1 + shape.kv_seq - shape.seq)
        self.mask = hidden if shape.causal else None
        q, k, v = (x[0, 0].detach().double() for x in self.inputs)
        s = q @ k.T / math.sqrt(shape.head_dim)
        if shape.causal:
            s = s.masked_fill(hidden, -math.inf)
        p = torch.softmax(s, dim=-1)
        if not shape.backward:
            self.expected = p @ v
            return
        # dQ of the first head.
        d_o = self.gradient[0, 0].double()
        d_p = d_o @ v.T
        self.expected = p * (d_p - (d_o * (p @ v)).sum(-1, keepdim=True)) @ k / math.sqrt(shape.head_dim)

    def eager(self, shape):
        """As a model writes it that doesn't call the fused function."""
        torch = self.torch
        q, k, v = self.inputs
        if shape.kv_heads != shape.heads:
            k, v = (x.repeat_interleave(shape.heads // shape.kv_heads, dim=1) for x in (k, v))
        s = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(shape.head_dim)
        if self.mask is not None:
            s = s.masked_fill(self.mask, -math.inf)
        return torch.matmul(torch.softmax(s, dim=-1), v)

    def attend(self, way, shape):
        if way == "eager":
            return self.eager(shape)
        grouped = {"enable_gqa": True} if shape.kv_heads != shape.heads else {}
        attention = self.torch.nn.functional.scaled_dot_product_attention
        if not shape.causal or shape.seq == shape.kv_seq:
            return attention(*self.inputs, is_causal=shape.causal, **grouped)
        from torch.nn.attention.bias import causal_lower_right
        return attention(*self.inputs, attn_mask=causal_lower_right(shape.seq, shape.kv_seq), **grouped)

    def work(self, way, shape):
        """What is timed, as a function that gives what is checked."""
        if not shape.backward:
            return lambda: self.attend(way, shape)
        o = self.attend(way, shape)
        return lambda: self.torch.autograd.grad(o, self.inputs, self.gradient, retain_graph=True)[0]

    def seconds(self, work):
        start, stop = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.flushed.zero_()  # It also gives the host time to put the work behind it.
        start.record()
        work()
        stop.record()
        stop.synchronize()
        return 1e-3 * start.elapsed_time(stop)

    def turn(self, way, shape):
        """Median seconds, and the largest difference on the first head over the largest value there."""
        torch = self.torch
        backend = self.backends.get(way)
        try:
            with self.sdpa_kernel([backend]) if backend else contextlib.nullcontext():
                work = self.work(way, shape)
                difference = work()[0, 0].double() - self.expected
                runs = [self.seconds(work) for _ in range(WARM + self.repeats)]
        except RuntimeError as error:  # No such kernel for it, or no memory
            raise Refused(str(error).splitlines()[0]) from None
        finally:
            torch.cuda.empty_cache()
        return statistics.median(runs[WARM:]), (difference.abs().max() / self.expected.abs().max()).item()


def driver_version():
    try:
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        return subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return None


def measure(type_, shape, kernels, ways, ours, torch, rounds):
    """One row a runner: who, seconds of each round, median, rate, and how right it was."""
    turns = {kernel: lambda k=kernel: ours.turn(k, type_, shape) for kernel in kernels}
    if torch:
        torch.draw(type_, shape)
        turns |= {f"torch {way}": lambda w=way: torch.turn(w, shape) for way in ways}
    rows = {who: {"type": type_, **shape._asdict(), "who": who, "seconds": []} for who in turns}
    for _ in range(rounds):
        for who, turn in turns.items():
            if "refused" in rows[who]:
                continue
            try:
                seconds, check = turn()
            except Refused as refusal:
                rows[who]["refused"] = str(refusal)
                continue
            rows[who]["seconds"].append(seconds)
            if isinstance(check, str):
                rows[who].update(verdict=check, right=check != "wrong")
            else:
                rows[who].update(difference=check, right=check <= TOLERANCE[type_])  # NaN isn't
    for row in rows.values():
        if "refused" not in row:
            row["median_seconds"] = statistics.median(row["seconds"])
            row["tflops"] = 1e-12 * flops(shape) / row["median_seconds"]
    for row in rows.values():
        if "refused" not in row:
            row["ours_over_it"] = {
                kernel: row["median_seconds"] / rows[kernel]["median_seconds"]
                for kernel in kernels if "refused" not in rows[kernel]
            }
    return list(rows.values())


def print_table(type_, shape, kernels, rows):
    mask = "causal" if shape.causal else "not causal"
    heads = f"H {shape.heads}" + (f" · Hkv {shape.kv_heads}" if shape.kv_heads != shape.heads else "")
    seq = f"N {shape.seq}" + (f" · Nkv {shape.kv_seq}" if shape.kv_seq != shape.seq else "")
    back = " · backward" if shape.backward else ""
    print(f"\n{type_} · B {shape.batch} · {heads} · {seq} · d {shape.head_dim} · {mask}{back}")
    titles = [f"{kernel[:2]}/it" for kernel in kernels]
    print(f"  {'':<24}{'ms':>10}{'TFLOP/s':>10}" + "".join(f"{title:>8}" for title in titles) + "   result")
    for row in rows:
        if "refused" in row:
            print(f"  {row['who']:<24}{'-':>10}   {row['refused'][:72]}")
            continue
        ratios = [row["ours_over_it"].get(kernel) for kernel in kernels]
        result = row.get("verdict") or f"{row['difference']:.1e} from float64"
        print(f"  {row['who']:<24}{1e3 * row['median_seconds']:>10.3f}{row['tflops']:>10.1f}"
              + "".join(f"{ratio:>8.2f}" if ratio else f"{'-':>8}" for ratio in ratios)
              + f"   {result}" + ("" if row["right"] else "  WRONG"), flush=True)


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--flashsim", default=str(ROOT / "build/release/app/flashsim"), metavar="PROGRAM")
    parser.add_argument("--gpu", metavar="MACHINE", help="flashsim's --gpu, where it knows no machine by itself")
    parser.add_argument("--peer", choices=["torch", "none"], default="torch")
    parser.add_argument("--fp16", nargs="*", default=["01_standard", "02_standard_cublas"], metavar="KERNEL",
                        help="ours to run in fp16")
    parser.add_argument("--fp32", nargs="*", default=["03_flash_fp32"], metavar="KERNEL",
                        help="ours to run in fp32")
    parser.add_argument("--shapes", choices=SHAPES, default="few", help="which of the lists of shapes")
    parser.add_argument("--only", type=int, nargs="+", metavar="INDEX", help="of the list, these alone")
    parser.add_argument("--ways", nargs="+", choices=TORCH_WAYS, default=TORCH_WAYS, help="of PyTorch's, these")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=11, help="timed runs in a turn")
    parser.add_argument("--out", metavar="FILE", help="JSON with the GPU, the versions and every turn")
    return parser.parse_args()


def main():
    args = arguments()
    ours = Ours(args)
    torch = Torch(args) if args.peer == "torch" else None
    kernels_of = {"fp32": args.fp32, "fp16": args.fp16}
    rows = []
    for type_, kernels in kernels_of.items():
        # PyTorch's flash and cuDNN kernels have no float32.
        ways = [way for way in args.ways if type_ == "fp16" or way not in ("flash", "cudnn")]
        shapes = SHAPES[args.shapes]
        for shape in (shapes[i] for i in args.only or range(len(shapes))):
            if not kernels:
                continue
            of_shape = measure(type_, shape, kernels, ways, ours, torch, args.rounds)
            print_table(type_, shape, kernels, of_shape)
            rows += of_shape
    if args.out:
        report = {
            "schema": "flashsim.measurement/1",
            "what": "Attention kernels of flashsim and PyTorch in turn; ours_over_it is its time over ours",
            "gpu": (ours.device or {}).get("name"),
            "driver": (ours.device or {}).get("driver") or driver_version(),
            "torch": torch.facts() if torch else None,
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "command": shlex.join(["python3", *sys.argv]),
        }
        head = json.dumps(report, indent=1).removesuffix("\n}")
        lines = ",\n".join("  " + json.dumps(row) for row in rows)  # one a line
        pathlib.Path(args.out).write_text(f'{head},\n "rows": [\n{lines}\n ]\n}}\n', encoding="utf-8")
    return 0 if all(row.get("right", True) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
