#!/usr/bin/env bash
# Plans the large examples and compares each choice with the strategy beside it, made by hand after what was published,
# under the same simulation. docs/planning.md (large models) shows what it prints.
# Usage: examples/large/plan.sh [-o folder for what it writes] [example...]   (with dtc's programs in PATH)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=
if [[ ${1:-} == -o ]]; then
  out=$2
  shift 2
  mkdir -p "$out"
else
  out=$(mktemp -d)
  trap 'rm -rf "$out"' EXIT
fi

# name, configuration, samples of a batch, tokens of a sample, cluster, devices
examples='
gpt3-175b-1024  gpt3-175b  1536  2048  dgx-a100-80gb     1024
gpt3-175b-8192  gpt3-175b  1536  2048  dgx-a100-80gb     8192
gpt-530b-2240   gpt-530b   1920  2048  dgx-a100-80gb     2240
gpt-1t-3072     gpt-1t     3072  2048  dgx-a100-80gb     3072
gpt-1t-16384    gpt-1t     8192  2048  dgx-a100-80gb     16384
gpt3-22b-64     gpt3-22b   64    2048  dgx-a100-80gb     64
llama-7b-8      llama-7b   64    4096  dgx-a100-80gb     8
llama-7b-mixed  llama-7b   64    4096  mixed-a100-h100   8'

known=$(awk 'NF { print $1 }' <<<"$examples")
for name in "$@"; do
  if ! grep -qx -- "$name" <<<"$known"; then
    echo "error: there is no example '$name'; the examples are" $known >&2
    exit 2
  fi
done

# The simulated step of a plan on the example's cluster, in seconds.
seconds_of() {
  dtc-plan simulate "$1" "${machines[@]}" --json | sed -n 's/^ *"step_seconds": \([0-9.e+-]*\),*$/\1/p' | head -n 1
}

table=$(printf '%-16s %10s %10s %8s %9s  %s' example chosen "by hand" ratio planning form)
while read -r name config batch seq cluster devices; do
  [[ -z $name ]] && continue
  [[ $# -gt 0 && " $* " != *" $name "* ]] && continue
  model=$out/$config-$batch-$seq.mlir
  [[ -f $model ]] || dtc-import "$here/../$config/config.json" --batch "$batch" --seq "$seq" -o "$model"
  machines=(--cluster "$here/../clusters/$cluster.textproto" --devices "$devices")
  echo "== $name"
  begin=$(date +%s.%N)
  chosen=$(dtc-compile "$model" "${machines[@]}" --dtype bf16 -o "$out/$name.plan")
  end=$(date +%s.%N)
  echo "$chosen"
  by_hand=$(dtc-compile "$model" "${machines[@]}" --strategy "$here/$name.textproto" -o "$out/$name-by-hand.plan")
  printf '\nby hand:\n%s\n\n' "$by_hand"
  form=$(sed -n 's/^chosen: //p' <<<"$chosen")
  table+=$(awk -v name="$name" -v chosen="$(seconds_of "$out/$name.plan")" -v hand="$(seconds_of "$out/$name-by-hand.plan")" \
    -v planning="$(awk "BEGIN { print $end - $begin }")" -v form="$form" \
    'BEGIN { printf "\n%-16s %8.2f s %8.2f s %8.3f %7.1f s  %s", name, chosen, hand, chosen / hand, planning, form }')
done <<<"$examples"
printf '%s\n' "$table"
