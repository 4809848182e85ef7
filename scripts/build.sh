#!/usr/bin/env bash
# Configures and builds a preset (default: release): all of it, or the targets after --target.
# Usage: scripts/build.sh [preset] [cmake option...] [--target target...]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
[[ $# -gt 0 ]] && shift
options=()
while [[ $# -gt 0 && "$1" != --target ]]; do
  options+=("$1")
  shift
done
cmake --preset "$preset" "${options[@]}" >build-configure.log 2>&1 || { cat build-configure.log >&2; rm -f build-configure.log; exit 1; }
rm -f build-configure.log
cmake --build --preset "$preset" "$@"
