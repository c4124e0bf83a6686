#!/usr/bin/env python3
"""The ladder's kernels over many shapes: what the model has for each, and what the GPU's counters, clock and
allocator say, as one file.

    ./dev build && tests/bench/gpu_ladder.py --kernel 03_flash_fp32 --gpu machine.json --out ladder.json

It runs `flashsim measure` for each shape, as a user would, and keeps of each result what is compared. The
machine file comes from `flashsim calibrate --out machine.json`.
"""

import argparse
import json
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# B, H, Hkv, N, Nkv, d, causal: long and short, d 64 and 128, grouped heads, ragged, more keys than queries.
SHAPES = [
    (1, 32, 32, 512, 512, 128, True),
    (8, 16, 16, 512, 512, 64, False),
    (4, 16, 16, 1024, 1024, 64, True),
    (2, 32, 32, 1024, 1024, 128, False),
    (4, 16, 16, 2048, 2048, 64, False),
    (1, 32, 32, 2048, 2048, 128, True),
    (2, 16, 4, 4096, 4096, 64, False),
    (1, 32, 8, 4096, 4096, 128, True),
    (1, 16, 16, 3001, 3001, 64, False),
    (1, 16, 16, 5000, 5000, 128, True),
    (2, 16, 16, 1000, 6000, 128, True),
    (1, 32, 32, 8192, 8192, 128, True),
    (1, 32, 32, 8192, 8192, 128, False),
    (1, 8, 8, 16384, 16384, 64, True),
    (1, 8, 2, 16384, 16384, 128, False),
    (1, 4, 2, 32768, 32768, 64, True),
    (1, 4, 4, 32768, 32768, 128, True),
]
# Few queries over many keys, as when text is made a word at a time, or a few guessed ahead.
FEW_QUERIES = [
    (16, 32, 8, 1, 8192, 128, False),
    (1, 32, 8, 1, 65536, 128, False),
    (64, 32, 4, 1, 4096, 128, False),
    (32, 32, 32, 1, 2048, 128, False),
    (8, 32, 8, 1, 1024, 128, False),
    (4, 32, 8, 1, 512, 64, False),
    (16, 32, 8, 1, 8192, 64, False),
    (1, 8, 8, 1, 131072, 128, False),
    (8, 64, 8, 1, 16384, 64, False),
    (3, 24, 8, 1, 10007, 128, False),
    (1, 16, 2, 1, 65521, 64, False),
    (8, 32, 8, 4, 16384, 128, True),
    (4, 32, 8, 16, 8192, 128, True),
    (2, 16, 16, 64, 16384, 64, True),
    (2, 32, 8, 100, 5000, 128, True),
]


def shapes_for(kernel):
    if kernel.startswith("05"):
        return FEW_QUERIES
    # The bound on rounding in sums over more queries than that says nothing, and a verdict neither.
    return [shape for shape in SHAPES if shape[3] <= 8192] if kernel.startswith("06") else SHAPES


def measured(args, shape):
    batch, heads, kv_heads, seq, kv_seq, head_dim, causal = shape
    command = [args.flashsim, "measure", "--kernel", args.kernel, "--batch", batch, "--heads", heads,
               "--kv-heads", kv_heads, "--seq", seq, "--kv-seq", kv_seq, "--head-dim", head_dim,
               "--causal" if causal else "--no-causal", "--format", "json"]
    if args.gpu:
        command += ["--gpu", args.gpu]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if not done.stdout:
        sys.exit(f"{shlex.join(str(word) for word in command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def row_of(shape, result):
    kernel = result["kernels"][0]
    row = dict(zip(("batch", "heads", "kv_heads", "seq", "kv_seq", "head_dim", "causal"), shape))
    row.update(dtype=kernel["dtype"], tile_q=kernel["tile_q"], tile_k=kernel["tile_k"], verdict=kernel["verdict"])
    seen = kernel["measurement"]
    if seen is None:
        return row
    row["bytes"] = seen["bytes"]
    for figure in seen["figures"]:
        row[figure["figure"]] = {"model": figure["model"], "measured": figure["seen"]}
    time = seen["time"]
    row["seconds"] = {"model": time["model_seconds"], "measured": time["median_seconds"],
                      "least": time["least_seconds"], "most": time["most_seconds"]}
    row.update({counter["what"]: counter["value"] for counter in seen["counters"] if counter["what"] not in row})
    row["registers_per_thread"] = [each["registers_per_thread"] for each in seen["kernels"]]
    row["local_memory_bytes_per_thread"] = [each["local_memory_bytes_per_thread"] for each in seen["kernels"]]
    return row


def off(row, figure):
    both = row.get(figure)
    if not both or not both["model"] or both["measured"] is None:
        return "      –"
    return f"{100 * (both['measured'] / both['model'] - 1):+6.1f}%"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", default="03_flash_fp32")
    parser.add_argument("--gpu", help="a machine's name or file; else the one that fits the GPU")
    parser.add_argument("--flashsim", default=str(ROOT / "build/release/app/flashsim"))
    parser.add_argument("--out", help="write JSON here")
    args = parser.parse_args()
    figures = ["sm_read_bytes", "sm_written_bytes", "hbm_read_bytes", "hbm_written_bytes", "peak_memory_bytes",
               "seconds"]
    report = {"schema": "flashsim.measurement/1",
              "what": f"{args.kernel} beside the model, caches flushed before each run",
              "command": shlex.join(["tests/bench/gpu_ladder.py", *sys.argv[1:]])}
    print(f"{'B, H/Hkv, N/Nkv, d':<34}" + "".join(f"{name.removesuffix('_bytes'):>13}" for name in figures))
    rows = []
    for shape in shapes_for(args.kernel):
        whole = measured(args, shape)
        result = whole["result"]
        report.setdefault("gpu", result["device"]["name"])
        report.setdefault("driver", result["device"]["driver"])
        report.setdefault("date", result["date"])
        report.setdefault("machine", result["machine"])
        rows.append(row_of(shape, result))
        batch, heads, kv_heads, seq, kv_seq, head_dim, causal = shape
        name = f"{batch}, {heads}/{kv_heads}, {seq}/{kv_seq}, {head_dim}{' causal' if causal else ''}"
        print(f"{name:<34}" + "".join(f"{off(rows[-1], each):>13}" for each in figures) +
              ("" if rows[-1]["verdict"] == "right" else f"  {rows[-1]['verdict']}"), flush=True)
    report["rows"] = rows
    if args.out:
        with open(args.out, "w") as out:
            json.dump(report, out, indent=1)
            out.write("\n")


if __name__ == "__main__":
    main()
