#!/usr/bin/env bash
# Checks the CUDA backend on a machine with a GPU.
#
#   gpu-check.sh [FOLDER]   logs and gpu-check.json go to FOLDER (default: gpu-check-results)
#
# Beside bin/ and models/ of a package (scripts/package.sh) it checks those programs; in the sources it builds
# them first, in build/package. Parts run in order, the most important first, each with a time limit, and
# those that DTC_GPU_CHECK_SECONDS (default: 600) has no time for are left out. gpu-check.json is whole before
# and after every part, and when the check is stopped. Exits with 0 if all parts that ran passed, with 1 if one
# failed or was stopped, and with 77 if there is no GPU.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
[[ $# -le 1 && "${1:-}" != -* ]] || { sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
results="${1:-gpu-check-results}"
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
  exec "$package/gpu-check.sh" "$results"
fi
mkdir -p "$results"

# Trains a model of the package on the CPU and on the GPU. The losses must agree to so much of themselves.
train() { # MODEL DATA TOLERANCE
  local model="$1" data="$2" tolerance="$3" device
  for device in cpu cuda; do
    "$here/bin/dtc-run" "$here/models/$model.plan" --data "$here/models/$data" --steps 20 \
      --seed 5 --device "$device" --metrics "$results/$model-$device.jsonl"
  done
  paste -d' ' "$results/$model-cpu.jsonl" "$results/$model-cuda.jsonl" |
    sed -E 's/.*"loss": ?([-0-9.e+]+).*"loss": ?([-0-9.e+]+).*/\1 \2/' |
    awk -v tolerance="$tolerance" '
      NF != 2 || $1 == 0 { exit }
      { d = ($1 - $2) / $1; if (d < 0) d = -d; if (d > most) most = d; ++steps }
      END { printf "%d steps, largest difference of losses %.3g of the loss, allowed %g\n", steps, most, tolerance
            exit !(steps == 20 && most <= tolerance) }'
}

names=() states=() seconds=() notes=()

# Text as a string of JSON.
quoted() {
  local text="${1//\\/\\\\}"
  text="${text//\"/\\\"}"
  printf '"%s"' "$(tr -d '\000-\037' <<<"$text")"
}

write_json() {
  local i separator=""
  {
    printf '{"started": %s, "seconds": %s, "parts": [' "$(quoted "$started")" "$SECONDS"
    for i in "${!names[@]}"; do
      printf '%s\n  {"name": %s, "state": %s, "seconds": %s, "note": %s}' "$separator" \
        "$(quoted "${names[i]}")" "$(quoted "${states[i]}")" "${seconds[i]}" "$(quoted "${notes[i]}")"
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
  printf '%-14s %-8s %5ss  %s\n' "${names[last]}" "$1" "$2" "$3"
}

# A part that this machine or this package has no means for.
leave_out() { # NAME NOTE
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
    export -f "$1"
    export here results
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
  if [[ ${#missing[@]} -gt 0 ]]; then
    leave_out "$1" "the package has no ${missing[*]}"
  else
    part "$@"
  fi
}

# part_train NAME LIMIT_SECONDS MODEL DATA TOLERANCE
part_train() {
  part_with "models/$3.plan" "models/$4" -- "$1" "$2" train "$3" "$4" "$5"
}

started="$(date --utc +%Y-%m-%dT%H:%M:%SZ)"
tests="$here/bin/dtc-cuda-kernel-test"
part devices 60 "$here/bin/dtc-run" --list-devices
sed 's/^/    /' "$results/devices.log"
if ! grep -qE '^cuda [0-9]+:' "$results/devices.log"; then
  echo "$results/gpu-check.json: no GPU, nothing was checked"
  [[ "${states[0]}" == ok ]] && exit 77 || exit 1
fi
part_train mlp 60 mlp mlp.data.safetensors 1e-4
part_train gpt2 60 gpt2-tiny gpt2-tiny.data.txt 1e-3
part_train llama 60 llama-tiny llama-tiny.data.txt 1e-3
part_train gpt2-bf16 60 gpt2-tiny-bf16 gpt2-tiny.data.txt 0.02
part_train llama-bf16 60 llama-tiny-bf16 llama-tiny.data.txt 0.02
# Four devices of the plan on one GPU.
part_train gpt2-devices 100 gpt2-tiny-devices gpt2-tiny.data.txt 1e-3
part_train llama-devices 100 llama-tiny-devices llama-tiny.data.txt 1e-3
part_with bin/dtc-cuda-kernel-test -- kernels 240 "$tests" --gtest_brief=1
part_with bin/GpuKernelBenchmark -- times 120 "$here/bin/GpuKernelBenchmark" --benchmark_counters_tabular=true \
  --benchmark_out="$results/times.json"
[[ ! -e "$results/times.log" ]] || cat "$results/times.log"
sanitizer="$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)"
# Kernels with shared memory and barriers; matrix products are cuBLASLt's.
filter='Attention*:Cache*:Rotary*:Reduce*:Softmax*:Norms*:CrossEntropy*:Indexing*:Optimizer*:Sharding*:Dropout*'
for tool in memcheck racecheck synccheck; do
  if [[ -z "$sanitizer" ]]; then
    leave_out "$tool" "no compute-sanitizer in PATH and /usr/local/cuda/bin"
  else
    part_with bin/dtc-cuda-kernel-test -- "$tool" 100 "$sanitizer" --tool "$tool" --error-exitcode 1 "$tests" \
      --gtest_brief=1 --gtest_filter="$filter"
  fi
done
echo "$results/gpu-check.json"
[[ ! " ${states[*]} " =~ " failed "|" stopped " ]]
