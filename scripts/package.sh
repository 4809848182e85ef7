#!/usr/bin/env bash
# Packs dtc-run, dtc-plan and the libraries that they need for machines that have neither.
#
#   scripts/package.sh [OPTION...]
#     --output FILE          the archive, FILE.tar.gz (default: dtc-VERSION-linux-x86_64.tar.gz) or FILE.tar.xz, which has half
#                            the size
#     --folder FOLDER        a folder instead of an archive; it must not exist
#     --build FOLDER         programs of this build folder, which has no MPI; without it they are built in build/package
#     --compiler FOLDER      where dtc-compile and dtc-import are (default: build/release/bin)
#     --no-gpu-check         without the check of GPUs: its programs and models
#
# The archive runs on x86-64 Linux with the glibc that its README.md names, or a newer one, in any folder,
# without root, network, LLVM or MPI.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
output="" folder="" build="" compiler="$root/build/release/bin" gpu_check=yes

fail() {
  echo "error: package.sh: $1" >&2
  exit 1
}

while [[ $# -gt 0 ]]; do
  case "$1" in
    --output | --folder | --build | --compiler)
      [[ $# -ge 2 && -n "$2" ]] || fail "$1 needs a value"
      printf -v "${1#--}" '%s' "$2"
      shift 2
      ;;
    --no-gpu-check) gpu_check="" && shift ;;
    --help) sed -n '2,14s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit ;;
    *) fail "'$1' is none of --output, --folder, --build, --compiler, --no-gpu-check" ;;
  esac
done
[[ -z "$output" || -z "$folder" ]] || fail "--output and --folder exclude each other"
[[ "$output" =~ ^(.*\.tar\.[gx]z)?$ ]] || fail "--output: '$output' ends with neither .tar.gz nor .tar.xz"
[[ ! -e "$folder" ]] || fail "--folder: $folder exists; remove it, or name another"

version="$(sed -nE 's/^project\(dtc VERSION ([0-9.]+).*/\1/p' "$root/CMakeLists.txt")"
name="dtc-$version-linux-x86_64"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
package="$scratch/$name"
mkdir -p "$package/bin" "$package/lib"

if [[ -z "$build" ]]; then
  build="$root/build/package"
  # For the GPUs of other machines, whether or not this one has any.
  cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DDTC_BUILD_COMPILER=OFF -DDTC_MPI=OFF \
    -DDTC_CUDA_ARCHITECTURES="80-real;90-real;100" >/dev/null
  targets=(dtc-run dtc-plan)
  if [[ -n "$gpu_check" && -d "$build/runtime/backends/cuda" ]]; then
    targets+=(dtc-cuda-kernel-test GpuKernelBenchmark GpuProductBenchmark)
  fi
  cmake --build "$build" --target "${targets[@]}"
fi

copy_programs() {
  local program
  for program in dtc-run dtc-plan; do
    [[ -x "$build/bin/$program" ]] || fail "--build: no $build/bin/$program; build it first (scripts/build.sh)"
    cp "$build/bin/$program" "$package/bin/"
  done
  [[ -n "$gpu_check" ]] || return 0
  cp "$root/scripts/gpu-check.sh" "$root/scripts/compare-torch.py" "$package/"
  for program in dtc-cuda-kernel-test GpuKernelBenchmark GpuProductBenchmark; do
    if [[ -x "$build/bin/$program" ]]; then
      cp "$build/bin/$program" "$package/bin/"
    else
      echo "package.sh: no $build/bin/$program (it needs the CUDA toolkit): gpu-check.sh will leave it out" >&2
    fi
  done
}

# All shared libraries but those of glibc, which fit the kernel and each other. Programs look in ../lib first (RPATH).
copy_libraries() {
  if ldd "$package"/bin/* | grep -q 'libmpi'; then
    fail "the programs of $build need MPI, which is a part of the cluster that it runs on; configure with -DDTC_MPI=OFF"
  fi
  ldd "$package"/bin/* | awk '$3 ~ /^\// { print $3 }' | sort -u |
    grep -vE '/lib(c|m|dl|rt|pthread|resolv|util|anl|mvec)\.so\.[0-9]+$' >"$scratch/libraries"
  local library
  while read -r library; do cp -L "$library" "$package/lib/"; done <"$scratch/libraries"
}

# Licences of the contents of the package: libraries beside the programs, and code that is compiled into them.
copy_licences() {
  local library packages=(libcli11-dev nlohmann-json3-dev) owner text
  [[ -z "$gpu_check" ]] || packages+=(libgtest-dev libbenchmark-dev)
  mkdir "$package/licences"
  cp "$root/LICENSE" "$package/licences/dtc"
  while read -r library; do
    library="$(readlink -f "$library")"
    # Debian names some files without /usr, which is where / leads to today.
    owner="$(dpkg-query --search "$library" "${library#/usr}" 2>/dev/null | head -n 1)" || true
    [[ -n "$owner" ]] || fail "$library is of no Debian package, so its licence is not known"
    packages+=("${owner%%:*}")
  done <"$scratch/libraries"
  for owner in "${packages[@]}"; do
    text="/usr/share/doc/$owner/copyright"
    [[ -r "$text" ]] || fail "no licence of $owner: expected $text"
    cp -L "$text" "$package/licences/$owner"
  done
  # Debian's files refer to the texts of common licences.
  grep -ohE '/usr/share/common-licenses/[A-Za-z0-9.-]*[A-Za-z0-9]' "$package"/licences/* | sort -u |
    while read -r text; do [[ ! -r "$text" ]] || cp -L "$text" "$package/licences/"; done
  [[ ! -d "$build/runtime/backends/cuda" ]] || copy_cuda_licence
}

# CUDA's runtime library is linked into the programs. Where its licence is depends on how the toolkit was installed.
copy_cuda_licence() {
  local toolkit text
  toolkit="$(sed -nE 's|^DTC_NVCC:FILEPATH=(.*)/bin/[^/]*$|\1|p' "$build/CMakeCache.txt")"
  text="$(find -L "$toolkit" -maxdepth 4 \( -name EULA.txt -o -path '*nvidia_cuda_runtime*/License.txt' \) |
    sort | head -n 1)"
  [[ -n "$text" ]] || fail "no licence of the CUDA runtime: expected EULA.txt in $toolkit"
  cp "$text" "$package/licences/cuda-runtime"
  # The headers of cudnn-frontend are compiled into the programs, where they were found.
  local frontend
  frontend="$(sed -nE 's|^DTC_CUDNN_FRONTEND_INCLUDE_DIR:PATH=(/.*)$|\1|p' "$build/CMakeCache.txt")"
  [[ -d "$frontend" ]] || return 0
  text="$(find -L "$(dirname "$frontend")" -maxdepth 3 -path '*cudnn*' -name LICENSE.txt | sort | head -n 1)"
  [[ -n "$text" ]] || fail "no licence of cudnn-frontend: expected LICENSE.txt beside $frontend"
  cp "$text" "$package/licences/cudnn-frontend"
}

# Plans and data that the check and the examples of README.md train.
make_models() {
  local models="$package/models" model
  if [[ ! -x "$compiler/dtc-compile" || ! -x "$compiler/dtc-import" ]]; then
    echo "package.sh: no $compiler/dtc-compile and dtc-import, so no models (scripts/build.sh builds them)" >&2
    return
  fi
  mkdir "$models"
  python3 "$root/examples/make_mlp_samples.py" -o "$models/mlp.data.safetensors"
  "$compiler/dtc-compile" "$root/examples/mlp.mlir" -o "$models/mlp.plan"
  [[ -n "$gpu_check" ]] || return 0
  for model in gpt2-tiny llama-tiny; do
    cp "$root/README.md" "$models/$model.data.txt"
    "$compiler/dtc-import" "$root/examples/$model/config.json" --batch 16 --seq 128 -o "$scratch/$model.mlir"
    "$compiler/dtc-compile" "$scratch/$model.mlir" -o "$models/$model.plan"
    "$compiler/dtc-compile" "$scratch/$model.mlir" --dtype bf16 -o "$models/$model-bf16.plan"
    "$compiler/dtc-compile" "$scratch/$model.mlir" --mesh dp=2,tp=2 -o "$models/$model-devices.plan"
  done
  make_layouts "$models" "$scratch/gpt2-tiny.mlir"
  make_speed_models "$models"
}

# A model in layouts of 2 to 8 devices, which share a GPU over NCCL.
make_layouts() { # FOLDER MODEL
  local layout flags
  while read -r layout flags; do
    # shellcheck disable=SC2086 # several flags
    "$compiler/dtc-compile" "$2" $flags -o "$1/gpt2-tiny-$layout.plan"
  done <<'LAYOUTS'
dp --mesh dp=2
zero3 --mesh dp=2 --zero 3
tp --mesh tp=2
dp-tp --mesh dp=2,tp=2
dp-tp-bf16 --mesh dp=2,tp=2 --dtype bf16
pp --mesh pp=2 --microbatches 4
pp-tp --mesh pp=2,tp=2 --microbatches 4
dp-tp-pp --mesh dp=2,tp=2,pp=2 --microbatches 4
LAYOUTS
}

# Models whose speed is measured. Every byte of a text is a token of their vocabularies.
make_speed_models() { # FOLDER
  local models="$1"
  for _ in $(seq 40); do cat "$root/README.md"; done >"$models/speed.data.txt"
  sed -e 's/"n_embd": 768/"n_embd": 1600/; s/"n_layer": 12/"n_layer": 48/; s/"n_head": 12/"n_head": 25/' \
    "$root/examples/gpt2-124m/config.json" >"$scratch/gpt2-1558m.json"
  "$compiler/dtc-import" "$root/examples/gpt2-124m/config.json" --batch 32 --seq 1024 -o "$scratch/gpt2-124m.mlir"
  "$compiler/dtc-import" "$scratch/gpt2-1558m.json" --batch 8 --seq 1024 -o "$scratch/gpt2-1558m.mlir"
  "$compiler/dtc-import" "$scratch/gpt2-1558m.json" --batch 64 --seq 1024 -o "$scratch/gpt2-1558m-sum.mlir"
  # Samples of 2048 tokens take 3.3 GiB each beside 17 GiB; with 16 of them the plan states 70 GiB of the 80 GB of a GPU. The
  # check trains with 8 as well, as the fastest batch need not be the largest.
  for batch in 8 16; do
    "$compiler/dtc-import" "$root/examples/llama-3.2-1b/config.json" --batch $batch --seq 2048 \
      -o "$scratch/llama-1b-$batch.mlir"
  done
  local flags
  for model in gpt2-124m gpt2-1558m gpt2-1558m-sum llama-1b-8 llama-1b-16; do
    flags=()
    [[ "$model" != *-sum ]] || flags=(--microbatches 8) # gradients of 8 batches are summed
    "$compiler/dtc-compile" "$scratch/$model.mlir" --dtype bf16 "${flags[@]}" -o "$models/$model.plan"
    "$package/bin/dtc-plan" simulate "$models/$model.plan" --cluster "$root/examples/clusters/dgx-h100.textproto" \
      >"$models/$model.prediction.txt"
  done
}

write_readme() {
  local glibc
  glibc="$(objdump -T "$package"/bin/* "$package"/lib/* | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)"
  cat >"$package/README.md" <<README
# dtc $version for x86-64 Linux

Trains and generates from plans of dtc-compile. This needs glibc ${glibc#GLIBC_} or newer (\`ldd --version\`), and for
\`--device cuda\` a GPU with its driver and cuBLASLt. It needs no root, no network and no fixed folder.

    bin/dtc-run models/mlp.plan --data models/mlp.data.safetensors --steps 100
    bin/dtc-run devices
    bin/dtc-plan show models/mlp.plan

Several processes exchange tensors over TCP, started by \`--processes\`, torchrun or a script. Runs over MPI need a dtc-run that is
built against the MPI of the cluster: \`scripts/build.sh runtime-only\` in the sources of dtc.
${gpu_check:+
\`./gpu-check.sh\` checks the GPU of this machine in at most ten minutes: a table, and gpu-check-results/gpu-check.json.
}
The licences of dtc and of the libraries in lib/ are in licences/.
README
}

copy_programs
copy_libraries
make_models
write_readme
if [[ -n "$folder" ]]; then
  mkdir -p "$(dirname "$folder")"
  mv "$package" "$folder"
  exit
fi
copy_licences
output="${output:-$name.tar.gz}"
compress=(gzip)
[[ "$output" != *.xz ]] || compress=(xz --threads=0)
tar -C "$scratch" --sort=name --owner=0 --group=0 --numeric-owner -c "$name" | "${compress[@]}" >"$output.part"
mv "$output.part" "$output"
echo "$output: $(du -h "$output" | cut -f1)"
