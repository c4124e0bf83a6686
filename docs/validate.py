#!/usr/bin/env python3
"""The same attention three ways: written out in PyTorch, PyTorch's own function, and flashsim.

    ./dev build && python3 docs/validate.py

First the three-token example, then the cases of tests/data/golden. Every way must give what the written-out
one gives: the largest difference over the largest value may be 1e-12 in float64 and 2e-5 in float32. What runs
in float32 is held against float64 arithmetic on the same inputs, rounded to float32. Needs PyTorch 2.1 or
later, and no GPU; `--device cuda` runs flashsim's kernels too.

Exit status: 0 all are equal, 1 something differs, 2 PyTorch or flashsim is missing.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests/data/golden"
TOLERANCE = {"f64": 1e-12, "f32": 2e-5}


def stop(message):
    print(f"validate: {message}", file=sys.stderr)
    sys.exit(2)


try:
    import numpy
    import torch
    from torch.nn.functional import scaled_dot_product_attention
except ImportError as error:
    stop(f"{error}; install PyTorch 2.1 or later and NumPy: pip install torch numpy")


def visible(rows, keys, causal, alignment):
    """Which keys each row sees. Bottom-right: the last row sees all of them."""
    if not causal:
        return torch.ones(rows, keys, dtype=torch.bool)
    shift = keys - rows if alignment == "bottom-right" else 0
    return torch.arange(keys)[None, :] <= torch.arange(rows)[:, None] + shift


def written_out(q, k, v, scale, mask):
    """O = softmax(scale · Q Kᵀ, masked) V and L = ln Σ exp, a step a line."""
    s = scale * q @ k.transpose(-2, -1)
    s = s.masked_fill(~mask, -torch.inf)
    m = s.amax(dim=-1, keepdim=True)
    p = torch.exp(s - m)
    l = p.sum(dim=-1, keepdim=True)
    return p @ v / l, (m + torch.log(l)).squeeze(-1)


def sdpa(q, k, v, scale, mask):
    """PyTorch's own function. It is given the mask, since its is_causal is always top-left."""
    return scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)


def one_head_each(x, heads):
    """Grouped heads: query head h reads key/value head h // (heads / kv_heads)."""
    return x.repeat_interleave(heads // x.shape[1], dim=1)


def distance(got, expected):
    """The largest difference over the largest value."""
    if got.shape != expected.shape:
        return float("nan")
    return ((got.double() - expected).abs().max() / expected.abs().max()).item()


class Table:
    """One line a way; remembers whether all were within their tolerance."""

    def __init__(self):
        self.equal = True
        print(f"{'case':<20} {'way':<22} {'type':<5} {'O':>8} {'L':>8}  within")

    def line(self, case, way, type_, o, expected_o, l=None, expected_l=None):
        d_o = distance(o, expected_o)
        d_l = None if l is None else distance(l, expected_l)
        good = d_o <= TOLERANCE[type_] and (d_l is None or d_l <= TOLERANCE[type_])  # NaN isn't
        self.equal = self.equal and good
        verdict = f"{TOLERANCE[type_]:.0e}" if good else "DIFFERS"
        l_text = "-" if d_l is None else f"{d_l:.1e}"
        print(f"{case:<20} {way:<22} {type_:<5} {d_o:>8.1e} {l_text:>8}  {verdict}")


def flashsim(args, *words):
    """What it prints. A wrong result, its status 1, is for the table to show."""
    try:
        done = subprocess.run([args.flashsim, *words], capture_output=True, text=True, check=False)
    except OSError as error:
        stop(f"{error}; ./dev build builds flashsim, and --flashsim says where it is")
    if done.returncode not in (0, 1):
        stop(f"flashsim {words[0]}: {' '.join(done.stderr.split())}")
    return done.stdout


def three_tokens(args, table):
    """The example of the README. Its O, written out, is returned."""
    if args.replay:
        try:
            text = pathlib.Path(args.replay).read_text(encoding="utf-8")
        except OSError as error:
            stop(error)
    else:
        text = flashsim(args, "replay", "three-token", "--format", "json")
    report = json.loads(text)
    scenario = report["input"]["scenario"]
    problem, tensors = scenario["problem"], scenario["tensors"]
    q, k, v = (torch.tensor(tensors[name], dtype=torch.float64) for name in "qkv")
    mask = visible(q.shape[-2], k.shape[-2], problem["causal"], problem["causal_alignment"])
    o, l = written_out(q, k, v, problem["scale"], mask)
    table.line("three-token", "PyTorch's SDPA", "f64", sdpa(q, k, v, problem["scale"], mask), o)
    got_o, got_l = (torch.tensor(report["result"][name], dtype=torch.float64) for name in ("output", "lse"))
    type_ = {"fp32": "f32", "fp64": "f64"}[problem["dtype"]]
    table.line("three-token", "flashsim replay", type_, got_o, o, got_l, l)
    return o


def golden_case(args, table, folder):
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    q, k, v, o_file, l_file = (
        torch.from_numpy(numpy.load(folder / f"{name}.npy")) for name in ("q", "k", "v", "o", "lse")
    )
    k, v = one_head_each(k, q.shape[1]), one_head_each(v, q.shape[1])
    mask = visible(q.shape[2], k.shape[2], case["causal"], case["causal_alignment"])
    o, l = written_out(q, k, v, case["scale"], mask)
    table.line(folder.name, "the file's O and L", "f64", o_file, o, l_file, l)
    table.line(folder.name, "PyTorch's SDPA", "f64", sdpa(q, k, v, case["scale"], mask), o)

    words = ["run", "--scale", repr(case["scale"]), "--causal-alignment", case["causal_alignment"]]
    words.append("--causal" if case["causal"] else "--no-causal")
    for name in "qkv":
        words += [f"--{name}", str(folder / f"{name}.npy")]
    rounded = [x.float().double() for x in (q, k, v)]
    o32, l32 = written_out(*rounded, case["scale"], mask)
    ways = [("flashsim run", "f64", [], o, l), ("flashsim run", "f32", [], o32, l32)]
    if args.device == "cuda":
        ways.append(("flashsim run, CUDA", "f32", ["--device", "cuda"], o32, l32))
    for way, type_, device, expected_o, expected_l in ways:
        with tempfile.TemporaryDirectory() as saved:
            dtype = type_.replace("f", "fp")
            flashsim(args, *words, "--compute", type_, "--dtype", dtype, *device, "--save", saved)
            got = [torch.from_numpy(numpy.load(f"{saved}/{name}.npy")) for name in ("o", "lse")]
        table.line(folder.name, way, type_, got[0], expected_o, got[1], expected_l)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--flashsim", default=str(ROOT / "build/release/app/flashsim"), metavar="PROGRAM")
    parser.add_argument("--replay", metavar="FILE", help="flashsim replay's JSON instead of running it")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="cuda: on the GPU as well")
    args = parser.parse_args()

    print(f"PyTorch {torch.__version__}. Differences are from attention written out in float64.\n")
    table = Table()
    example = three_tokens(args, table)
    for folder in sorted(path.parent for path in GOLDEN.glob("*/case.json")):
        golden_case(args, table, folder)
    print("\nThe three tokens' O:", ", ".join(f"({a:.6g}, {b:.6g})" for a, b in example[0, 0].tolist()))
    print("all equal" if table.equal else "NOT all equal")
    return 0 if table.equal else 1


if __name__ == "__main__":
    sys.exit(main())
