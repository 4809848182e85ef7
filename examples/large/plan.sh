#!/usr/bin/env bash
# Plans the large examples and compares each choice with the strategy beside it, made by hand after what was published,
# under the same simulation. docs/planning.md (large models) shows what it prints. With --published it plans the
# published models of docs/models.md, few of which have a strategy beside them.
# Usage: examples/large/plan.sh [--published] [-o folder for what it writes] [example...]   (with dtc's programs in PATH)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=
published=
if [[ ${1:-} == --published ]]; then
  published=1
  shift
fi
if [[ ${1:-} == -o ]]; then
  out=$2
  shift 2
  mkdir -p "$out"
else
  out=$(mktemp -d)
  trap 'rm -rf "$out"' EXIT
fi

# name, configuration, samples of a batch, tokens or positions of a sample, cluster, devices, flags of dtc-import
examples='
gpt3-175b-1024  gpt3-175b  1536  2048  dgx-a100-80gb     1024
gpt3-175b-8192  gpt3-175b  1536  2048  dgx-a100-80gb     8192
gpt-530b-2240   gpt-530b   1920  2048  dgx-a100-80gb     2240
gpt-1t-3072     gpt-1t     3072  2048  dgx-a100-80gb     3072
gpt-1t-16384    gpt-1t     8192  2048  dgx-a100-80gb     16384
gpt3-22b-64     gpt3-22b   64    2048  dgx-a100-80gb     64
llama-7b-8      llama-7b   64    4096  dgx-a100-80gb     8
llama-7b-mixed  llama-7b   64    4096  mixed-a100-h100   8'
[[ -z $published ]] || examples='
llama-3.1-8b-128    llama-3.1-8b    256   8192  dgx-h100  128
llama-3.1-405b-8192 llama-3.1-405b  2048  8192  dgx-h100  8192
qwen3-0.6b-64       qwen3-0.6b      1024  4096  dgx-h100  64
qwen3-32b-256       qwen3-32b       1024  4096  dgx-h100  256
mistral-7b-64       mistral-7b      512   8192  dgx-h100  64
gemma-2-9b-128      gemma-2-9b      512   8192  dgx-h100  128
gemma-2-27b-256     gemma-2-27b     512   8192  dgx-h100  256
phi-3-mini-512      phi-3-mini-4k   1024  4096  dgx-h100  512
vit-l-16-64         vit-l-16        4096  197   dgx-h100  64
llama-3.1-405b-128k llama-3.1-405b  128   131072  dgx-h100  16384
mixtral-8x7b-64     mixtral-8x7b    1024  4096  dgx-h100  64    --expert-capacity 1
qwen3-30b-a3b-16    qwen3-30b-a3b   512   4096  dgx-h100  16    --expert-capacity 1
qwen3-235b-a22b-256 qwen3-235b-a22b 2048  4096  dgx-h100  256   --expert-capacity 1
gpt-oss-120b-64     gpt-oss-120b    512   4096  dgx-h100  64    --expert-capacity 1
deepseek-v3-1024    deepseek-v3     8192  4096  dgx-h100  1024  --expert-capacity 1'

known=$(awk 'NF { print $1 }' <<<"$examples")
for name in "$@"; do
  if ! grep -qx -- "$name" <<<"$known"; then
    echo "error: there is no example '$name'; the examples are" $known >&2
    exit 2
  fi
done

# The simulated step of a plan on the example's cluster, in seconds, with a star if the plan does not fit the memory of its
# devices.
seconds_of() {
  dtc-plan simulate "$1" "${machines[@]}" --json |
    awk '/"step_seconds":/ && !seconds { seconds = $2 + 0 } /"fits": false/ { star = "*" } END { print seconds star }'
}

table=$(printf '%-20s %10s %10s %8s %9s  %s' example chosen "by hand" ratio planning form)
while read -r name config batch seq cluster devices flags; do
  [[ -z $name ]] && continue
  [[ $# -gt 0 && " $* " != *" $name "* ]] && continue
  model=$out/$config-$batch-$seq.mlir
  # The flags are words.
  # shellcheck disable=SC2086
  [[ -f $model ]] || dtc-import "$here/../$config/config.json" --batch "$batch" --seq "$seq" $flags -o "$model"
  machines=(--cluster "$here/../clusters/$cluster.textproto" --devices "$devices")
  echo "== $name"
  begin=$(date +%s.%N)
  chosen=$(dtc-compile "$model" "${machines[@]}" --dtype bf16 -o "$out/$name.plan")
  end=$(date +%s.%N)
  echo "$chosen"
  hand=
  if [[ -f $here/$name.textproto ]]; then
    by_hand=$(dtc-compile "$model" "${machines[@]}" --strategy "$here/$name.textproto" -o "$out/$name-by-hand.plan")
    printf '\nby hand:\n%s\n\n' "$by_hand"
    hand=$(seconds_of "$out/$name-by-hand.plan")
  fi
  form=$(sed -n 's/^chosen: //p' <<<"$chosen")
  table+=$(awk -v name="$name" -v chosen="$(seconds_of "$out/$name.plan")" -v hand="$hand" \
    -v planning="$(awk "BEGIN { print $end - $begin }")" -v form="$form" \
    'BEGIN { printf "\n%-20s %8.2f s %10s %8s %7.1f s  %s", name, chosen, hand == "" ? "" : sprintf("%.2f s", hand),
             hand == "" ? "" : sprintf("%.3f", chosen / hand), planning, form
             if (hand ~ /\*/) printf " (by hand: does not fit the memory)" }')
done <<<"$examples"
printf '%s\n' "$table"
