#!/usr/bin/env bash
# Checks the CUDA backend on a machine with a GPU.
#
#   scripts/gpu-check.sh pack FILE.tar.gz   builds what the check needs, without a GPU, and packs it
#   gpu-check/gpu-check.sh run [FOLDER]     in the unpacked archive: runs the check; logs and
#                                           gpu-check.json go to FOLDER (default: gpu-check-results)
#
# The archive needs x86-64 Linux with a glibc at least as new as the building machine's, the driver, and
# cuBLASLt. Parts run in order, the most important first, each with a time limit; gpu-check.json is
# whole after every part. Exits with 1 if a part failed.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
programs=(dtc-run dtc-cuda-kernel-test GpuKernelBenchmark)

pack() {
  local archive="$1" root build folder
  root="$(cd "$here/.." && pwd)"
  build="$root/build/gpu-check"
  cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DDTC_BUILD_COMPILER=OFF \
    -DDTC_CUDA=ON >/dev/null
  cmake --build "$build" --target "${programs[@]}"
  folder="$(mktemp -d)"
  trap "rm -rf '$folder'" EXIT # expanded now: the variable is gone by then
  mkdir -p "$folder/gpu-check/bin" "$folder/gpu-check/lib"
  for program in "${programs[@]}"; do
    cp "$build/bin/$program" "$folder/gpu-check/bin/"
    # All shared libraries but those of glibc, which fit the kernel and each other.
    ldd "$build/bin/$program" | awk '$3 ~ /^\// { print $3 }' |
      grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv)\.so|/ld-linux' |
      while read -r library; do cp -nL "$library" "$folder/gpu-check/lib/"; done
  done
  cp "$here/gpu-check.sh" "$folder/gpu-check/"
  pack_models "$root" "$folder/gpu-check/models"
  tar -C "$folder" -czf "$archive" gpu-check
  echo "$archive: $(du -h "$archive" | cut -f1)"
}

# Plans and data of the models that the check trains, made by the tools of build/release.
pack_models() { # ROOT FOLDER
  local root="$1" models="$2" tools="$1/build/release/bin"
  mkdir -p "$models"
  if [[ ! -x "$tools/dtc-compile" || ! -x "$tools/dtc-import" ]]; then
    echo "gpu-check.sh: no $tools/dtc-compile and dtc-import; the archive has no models (scripts/build.sh)" >&2
    return
  fi
  python3 "$root/examples/make_mlp_samples.py" -o "$models/mlp.data.safetensors"
  "$tools/dtc-compile" "$root/examples/mlp.mlir" -o "$models/mlp.plan"
  cp "$root/README.md" "$models/gpt2-tiny.data.txt"
  cp "$root/README.md" "$models/gpt2-tiny-bf16.data.txt"
  "$tools/dtc-import" "$root/examples/gpt2-tiny/config.json" --batch 16 --seq 128 \
    --attention decomposed -o "$models/gpt2-tiny.mlir"
  "$tools/dtc-compile" "$models/gpt2-tiny.mlir" -o "$models/gpt2-tiny.plan"
  "$tools/dtc-compile" "$models/gpt2-tiny.mlir" --dtype bf16 -o "$models/gpt2-tiny-bf16.plan"
  rm "$models/gpt2-tiny.mlir"
}

# Trains a packed model on the CPU and on the GPU. The losses must agree to so much of themselves.
train() { # MODEL TOLERANCE
  local model="$1" tolerance="$2" device
  for device in cpu cuda; do
    "$here/bin/dtc-run" "$here/models/$model.plan" --data "$here/models/$model.data".* --steps 20 \
      --seed 5 --device "$device" --metrics "$results/$model-$device.jsonl"
  done
  paste -d' ' "$results/$model-cpu.jsonl" "$results/$model-cuda.jsonl" |
    sed -E 's/.*"loss": ?([-0-9.e+]+).*"loss": ?([-0-9.e+]+).*/\1 \2/' |
    awk -v tolerance="$tolerance" '
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
    printf '{"parts": ['
    for i in "${!names[@]}"; do
      printf '%s\n  {"name": %s, "state": %s, "seconds": %s, "note": %s}' "$separator" \
        "$(quoted "${names[i]}")" "$(quoted "${states[i]}")" "${seconds[i]}" "$(quoted "${notes[i]}")"
      separator=","
    done
    printf '\n]}\n'
  } >"$results/gpu-check.json.part"
  mv "$results/gpu-check.json.part" "$results/gpu-check.json"
}

# record NAME STATE SECONDS NOTE
record() {
  names+=("$1") states+=("$2") seconds+=("$3") notes+=("$4")
  printf '%-12s %-9s %6ss  %s\n' "$1" "$2" "$3" "$4"
  write_json
}

# part NAME LIMIT_SECONDS COMMAND...
part() {
  local name="$1" limit="$2" begin status=0 state note
  shift 2
  begin=$SECONDS
  if [[ "$(type -t "$1")" == function ]]; then
    export -f "$1"
    export here results
    set -- bash -euo pipefail -c '"$@"' - "$@"
  fi
  timeout --kill-after=10 "$limit" "$@" >"$results/$name.log" 2>&1 || status=$?
  note="$(grep -v '^ *$' "$results/$name.log" | tail -n 1 | cut -c1-160 || true)"
  case $status in
    0) state=ok ;;
    77) state=skipped ;; # no GPU
    124 | 137) state=stopped note="ran longer than $limit s; $note" ;;
    *) state=failed note="status $status; $note" ;;
  esac
  record "$name" "$state" $((SECONDS - begin)) "$note"
}

run() {
  results="${1:-gpu-check-results}"
  mkdir -p "$results"
  export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  local tests="$here/bin/dtc-cuda-kernel-test" sanitizer
  part devices 60 "$here/bin/dtc-run" --list-devices
  sed 's/^/    /' "$results/devices.log"
  part train-mlp 60 train mlp 1e-4
  part train-gpt2 100 train gpt2-tiny 1e-3
  part train-bf16 100 train gpt2-tiny-bf16 0.02
  part kernels 240 "$tests" --gtest_brief=1
  sanitizer="$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)"
  # Kernels with shared memory and barriers first; matrix products are cuBLASLt's.
  local filter='Reduce*:Softmax*:Norms*:CrossEntropy*:Indexing*:Optimizer*:Sharding*:Dropout*'
  for tool in memcheck racecheck synccheck; do
    if [[ -z "$sanitizer" ]]; then
      record "$tool" absent 0 "no compute-sanitizer in PATH and /usr/local/cuda/bin"
    else
      part "$tool" 100 "$sanitizer" --tool "$tool" --error-exitcode 1 "$tests" --gtest_brief=1 \
        --gtest_filter="$filter"
    fi
  done
  part times 120 "$here/bin/GpuKernelBenchmark" --benchmark_counters_tabular=true \
    --benchmark_out="$results/times.json"
  cat "$results/times.log"
  echo "$results/gpu-check.json"
  [[ ! " ${states[*]} " =~ " failed "|" stopped " ]]
}

case "${1:-}" in
  pack) [[ $# -eq 2 ]] && pack "$2" || { echo "usage: gpu-check.sh pack FILE.tar.gz" >&2; exit 2; } ;;
  run) [[ $# -le 2 ]] && run "${2:-}" ;;
  *) sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
