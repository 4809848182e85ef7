#!/usr/bin/env bash
# Installs what dtc builds with, where it is missing: Debian packages, and for the tests of dtc-data Python packages to
# build/python. Safe to run again.
# Usage: scripts/install-dependencies.sh [--runtime-only]
set -euo pipefail

packages=(g++ lld cmake ninja-build ccache git ca-certificates python3 python3-pip
  protobuf-compiler libprotobuf-dev libdnnl-dev
  libcli11-dev libfmt-dev nlohmann-json3-dev libxxhash-dev prometheus-cpp-dev libgtest-dev libgmock-dev libbenchmark-dev
  libopenmpi-dev openmpi-bin iproute2)
if [[ "${1:-}" != --runtime-only ]]; then
  packages+=(clang-format clang-tidy-22 libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools perl-doc chromium)
fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [[ ${#missing[@]} -gt 0 ]]; then
  as_root=()
  if [[ $(id -u) -ne 0 ]]; then
    command -v sudo >/dev/null || { echo "error: ${missing[*]} must be installed; run as root or install sudo" >&2; exit 1; }
    as_root=(sudo)
  fi
  echo "Installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

# dtc-data alone needs them, and its tests are skipped without them.
folder="$(dirname "$0")/../build/python"
for package in tokenizers=0.23.3 pillow=13.0.0; do
  name=${package%=*} version=${package#*=}
  [[ -d "$folder/$name-$version.dist-info" ]] && continue
  echo "Installing $name $version to build/python"
  python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --upgrade --target "$folder" \
    "$name==$version" || echo "warning: without the Python package $name tests of dtc-data are skipped" >&2
done
