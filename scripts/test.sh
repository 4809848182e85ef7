#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test of the presets that are named (default: release). Says at the end
# how long each part took. Usage: scripts/test.sh [preset...]
set -euo pipefail
cd "$(dirname "$0")/.."
presets=("${@:-release}")

parts=()
part() { # name command...
  local name=$1 start=$SECONDS
  shift
  "$@"
  parts+=("$(printf '%6d s  %s' $((SECONDS - start)) "$name")")
}
trap '[[ ${#parts[@]} -eq 0 ]] || printf "%s\n" "${parts[@]}"' EXIT

for preset in "${presets[@]}"; do
  flags=()
  [[ "$preset" == runtime-only || "$preset" == thread || "$preset" == address ]] && flags=(--runtime-only)
  part "$preset: install" scripts/install-dependencies.sh "${flags[@]}"
  part "$preset: build" scripts/build.sh "$preset" -DDTC_BUILD_TESTS=ON
  # Tests start threads of their own: one at a time keeps small machines honest.
  part "$preset: tests" ctest --preset "$preset" --no-tests=error </dev/null
done
