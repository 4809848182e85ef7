#!/usr/bin/env bash
# Checks the CUDA backend on a machine with a GPU.
#
#   gpu-check.sh [FOLDER [PART...]]   logs and gpu-check.json go to FOLDER (default: gpu-check-results)
#
# Beside bin/ and models/ of a package (scripts/package.sh) it checks those programs; in the sources it builds
# them first, in build/package. Parts run in order, the most important first, each with a time limit, and
# those that DTC_GPU_CHECK_SECONDS (default: 600) has no time for are left out. PART... names those to run, after
# the part devices, which always runs. gpu-check.json is whole before and after every part, and when the check is
# stopped. Exits with 0 if all parts that ran passed, with 1 if one failed or was stopped, and with 77 if there is
# no GPU.
set -euo pipefail
export LC_ALL=C # numbers with a point

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
[[ "${1:-}" != -* ]] || { sed -n '2,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
results="${1:-gpu-check-results}"
only=("${@:2}")
budget="${DTC_GPU_CHECK_SECONDS:-600}"
if [[ ! "$budget" =~ ^[1-9][0-9]*$ ]]; then
  echo "error: DTC_GPU_CHECK_SECONDS is '$budget', expected whole seconds, at least 1" >&2
  exit 2
fi
if [[ ! -d "$here/bin" ]]; then
  package="$here/../build/gpu-check"
  rm -rf "$package"
  "$here/package.sh" --folder "$package"
  mkdir -p "$results"
  exec "$package/gpu-check.sh" "$results" "${only[@]}"
fi
mkdir -p "$results"

# Functions that are parts have $log, the path of the files of their part without the ending of a name.

# The GPUs and libraries that dtc-run finds. Where it lacks some, it gets the folders of python3's packages, which
# libraries.txt then has.
devices() {
  "$here/bin/dtc-run" devices | tee "$log.txt"
  if grep -q '^cuBLASLt [0-9]' "$log.txt" && grep -q '^cuDNN [0-9]' "$log.txt"; then return; fi
  local folders
  folders="$(python3 -c 'import glob, sys
print(*(folder for path in sys.path for folder in glob.glob(path + "/nvidia/*/lib")), sep=":")' 2>/dev/null || true)"
  [[ -n "$folders" ]] || return 0
  echo "with DTC_CUDA_LIBRARIES=$folders:"
  DTC_CUDA_LIBRARIES="${DTC_CUDA_LIBRARIES:+$DTC_CUDA_LIBRARIES:}$folders" "$here/bin/dtc-run" devices | tee "$log.txt"
  echo "$folders" >"$results/libraries.txt"
}

# Trains a model of the package on the CPU and on the GPU. The losses must agree to the relative tolerance.
train() { # MODEL DATA TOLERANCE
  local model="$1" data="$2" tolerance="$3" device
  for device in cpu cuda; do
    "$here/bin/dtc-run" "$here/models/$model.plan" --data "$here/models/$data" --steps 20 \
      --seed 5 --device "$device" --metrics "$log-$device.jsonl"
  done
  compare_losses "$log-cpu.jsonl" "$log-cuda.jsonl" "$tolerance"
}

# The losses of 20 steps must agree to the relative tolerance.
compare_losses() { # METRICS METRICS TOLERANCE
  paste -d' ' "$1" "$2" |
    sed -nE 's/.*"loss": ?([-0-9.e+]+).*"loss": ?([-0-9.e+]+).*/\1 \2/p' |
    awk -v tolerance="$3" '
      NF != 2 || $1 == 0 { exit }
      { d = ($1 - $2) / $1; if (d < 0) d = -d; if (d > most) most = d; ++steps }
      END { printf "%d steps, largest difference of losses %.3g of the loss, allowed %g\n", steps, most, tolerance
            exit !(steps == 20 && most <= tolerance) }'
}

# Trains a model with and without CUDA graphs. All losses and norms must have the same bits.
graphs() { # MODEL DATA
  local use
  for use in off on; do
    "$here/bin/dtc-run" "$here/models/$1.plan" --data "$here/models/$2" --steps 20 --seed 5 --device cuda \
      --cuda-graphs $use --metrics "$log-$use.jsonl"
  done
  paste -d' ' "$log-off.jsonl" "$log-on.jsonl" | awk '
    function field(text, name) {
      return match(text, "\"" name "\": ?[-0-9.e+]+") ? substr(text, RSTART, RLENGTH) : "none"
    }
    { middle = index($0, "} {"); a = substr($0, 1, middle); b = substr($0, middle + 2); ++steps
      for (i = split("loss grad_norm", names); i > 0; --i)
        if (field(a, names[i]) == "none" || field(a, names[i]) != field(b, names[i])) ++different }
    END { printf "%d steps, %d numbers differ between steps in graphs and eager ones\n", steps, different
          exit !(steps == 20 && different == 0) }'
}

# Trains a layout of several devices that share the GPU over NCCL, twice with and once without graphs. The losses are those
# of one device, and those of both runs with graphs are the same.
share_gpu() { # LAYOUT TOLERANCE
  local run use
  "$here/bin/dtc-run" "$here/models/gpt2-tiny.plan" --data "$here/models/gpt2-tiny.data.txt" --steps 20 --seed 5 \
    --device cuda --metrics "$log-one.jsonl"
  for run in on again off; do
    use="${run/again/on}"
    "$here/bin/dtc-run" "$here/models/gpt2-tiny-$1.plan" --data "$here/models/gpt2-tiny.data.txt" --steps 20 --seed 5 \
      --device cuda --fabric nccl --share-gpu --cuda-graphs "$use" --stall-timeout 20 --metrics "$log-$run.jsonl"
    compare_losses "$log-one.jsonl" "$log-$run.jsonl" "$2"
  done
  compare_losses "$log-on.jsonl" "$log-again.jsonl" 0
}

# Trains a model with and without what a flag of the values on and off uses, which rounds elsewhere: --kernel-fusion, with
# which calls are computed together, or --cudnn.
with_and_without() { # FLAG MODEL DATA TOLERANCE
  local use
  for use in off on; do
    "$here/bin/dtc-run" "$here/models/$2.plan" --data "$here/models/$3" --steps 20 --seed 5 --device cuda \
      "$1" $use --metrics "$log-$use.jsonl"
  done
  compare_losses "$log-off.jsonl" "$log-on.jsonl" "$4"
}

# The median of a metric over the second half of the steps.
median() { # FILE NAME
  sed -nE "s/.*\"$2\": ?([-0-9.e+]+).*/\1/p" "$1" | awk '{ v[NR] = $1 } END { for (i = int(NR / 2) + 1; i <= NR; ++i) print v[i] }' |
    sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

# Tokens a second of a model in bf16, the use of the peak by llm.c's formula, (6 N + 6 L C T) FLOP for a token, and the
# memory that the GPU has less of while it runs.
speed() { # MODEL STEPS LAYERS WIDTH SEQUENCE [FLAG...]
  local model="$1" steps="$2" layers="$3" width="$4" sequence="$5" child
  shift 5
  # Before the process starts, since it may take memory at once.
  used_memory >"$log-memory.txt"
  # Every token of the text is one of the vocabulary.
  "$here/bin/dtc-run" "$here/models/$model.plan" --data "$here/models/speed.data.txt" --steps "$steps" --seed 5 \
    --device cuda --log-every 10 --metrics "$log.jsonl" "$@" >"$log.txt" &
  child=$!
  watch_memory "$child"
  wait "$child"
  cat "$log.txt"
  local parameters rate
  parameters="$(sed -nE 's/^[^:]*: ([0-9]+) parameters,.*/\1/p' "$log.txt" | head -n 1)"
  rate="$(median "$log.jsonl" tokens_per_second)"
  awk -v n="$parameters" -v l="$layers" -v c="$width" -v t="$sequence" -v rate="$rate" -v peak="${DTC_GPU_TFLOPS:-989}" \
    -v flags="$*" 'BEGIN { printf "%.0f tokens/s, MFU %.1f%% of %g TFLOP/s %s\n", rate,
      100 * (6 * n + 6 * l * c * t) * rate / (peak * 1e12), peak, flags; exit !(n > 0 && rate > 0) }' |
    sed "s|\$| $(predicted "$model")$(memory_taken)|"
}

# Writes the most memory of the GPU in use while a process runs, where nvidia-smi is.
watch_memory() { # PROCESS
  command -v nvidia-smi >/dev/null || return 0
  local used most=0
  while kill -0 "$1" 2>/dev/null; do
    used="$(used_memory)"
    if [[ "$used" -gt "$most" ]]; then most="$used"; fi
    sleep 0.5
  done
  echo "$most" >>"$log-memory.txt"
}

# Prints the memory of the GPU in use in MiB, where nvidia-smi is.
used_memory() {
  command -v nvidia-smi >/dev/null || return 0
  nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits | head -n 1
}

# What speed and watch_memory wrote, beside the memory that dtc-run states.
memory_taken() {
  [[ -s "$log-memory.txt" ]] || return 0
  cat "$log-memory.txt" "$log.txt" | awk '
    function mib(value, unit) { return value * (unit ~ /GiB/ ? 1024 : unit ~ /KiB/ ? 1 / 1024 : 1) }
    NR == 1 { before = $1 }
    NR == 2 { most = $1 }
    match($0, /, [0-9.]+ [KMG]iB and [0-9.]+ [KMG]iB of workspace/) {
      split(substr($0, RSTART + 2, RLENGTH), word, " "); stated = mib(word[1], word[2]) + mib(word[4], word[5]) }
    END { printf "; %d MiB taken, %.0f MiB stated", most - before, stated }'
}

# The simulator's prediction for the model on a DGX H100, from the package.
predicted() { # MODEL
  local file="$here/models/$1.prediction.txt"
  [[ ! -e "$file" ]] || echo "(predicted for an H100: $(predicted_rate "$file") tokens/s)"
}

# Tokens a second, as dtc-plan simulate prints them.
predicted_rate() { # FILE
  sed -nE 's/^ *A step takes .*: ([0-9,.]+) tokens\/s.*/\1/p' "$1" | tr -d ',' | head -n 1
}

# Measures the GPU as a cluster, and simulates models on it.
calibrate() { # MODEL...
  local model rates=""
  "$here/bin/dtc-run" calibrate "$log.textproto" --device cuda
  for model in "$@"; do
    "$here/bin/dtc-plan" simulate "$here/models/$model.plan" --cluster "$log.textproto" >"$log-$model.txt"
    rates+="$model $(predicted_rate "$log-$model.txt"), "
  done
  echo "predicted tokens/s of what was measured: ${rates%, }"
}

# The time of the GPU in a step beside kernels: the time of a step in graphs, and the sum of its
# kernels' times.
outside() { # MODEL
  local model="$1"
  "$here/bin/dtc-run" "$here/models/$model.plan" --data "$here/models/speed.data.txt" --steps 20 --seed 5 --device cuda \
    --log-every 20 --metrics "$log.jsonl"
  "$here/bin/dtc-run" "$here/models/$model.plan" --data "$here/models/speed.data.txt" --steps 20 --seed 5 --device cuda \
    --log-every 20 --profile | tee "$log.txt"
  awk -v step="$(median "$log.jsonl" step_seconds)" '
    $4 ~ /^[0-9.]+%$/ { kernels += $3 / 20 / 1000 }
    END { if (!(kernels > 0)) { print "no kernels in the profile"; exit 1 }
          printf "a step takes %.4f s, its kernels %.4f s: %.1f%% outside of kernels\n", step, kernels,
            100 * (step - kernels) / step }' "$log.txt"
}

# The GPU trains a model as PyTorch does. The speed of dtc is that of another part.
torch() { # PART FLAG...
  local own
  own="$(median "$results/$1.jsonl" tokens_per_second)"
  # A second check compiles nothing again.
  export TORCHINDUCTOR_CACHE_DIR="${TORCHINDUCTOR_CACHE_DIR:-$results/torch-cache}" TORCHINDUCTOR_FX_GRAPH_CACHE=1
  python3 "$here/compare-torch.py" "${@:2}" | tee "$log.txt"
  awk -v own="$own" '/tokens\/s$/ { theirs = $1 }
    END { printf "dtc %.0f tokens/s, PyTorch %.0f: %.2f times as fast\n", own, theirs, (theirs > 0 ? own / theirs : 0)
          exit !(own > 0 && theirs > 0) }' "$log.txt"
}

# The tests of kernels. After an error that the GPU does not forgive, all others fail in the same process: then each suite
# runs in one of its own.
kernels() { # PROGRAM
  local status=0 suite failed=()
  "$1" || status=$?
  [[ "$status" -ne 0 && "$status" -ne 77 ]] || return "$status"
  for suite in $("$1" --gtest_list_tests | sed -nE 's/^([^ ]+\.).*/\1/p'); do
    "$1" --gtest_filter="$suite*" >"$log-${suite//[.\/]/}.log" 2>&1 || failed+=("${suite%.}")
  done
  echo "suites that fail alone: ${failed[*]:-none}"
  return "$status"
}

# Runs tests of kernels, each suite by itself and no longer than an eighth of the time of the part, under a tool of
# compute-sanitizer, which slows some of them down by more than a thousand times. Those that do not end are named.
sanitize() { # SANITIZER TOOL PROGRAM FILTER
  local suite status=0 begin=$SECONDS ended=0 failed=() endless=()
  for suite in $("$3" --gtest_list_tests --gtest_filter="$4" | sed -nE 's/^([^ ]+\.).*/\1/p'); do
    if [[ $((SECONDS - begin)) -gt $((limit - limit / 8 - 5)) ]]; then
      endless+=("${suite%.}")
      continue
    fi
    status=0
    DTC_TEST_CUDNN=off timeout --foreground --kill-after=5 $((limit / 8)) "$1" --tool "$2" --error-exitcode 1 "$3" \
      --gtest_filter="$suite*" >"$log-${suite//[.\/]/}.log" 2>&1 || status=$?
    case $status in
      0) ended=$((ended + 1)) ;;
      124 | 137) endless+=("${suite%.}") ;;
      *) failed+=("${suite%.}") ;;
    esac
  done
  echo "suites: $ended without an error, failed: ${failed[*]:-none}, not ended: ${endless[*]:-none}"
  [[ ${#failed[@]} -eq 0 && "$ended" -gt 0 ]]
}

names=() states=() seconds=() notes=()

# Sets $json to the text as a string of JSON, by no other process: the file is written often.
quote() {
  local text="${1//\\/\\\\}"
  text="${text//\"/\\\"}"
  json="\"${text//[^ -~]/}\""
}

write_json() {
  local i separator="" json
  {
    quote "$started"
    printf '{"started": %s, "seconds": %s, "parts": [' "$json" "$SECONDS"
    for i in "${!names[@]}"; do
      quote "${notes[i]}"
      printf '%s\n  {"name": "%s", "state": "%s", "seconds": %s, "note": %s}' "$separator" "${names[i]}" "${states[i]}" \
        "${seconds[i]}" "$json"
      separator=","
    done
    printf '\n]}\n'
  } >"$results/gpu-check.json.part"
  mv "$results/gpu-check.json.part" "$results/gpu-check.json"
}

begin_part() { # NAME
  names+=("$1") states+=(running) seconds+=(0) notes+=("")
  write_json
}

end_part() { # STATE SECONDS NOTE
  local last=$((${#names[@]} - 1))
  states[last]="$1" seconds[last]="$2" notes[last]="$3"
  write_json
  printf '%-18s %-8s %5ss  %s\n' "${names[last]}" "$1" "$2" "$3"
}

listing=""
known=()

# Whether a part is to run.
wanted() { # NAME
  if [[ -n "$listing" ]]; then
    known+=("$1")
    return 1
  fi
  [[ ${#only[@]} -eq 0 || " devices ${only[*]} " == *" $1 "* ]]
}

# A part that this machine or this package has no means for.
leave_out() { # NAME NOTE
  wanted "$1" || return 0
  begin_part "$1"
  end_part left-out 0 "$2"
}

child=""
# Every process of the part that runs is in the group of its `timeout`.
stop_check() { # SIGNAL
  trap - "$1"
  [[ -z "$child" ]] || kill -KILL -- "-$child" 2>/dev/null || true
  if [[ ${#states[@]} -gt 0 && "${states[-1]}" == running ]]; then
    end_part stopped $((SECONDS - begin)) "the check got SIG$1"
  fi
  kill -s "$1" $$
}
for signal in INT TERM HUP; do
  trap "stop_check $signal" "$signal"
done

# part NAME LIMIT_SECONDS COMMAND...
part() {
  local name="$1" limit="$2" status=0 state note
  wanted "$name" || return 0
  shift 2
  if [[ "$limit" -gt $((budget - SECONDS)) ]]; then
    limit=$((budget - SECONDS))
  fi
  if [[ "$limit" -lt 1 ]]; then
    leave_out "$name" "the $budget s of the check are over"
    return
  fi
  begin_part "$name"
  begin=$SECONDS
  if [[ "$(type -t "$1")" == function ]]; then
    export -f "$1" median compare_losses predicted predicted_rate watch_memory used_memory memory_taken
    export here results limit log="$results/$name"
    set -- bash -euo pipefail -c '"$@"' - "$@"
  fi
  # In the background, so that a signal to the check does not wait for the end of the part.
  set -m
  timeout --kill-after=5 "$limit" "$@" </dev/null >"$results/$name.log" 2>&1 &
  child=$!
  set +m
  wait "$child" || status=$?
  child=""
  note="$(grep -v '^ *$' "$results/$name.log" | tail -n 1 | cut -c1-160 || true)"
  case $status in
    0) state=ok ;;
    77) state=skipped ;; # no GPU
    124 | 137) state=stopped note="ran longer than $limit s; $note" ;;
    *) state=failed note="status $status; $note" ;;
  esac
  end_part "$state" $((SECONDS - begin)) "$note"
}

# part_with FILE... -- NAME LIMIT_SECONDS COMMAND...: a part that needs files of the package.
part_with() {
  local missing=()
  while [[ "$1" != -- ]]; do
    [[ -e "$here/$1" ]] || missing+=("$1")
    shift
  done
  shift
  if [[ -z "$listing" && ${#missing[@]} -gt 0 ]]; then
    leave_out "$1" "the package has no ${missing[*]}"
  else
    part "$@"
  fi
}

# part_train NAME LIMIT_SECONDS MODEL DATA TOLERANCE
part_train() {
  part_with "models/$3.plan" "models/$4" -- "$1" "$2" train "$3" "$4" "$5"
}

# part_speed NAME LIMIT_SECONDS MODEL STEPS LAYERS WIDTH SEQUENCE [FLAG...]
part_speed() {
  part_with "models/$3.plan" models/speed.data.txt -- "$1" "$2" speed "${@:3}"
}

started="$(date --utc +%Y-%m-%dT%H:%M:%SZ)"
tests="$here/bin/dtc-cuda-kernel-test"
sanitizer="$(command -v compute-sanitizer || ls -d /usr/local/cuda*/bin/compute-sanitizer \
  /usr/local/cuda*/compute-sanitizer/compute-sanitizer /opt/nvidia/*/compute-sanitizer/compute-sanitizer 2>/dev/null |
  tail -n 1 || true)"

# Losses and bits.
correctness_parts() {
  part_train mlp 60 mlp mlp.data.safetensors 1e-4
  part_train gpt2 60 gpt2-tiny gpt2-tiny.data.txt 1e-3
  part_train llama 60 llama-tiny llama-tiny.data.txt 1e-3
  part_train gpt2-bf16 60 gpt2-tiny-bf16 gpt2-tiny.data.txt 0.02
  part_train llama-bf16 60 llama-tiny-bf16 llama-tiny.data.txt 0.02
  part_with models/gpt2-tiny-bf16.plan models/gpt2-tiny.data.txt -- graphs 60 graphs gpt2-tiny-bf16 gpt2-tiny.data.txt
  part_with models/gpt2-tiny.plan models/gpt2-tiny.data.txt -- fusion 60 \
    with_and_without --kernel-fusion gpt2-tiny gpt2-tiny.data.txt 1e-3
  part_with models/gpt2-tiny-bf16.plan models/gpt2-tiny.data.txt -- fusion-bf16 60 \
    with_and_without --kernel-fusion gpt2-tiny-bf16 gpt2-tiny.data.txt 0.02
  if [[ -n "$listing" ]] || grep -q '^cuDNN [0-9]' "$results/devices.log"; then
    part_with models/llama-tiny-bf16.plan models/gpt2-tiny.data.txt -- cudnn 60 \
      with_and_without --cudnn llama-tiny-bf16 gpt2-tiny.data.txt 0.02
  else
    leave_out cudnn "dtc-run finds no cuDNN"
  fi
}

# Layouts over NCCL. DTC_NCCL_LIBRARIES names the folder of NCCL where it is not that of the other libraries. NCCL
# connects devices that share a GPU from 2.30 on.
nccl_parts() {
  local layout tolerance
  for layout in dp zero3 tp dp-tp dp-tp-bf16 pp pp-tp dp-tp-pp; do
    tolerance=1e-4
    [[ "$layout" != *bf16 ]] || tolerance=0.02
    if [[ -n "$listing" ]] || grep -qE '^NCCL 2\.(3[0-9]|[4-9][0-9])' "$results/devices.log"; then
      part_with "models/gpt2-tiny-$layout.plan" models/gpt2-tiny.plan models/gpt2-tiny.data.txt -- "nccl-$layout" 90 \
        share_gpu "$layout" "$tolerance"
    else
      leave_out "nccl-$layout" "dtc-run finds no NCCL 2.30 or newer; DTC_NCCL_LIBRARIES names its folder"
    fi
  done
}

# The speed of GPT-2 124M and 1558M, and of a Llama of the shape of Llama 3.2 1B.
speed_parts() {
  part_speed speed-124m 60 gpt2-124m 60 12 768 1024
  part_speed speed-llama-8 60 llama-1b-8 16 16 2048 2048
  part_speed speed-1558m 75 gpt2-1558m 20 48 1600 1024
}

torch_parts() {
  part_torch torch-124m 120 speed-124m --layers 12 --heads 12 --width 768 --batch 32
  part_torch torch-llama 120 speed-llama-8 --family llama --layers 16 --heads 32 --key-value-heads 8 --width 2048 \
    --intermediate 8192 --vocabulary 128256 --sequence 2048 --batch 8
  part_torch torch-1558m 120 speed-1558m --layers 48 --heads 25 --width 1600 --batch 8
}

# part_torch NAME LIMIT_SECONDS PART FLAG...
part_torch() {
  if [[ -z "$listing" ]] && ! command -v python3 >/dev/null; then
    leave_out "$1" "no python3 in PATH"
  elif [[ -z "$listing" && ! -s "$results/$3.jsonl" ]]; then
    leave_out "$1" "no speed of $3 to compare"
  else
    part_with compare-torch.py -- "$1" "$2" torch "${@:3}"
  fi
}

# The same with larger batches, without the options that make it fast, and the time of a step beside kernels.
cost_parts() {
  part_speed speed-1558m-sum 90 gpt2-1558m-sum 5 48 1600 1024
  part_torch torch-1558m-sum 120 speed-1558m-sum --layers 48 --heads 25 --width 1600 --batch 8 --accumulate 8 --steps 5
  part_speed speed-llama-16 60 llama-1b-16 16 16 2048 2048
  part_speed single-124m 45 gpt2-124m 30 12 768 1024 --kernel-fusion off
  part_speed own-attention-124m 45 gpt2-124m 30 12 768 1024 --cudnn off
  part_speed eager-124m 45 gpt2-124m 30 12 768 1024 --cuda-graphs off
  part_speed timed-124m 60 gpt2-124m 60 12 768 1024 --matmul-algorithms timed
  part_speed eager-llama 45 llama-1b-8 10 16 2048 2048 --cuda-graphs off
  part_with models/gpt2-124m.plan models/speed.data.txt -- outside-124m 60 outside gpt2-124m
}

sanitizer_parts() {
  # Kernels with shared memory and barriers; matrix products are cuBLASLt's.
  local filter='Attention*:Cache*:Rotary*:Reduce*:Softmax*:Norms*:CrossEntropy*:Indexing*:Optimizer*:Sharding*:Dropout*' tool
  for tool in memcheck synccheck racecheck; do
    if [[ -z "$listing" && -z "$sanitizer" ]]; then
      leave_out "$tool" "no compute-sanitizer in PATH, /usr/local/cuda and /opt/nvidia"
    else
      part_with bin/dtc-cuda-kernel-test -- "$tool" 150 sanitize "$sanitizer" "$tool" "$tests" "$filter"
    fi
  done
}

all_parts() {
  correctness_parts
  nccl_parts
  speed_parts
  torch_parts
  part_with bin/GpuProductBenchmark models/gpt2-124m.plan models/llama-1b-8.plan models/gpt2-1558m.plan -- products 100 \
    "$here/bin/GpuProductBenchmark" --benchmark_min_time=0.02 --benchmark_counters_tabular=true \
    --benchmark_out="$results/products.json" "$here/models/gpt2-124m.plan" "$here/models/llama-1b-8.plan" \
    "$here/models/gpt2-1558m.plan"
  part_with bin/dtc-cuda-kernel-test -- kernels 120 kernels "$tests"
  part_with bin/dtc-plan models/gpt2-124m.plan models/llama-1b-8.plan models/gpt2-1558m.plan -- calibrate 120 \
    calibrate gpt2-124m llama-1b-8 gpt2-1558m
  cost_parts
  # Four devices of the plan on one GPU.
  part_train gpt2-devices 60 gpt2-tiny-devices gpt2-tiny.data.txt 1e-3
  part_train llama-devices 60 llama-tiny-devices llama-tiny.data.txt 1e-3
  part_with bin/dtc-cuda-kernel-test -- own-attention 60 env DTC_TEST_CUDNN=off "$tests" \
    --gtest_filter='*ttention*:ElementTypes*:Segments*'
  part_with bin/GpuKernelBenchmark -- times 90 "$here/bin/GpuKernelBenchmark" --benchmark_counters_tabular=true \
    --benchmark_out="$results/times.json"
  sanitizer_parts
}

listing=yes
all_parts
listing=""
for name in "${only[@]}"; do
  if [[ " devices ${known[*]} " != *" $name "* ]]; then
    echo "error: there is no part '$name'; there are: devices ${known[*]}" >&2
    exit 2
  fi
done

rm -f "$results/libraries.txt"
if [[ -n "${DTC_NCCL_LIBRARIES:-}" ]]; then
  export DTC_CUDA_LIBRARIES="$DTC_NCCL_LIBRARIES${DTC_CUDA_LIBRARIES:+:$DTC_CUDA_LIBRARIES}"
  export LD_LIBRARY_PATH="$DTC_NCCL_LIBRARIES${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi
part devices 60 devices
sed 's/^/    /' "$results/devices.log"
if ! grep -qE '^cuda [0-9]+:' "$results/devices.log"; then
  echo "$results/gpu-check.json: no GPU, nothing was checked"
  [[ "${states[0]}" == ok ]] && exit 77 || exit 1
fi
if [[ -s "$results/libraries.txt" ]]; then
  export DTC_CUDA_LIBRARIES="${DTC_CUDA_LIBRARIES:+$DTC_CUDA_LIBRARIES:}$(cat "$results/libraries.txt")"
fi
all_parts
for name in products times; do
  [[ ! -e "$results/$name.log" ]] || cat "$results/$name.log"
done
echo "$results/gpu-check.json"
[[ ! " ${states[*]} " =~ " failed "|" stopped " ]]
