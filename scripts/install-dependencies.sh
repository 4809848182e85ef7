#!/usr/bin/env bash
# Installs what dtc builds with, where it is missing: Debian packages, and Python packages to build/python: those of dtc-data
# for its tests, nanobind, and the headers of cudnn-frontend. Safe to run again.
# Usage: scripts/install-dependencies.sh [--runtime-only]
set -euo pipefail

packages=(g++ lld cmake ninja-build ccache git ca-certificates python3 python3-pip
  protobuf-compiler libprotobuf-dev libdnnl-dev
  libcli11-dev libfmt-dev nlohmann-json3-dev libxxhash-dev prometheus-cpp-dev libgtest-dev libgmock-dev libbenchmark-dev
  libopenmpi-dev openmpi-bin iproute2)
if [[ "${1:-}" != --runtime-only ]]; then
  packages+=(clang-format clang-tidy-22 libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools perl-doc chromium
    valgrind python3-dev)
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

# install_python PACKAGE VERSION CONSEQUENCE: the last says what is missing without the package.
folder="$(dirname "$0")/../build/python"
install_python() {
  [[ -d "$folder/${1//-/_}-$2.dist-info" ]] && return
  echo "Installing $1 $2 to build/python"
  python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --upgrade --target "$folder" \
    "$1==$2" || echo "warning: without the Python package $1 $3" >&2
}
install_python nanobind 3.1.0 "dtc._native cannot be built (-DDTC_BUILD_PYTHON=ON)"
install_python tokenizers 0.23.3 "tests of dtc-data are skipped"
install_python jinja2 3.1.6 "tests of chat templates are skipped"
install_python markupsafe 3.0.4 "tests of chat templates are skipped"
install_python numpy 2.4.6 "tests of federated learning are skipped"
install_python pillow 13.0.0 "tests of dtc-data are skipped"
install_python nvidia-cudnn-frontend 1.18.0 "attention on GPUs is computed by dtc's own kernels alone"
