#!/usr/bin/env bash
# Builds dtc and trains a small GPT-2 on English text twice, on eight virtual devices and on one, then compares the two
# runs. Complete by itself on a fresh Debian 12 (as root, or with sudo); safe to run again.
# Usage: scripts/quickstart.sh
set -euo pipefail
cd "$(dirname "$0")/.."

steps=400
learning_rate=3e-3
loss_must_be_below=2.6 # nats a byte; chance is 5.5, the frequencies of the bytes alone give 3.3
out=build/quickstart
bin=build/release/bin

say() { printf '\n==> %s\n' "$*"; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

# The prose of Perl's manual, about 3 MB. The same installed package always gives the same text.
make_text() {
  local skip='/perl([0-9]+delta|api|cn|intern|jp|ko|modlib|toc|tw|uniprops)\.pod$' # lists, and other languages
  dpkg -L perl-doc | grep '/perl[^/]*\.pod$' | grep -Ev "$skip" | LC_ALL=C sort | xargs perl -00 -ne '
    next if /^[=\s]/;                      # headings and code
    s/E<lt>/\x01/g; s/E<gt>/\x02/g;        # set aside: they are no markup
    s/[BCFIL]<<+\s(.*?)\s>>+/$1/gs;
    s/L<([^<>|]*)\|[^<>]*>/$1/g;
    1 while s/[XZ]<[^<>]*>//g || s/[BCEFILS]<([^<>]*)>/$1/g;
    tr/\x01\x02/<>/;
    last if ($bytes += length) > 3_000_000;
    print'
}

# Prints the table; fails if a run did not learn, or if the two differ by more than rounding.
# Arguments: the metrics of the run on eight devices, those of the run on one, the bound of the last loss.
compare() {
  python3 - "$@" <<'PYTHON'
import json
import sys


def read(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def tokens_per_second(run):
    """Of the whole run, but for the first step, which touches all memory for the first time."""
    tokens = sum(step["tokens_per_second"] * step["step_seconds"] for step in run[1:])
    return tokens / sum(step["step_seconds"] for step in run[1:])


eight, one, bound = read(sys.argv[1]), read(sys.argv[2]), float(sys.argv[3])
difference = max(abs(a["loss"] - b["loss"]) / abs(b["loss"]) for a, b in zip(eight, one, strict=True))
rows = [
    ("", "8 devices", "1 device"),
    ("loss of the first step, nats a byte", *(f"{run[0]['loss']:.4f}" for run in (eight, one))),
    ("loss of the last step, nats a byte", *(f"{run[-1]['loss']:.4f}" for run in (eight, one))),
    ("tokens a second", *(f"{tokens_per_second(run):,.0f}" for run in (eight, one))),
    ("peak memory of a device, MiB",
     *(f"{max(step['peak_bytes'] for step in run) / 2**20:.1f}" for run in (eight, one))),
]
for name, *values in rows:
    print(f"{name:<38}" + "".join(f"{value:>14}" for value in values))
print(f"{'largest relative difference of a loss':<38}{difference:>14.1e}")
for name, run in (("eight devices", eight), ("one device", one)):
    if not 0 < run[-1]["loss"] < bound:
        sys.exit(f"error: the loss on {name} ended at {run[-1]['loss']:.4f}, expected less than {bound} nats a byte; "
                 "the model did not learn as it should")
if not difference < 1e-3:
    sys.exit(f"error: the losses of the two runs differ by up to {difference:.1e}, expected less than 1e-3; "
             "the compiler changed what the model computes")
PYTHON
}

say "Installing what is missing"
scripts/install-dependencies.sh

# In the configuration of scripts/test.sh, in which tests stay switched on: only the targets differ. scripts/build.sh
# would build the tests too, and switching them off would leave scripts/test.sh without any.
say "Building the tools (some minutes the first time)"
cmake --preset release
cmake --build --preset release --target dtc-import dtc-compile dtc-opt dtc-plan dtc-run

mkdir -p "$out"
say "Making a text from Perl's manual"
make_text >"$out/text.txt.part"
mv "$out/text.txt.part" "$out/text.txt"
bytes=$(stat -c %s "$out/text.txt")
echo "$out/text.txt: $bytes bytes"
((bytes >= 1000000)) || fail "$out/text.txt has $bytes bytes, expected at least 1000000; is perl-doc installed whole?"

say "Compiling GPT-2 for eight devices and for one"
"$bin/dtc-import" examples/gpt2-tiny/config.json --batch 16 --seq 128 -o "$out/model.mlir"
# The assumed speeds of the devices are about the real ones; estimates depend on them, results do
# not.
"$bin/dtc-compile" "$out/model.mlir" --mesh dp=2,tp=2,pp=2 --schedule 1f1b --microbatches 4 \
  --device-flops 5e10 --device-bandwidth 1e10 -o "$out/eight-devices.plan" --timing
"$bin/dtc-compile" "$out/model.mlir" -o "$out/one-device.plan" --timing

say "What is proved of the plan for eight devices, and the schedule of its pipeline"
"$bin/dtc-plan" verify "$out/eight-devices.plan"
echo
"$bin/dtc-plan" show "$out/eight-devices.plan" --schedule --schedule-svg "$out/schedule.svg"

# Threads that wait for others sleep: on a busy machine, spinning costs more than it saves.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
train() { # the name of a plan, and flags of dtc-run
  "$bin/dtc-run" "$out/$1.plan" --data "$out/text.txt" --steps "$steps" --lr "$learning_rate" --log-every 50 \
    --metrics "$out/$1.jsonl" --save "$out/$1.safetensors" "${@:2}"
}
say "Training on eight devices: 2-way data and tensor parallelism, a pipeline of 2 stages, 4 microbatches"
train eight-devices --trace "$out/trace.json"
say "Training on one device, from the same weights, on the same batches"
train one-device

say "Result"
compare "$out/eight-devices.jsonl" "$out/one-device.jsonl" "$loss_must_be_below"
for file in schedule.svg trace.json; do
  [[ -s $out/$file ]] || fail "$out/$file is missing or empty; expected it from the run on eight devices"
done
cat <<EOF

In $out are the plans, the metrics of each step and the weights, and
  schedule.svg  when each stage would work, as the plan estimates it: open it in a browser
  trace.json    when each device did what in the last three steps: open it at https://ui.perfetto.dev
EOF
