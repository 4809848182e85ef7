#!/usr/bin/env bash
# Installs what is missing, builds, and runs tests of the presets that are named (default: release): all of them, or those
# of the test programs after a colon. CMake's options hold for the preset that follows them. Says at the end how long each
# part took.
# Usage: scripts/test.sh [[-Doption=value]... preset[:program,...]]...
# Example: scripts/test.sh -DDTC_CUDA_ARCHITECTURES=90-real release thread:ExecutorTests,FabricTests
set -euo pipefail
cd "$(dirname "$0")/.."
runs=("${@:-release}")

parts=()
part() { # name command...
  local name=$1 start=$SECONDS
  shift
  "$@"
  parts+=("$(printf '%6d s  %s' $((SECONDS - start)) "$name")")
}
trap '[[ ${#parts[@]} -eq 0 ]] || printf "%s\n" "${parts[@]}"' EXIT

# Repeats at the end what a long output hides: the names of the failed tests, and the last lines of the first ones.
run_tests() { # preset ctest-arguments...
  local preset=$1 status=0
  shift
  ctest --preset "$preset" -j "$(nproc)" --no-tests=error "$@" </dev/null || status=$?
  ((status == 0)) || scripts/show-failures "build/$preset/Testing/Temporary" || true
  return "$status"
}

options=(-DDTC_BUILD_TESTS=ON)
for run in "${runs[@]}"; do
  if [[ "$run" == -D* ]]; then
    options+=("$run")
    continue
  fi
  preset=${run%%:*}
  programs=()
  [[ "$run" == *:* ]] && IFS=, read -ra programs <<<"${run#*:}"
  flags=()
  [[ "$preset" == runtime-only || "$preset" == thread || "$preset" == address ]] && flags=(--runtime-only)
  part "$preset: install" scripts/install-dependencies.sh "${flags[@]}"
  if [[ ${#programs[@]} -eq 0 ]]; then
    part "$preset: build" scripts/build.sh "$preset" "${options[@]}"
    part "$preset: tests" run_tests "$preset"
  else
    part "$preset: build" scripts/build.sh "$preset" "${options[@]}" --target "${programs[@]}"
    labels="^($(IFS='|'; echo "${programs[*]}"))$"
    part "$preset: tests" run_tests "$preset" -L "$labels"
  fi
  options=(-DDTC_BUILD_TESTS=ON)
done
