#!/usr/bin/env python3
"""What each switch and fault breaks, on the GPU and on the CPU with the same tiles and inputs:

    ./dev build && tests/bench/gpu_switches.py --out switches.json

It runs `flashsim run` twice for each, with --device cuda and without, and keeps the verdict, how far O and L are
off, how many rows are wrong and where the first is.
"""

import argparse
import datetime
import json
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Ragged, so that the last tile has padding. Each switch gets scores that it breaks: large ones overflow without
# the maximum and fall below a finite mask, small ones leave padding its weight.
INPUTS = "--heads 2 --seq 1000 --head-dim 64 --magnitude 3 --tile-q 128 --tile-k 64"
SWITCHES = [("", ""), ("--no-subtract-max", "--magnitude 10"), ("--no-rescale", ""), ("--fault rescale-l-only", ""),
            ("--fault rescale-o-only", ""), ("--fault inverted-rescale", ""), ("--fault reset-per-tile", ""),
            ("--fault finite-mask", "--magnitude 300 --scale 1"),
            ("--fault unmasked-padding", "--magnitude 1 --no-causal")]


def run(flashsim, words):
    done = subprocess.run([flashsim, "run", *words, "--format", "json"], capture_output=True, text=True)
    if not done.stdout:
        sys.exit(f"flashsim run {shlex.join(words)}: {done.stderr.strip()}")
    return json.loads(done.stdout)["result"]


def kept(result):
    o, l, fault = result["error"], result["lse_error"], result["first_fault"]
    return {"verdict": result["verdict"], "max_abs_o": o["max_abs"], "max_abs_l": l["max_abs"],
            "wrong_rows_o": o["wrong_rows"], "wrong_rows_l": l["wrong_rows"], "rows": o["rows"],
            "first_wrong": fault and {key: fault[key] for key in ("head", "row", "key_tile")}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flashsim", default=str(ROOT / "build/release/app/flashsim"))
    parser.add_argument("--out", help="write JSON here")
    args = parser.parse_args()
    rows = []
    for switch, other in SWITCHES:
        words = INPUTS.split()
        for option in other.split("--")[1:]:  # stands in place of the same option above
            name = "--" + option.split()[0]
            if name in words:
                at = words.index(name)
                del words[at:at + 2]
        words += other.split() + switch.split()
        row = {"switch": switch, "options": shlex.join(words),
               "cuda": kept(run(args.flashsim, [*words, "--device", "cuda"])), "cpu": kept(run(args.flashsim, words))}
        rows.append(row)
        for device in ("cuda", "cpu"):
            print(f"{switch or 'nothing':<28} {device:<5} {row[device]}")
    if args.out:
        gpu = json.loads(subprocess.run([args.flashsim, "measure", "--kernel", "03", "--seq", "128", "--heads", "1",
                                         "--counters", "none", "--repeats", "1", "--format", "json"],
                                        capture_output=True, text=True, check=True).stdout)["result"]["device"]
        with open(args.out, "w") as out:
            json.dump({"schema": "flashsim.measurement/1",
                       "what": "Each switch and fault of 03_flash_fp32 on the GPU, and of the same tiles on the CPU",
                       "gpu": gpu["name"], "driver": gpu["driver"],
                       "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
                       "command": shlex.join(["tests/bench/gpu_switches.py", *sys.argv[1:]]), "rows": rows}, out,
                      indent=1)
            out.write("\n")


if __name__ == "__main__":
    main()
