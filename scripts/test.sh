#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test. Usage: scripts/test.sh [preset]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
flags=()
[[ "$preset" == runtime-only ]] && flags=(--runtime-only)
scripts/install-dependencies.sh "${flags[@]}"
scripts/build.sh "$preset" -DDTC_BUILD_TESTS=ON
# Tests start threads of their own: one at a time keeps small machines honest.
ctest --preset "$preset" --no-tests=error </dev/null
