#!/usr/bin/env bash
# Installs what dtc builds with, where it is missing: Debian packages only. Safe to run again.
# Usage: scripts/install-dependencies.sh [--runtime-only]
set -euo pipefail

packages=(g++ cmake ninja-build ccache git ca-certificates
  protobuf-compiler libprotobuf-dev libdnnl-dev
  libcli11-dev libfmt-dev nlohmann-json3-dev libxxhash-dev prometheus-cpp-dev libgtest-dev libgmock-dev libbenchmark-dev
  libopenmpi-dev openmpi-bin)
if [[ "${1:-}" != --runtime-only ]]; then
  packages+=(libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools python3 perl-doc chromium)
fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  command -v sudo >/dev/null || { echo "error: ${missing[*]} must be installed; run as root or install sudo" >&2; exit 1; }
  as_root=(sudo)
fi
echo "Installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
