#!/usr/bin/env python3
"""Counters of PyTorch's attention kernels, shape by shape, as JSON rows.

    python3 tests/bench/gpu_counters.py counters.json

Needs a GPU, PyTorch and Nsight Compute (ncu) with permission to read counters. The script runs itself under
ncu, which flushes the caches before each pass and leaves the clocks alone.
"""
import csv
import json
import subprocess
import sys
import tempfile

METRICS = {
    "gpu__time_duration.sum": "time_ns",
    "l1tex__m_xbar2l1tex_read_bytes.sum": "l2_to_sm_read_bytes",
    "l1tex__m_l1tex2xbar_write_bytes.sum": "sm_to_l2_write_bytes",
    "dram__bytes_read.sum": "dram_read_bytes",
    "dram__bytes_write.sum": "dram_write_bytes",
    "lts__t_sectors_srcunit_ltcfabric.sum": "sectors_between_partitions",
    "sm__cycles_elapsed.max": "sm_cycles",
    "launch__grid_size": "blocks",
}
# batch, heads, key/value heads, sequence, head dimension, causal
SHAPES = [
    (1, 32, 32, 512, 128, True), (1, 32, 32, 2048, 128, True),
    (1, 32, 32, 4096, 128, True), (1, 32, 32, 4096, 128, False),
    (1, 32, 32, 8192, 128, True), (1, 32, 32, 8192, 128, False),
    (1, 16, 16, 10000, 128, True), (1, 16, 16, 16384, 128, False),
    (1, 32, 32, 16384, 128, True), (1, 32, 8, 16384, 128, True),
    (4, 16, 16, 16384, 128, True), (8, 16, 16, 8192, 128, True),
    (1, 8, 8, 32768, 128, True), (1, 8, 8, 32768, 128, False),
    (1, 8, 8, 40000, 128, True), (1, 6, 6, 49152, 128, True),
    (1, 1, 1, 65536, 128, True), (1, 4, 4, 65536, 128, True),
    (1, 4, 4, 65536, 128, False), (1, 1, 1, 131072, 128, True),
    (1, 2, 2, 131072, 128, True),
    (64, 16, 16, 1024, 64, False), (8, 16, 16, 2048, 64, True),
    (4, 16, 16, 4096, 64, True), (2, 16, 16, 32768, 64, True),
    (1, 32, 32, 32768, 64, False), (1, 4, 4, 131072, 64, True),
    (1, 8, 8, 16384, 256, True), (1, 4, 4, 32768, 256, True),
    (1, 4, 4, 32768, 256, False),
]
KERNELS = ("pytorch-flash", "cudnn-sdpa")


def attend():
    """One call a shape and kernel, each between the profiler's start and stop."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    backends = dict(zip(KERNELS, (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION)))
    torch.manual_seed(0)
    runtime = torch.cuda.cudart()
    for batch, heads, kv_heads, seq, dim, causal in SHAPES:
        for kernel in KERNELS:
            q = torch.randn(batch, heads, seq, dim, device="cuda", dtype=torch.float16)
            k = torch.randn(batch, kv_heads, seq, dim, device="cuda", dtype=torch.float16)
            v = torch.randn_like(k)
            q.requires_grad_(True)  # logsumexp is written only for a backward pass
            with sdpa_kernel([backends[kernel]]):
                torch.cuda.synchronize()
                runtime.cudaProfilerStart()
                torch.nn.functional.scaled_dot_product_attention(
                    q, k, v, is_causal=causal, enable_gqa=heads != kv_heads)
                torch.cuda.synchronize()
                runtime.cudaProfilerStop()


def number(text):
    return float(text.replace(",", ""))


def main(target):
    with tempfile.NamedTemporaryFile(suffix=".csv") as log:
        subprocess.run(
            ["ncu", "--profile-from-start", "off", "--cache-control", "all", "--clock-control", "none",
             "--metrics", ",".join(METRICS), "--csv", "--page", "raw", "--log-file", log.name,
             sys.executable, __file__, "--attend"], check=True, stdout=subprocess.DEVNULL)
        with open(log.name) as text:
            lines = [line for line in text if line.startswith('"')]
    table = list(csv.reader(lines))
    header, kernels = table[0], table[2:]  # the second line has the units
    columns = {name: header.index(metric) for metric, name in METRICS.items()}
    calls = [(shape, kernel) for shape in SHAPES for kernel in KERNELS]
    if len(kernels) != len(calls):
        sys.exit(f"{len(calls)} calls launched {len(kernels)} kernels")
    rows = []
    for (shape, kernel), line in zip(calls, kernels):
        values = {name: number(line[at]) for name, at in columns.items()}
        time, cycles = values.pop("time_ns"), values.pop("sm_cycles")
        values["between_partitions_bytes"] = 32 * values.pop("sectors_between_partitions")
        row = dict(kernel=kernel, **dict(zip(("batch", "heads", "kv_heads", "seq", "head_dim", "causal"), shape)),
                   dtype="fp16", **{name: int(value) for name, value in values.items()},
                   time_us=round(time / 1000, 3), sm_clock_mhz=round(1000 * cycles / time))
        rows.append(row)
    with open(target, "w") as out:
        json.dump({"rows": rows}, out, indent=1)


if __name__ == "__main__":
    if sys.argv[1:] == ["--attend"]:
        attend()
    elif len(sys.argv) == 2:
        main(sys.argv[1])
    else:
        sys.exit(__doc__)
