#!/usr/bin/env bash
# The whole GPU test on one command: builds the judge, the PE program and the plan's candidates here, runs each
# world of the plan, and prints the table last.
#   tests/gpu/run.sh [PLAN...]      plans of tests/gpu/plans by name or by path; without any: correctness, times
# Environment: PYTHON (one with PyTorch and nvidia.nvshmem), NVCC, OUT (folder for results), GPU_JOBS,
# ECHOLO_GPU_LIMIT_MS (that a PE may take to answer; 20000).
# Exit codes: 0 all correct, or skipped with a reason; 1 a candidate is wrong; 3 the machine lacks something.
set -uo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
python=${PYTHON:-python3}
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}

skip() { echo "tests/gpu: skipped: $*"; exit 0; }
lack() { echo "tests/gpu: $*" >&2; exit 3; }

smi=$(command -v nvidia-smi || ls /usr/local/nvidia/bin/nvidia-smi 2>/dev/null) || skip "there is no nvidia-smi, so no GPU"
n_gpus=$("$smi" -L 2>/dev/null | grep -c '^GPU')
[ "$n_gpus" -gt 0 ] || skip "nvidia-smi lists no GPU"
[ -x "$nvcc" ] || lack "no nvcc at $nvcc; set NVCC"
nvshmem=$("$python" -c 'import nvidia.nvshmem as n; print(list(n.__path__)[0])') ||
  lack "$python has no nvidia.nvshmem; set PYTHON to one that has it and PyTorch"

work=$(mktemp -d -p /dev/shm echolo-gpu.XXXXXX)
out=${OUT:-$work}
mkdir -p "$work/lib" "$work/build" "$work/cases"
for lib in "$nvshmem"/lib/*.so.3 "$nvshmem"/lib/*.a; do
  name=$(basename "$lib")
  ln -s "$lib" "$work/lib/$name"
  [ "${name%.3}" = "$name" ] || ln -s "$lib" "$work/lib/${name%.3}"
done
export LD_LIBRARY_PATH="$work/lib:${LD_LIBRARY_PATH:-}"

mps=""
end() {
  if [ -n "$mps" ]; then echo quit | timeout 10 "$mps" >/dev/null 2>&1; fi
  rm -rf "$work"
}
trap end EXIT

# --- Plans: KERNEL[:KNOB=VALUE,...] WORLD DTYPE PARAMS SETS REPEATS ROUNDS [faulty] ---
[ $# -gt 0 ] || set -- correct times
plans=()
for plan in "$@"; do
  [ -f "$plan" ] || plan="tests/gpu/plans/$plan.plan"
  [ -f "$plan" ] || lack "there is no plan $plan"
  plans+=("$plan")
done
grep -hv '^ *\(#\|$\)' "${plans[@]}" >"$work/all.plan"

# --- Build ---
start=$(date +%s)
cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
gencode="-gencode=arch=compute_90a,code=sm_90a"
flags=(-std=c++17 $gencode -rdc=true -O3 -lineinfo -Xcompiler -fPIC -I"$root/include" -I"$nvshmem/include")
{
  "$nvcc" "${flags[@]}" -dc src/gpu/shim.cu -o "$work/build/shim.o" &
  "$nvcc" -std=c++17 -O2 -Iinclude src/gpu/pe.cpp -o "$work/build/echolo-gpu-pe" -ldl &
  g++ -std=c++20 -O2 src/gpu/judge.cpp -o "$work/build/echolo-gpu-judge" &
  wait
} 2>&1 | grep -v '^$'
[ -x "$work/build/echolo-gpu-pe" ] && [ -x "$work/build/echolo-gpu-judge" ] || lack "the GPU lane's own programs do not build"

object_of() { echo "$work/build/$(echo "$1" | tr -c 'A-Za-z0-9_\n' '_').so"; }
build_one() {
  local kernel=${1%%:*} knobs="" object source
  object=$(object_of "$1")
  case $1 in *:*) knobs=$(echo "${1#*:}" | sed 's/^/-DKNOB_/; s/,/ -DKNOB_/g') ;; esac
  source=$kernel
  [ -f "$source" ] || source="kernels/$kernel/kernel.cu"
  # shellcheck disable=SC2086
  "$nvcc" "${flags[@]}" $knobs -dc "$source" -o "$object.o" &&
    "$nvcc" $gencode -shared -Xcompiler -fPIC "$object.o" "$work/build/shim.o" -o "$object" \
      -L"$work/lib" -lnvshmem_host -lnvshmem_device -lcuda || echo "does not build: $1"
}
export -f build_one object_of
export work nvcc gencode root nvshmem
declare -p flags >"$work/flags"
awk '{print $1}' "$work/all.plan" | sort -u |
  xargs -P "${GPU_JOBS:-$(nproc)}" -I{} bash -c 'source "$work/flags"; build_one {}' 2>&1 | grep -v '^$' | tee "$out/build.log"
echo "built in $(($(date +%s) - start)) s: nvcc $("$nvcc" --version | grep -o 'V[0-9.]*'), NVSHMEM of $python, $n_gpus x $("$smi" --query-gpu=name --format=csv,noheader | head -1)"

# --- Run, one judge a world ---
status=0
: >"$out/results.jsonl"
: >"$work/table"
for world in $(awk '{print $2}' "$work/all.plan" | sort -un); do
  : >"$work/world.plan"
  while read -r kernel w dtype params sets repeats rounds expect; do
    [ "$w" = "$world" ] || continue
    if [ -f "$kernel" ]; then  # a case of tests/corpus
      problem=$(sed -n 's|^// echolo-test:.* problem=\([a-z_]*\).*|\1|p' "$kernel")
    else
      problem=$(sed -n 's/^problem = "\(.*\)"/\1/p' "kernels/${kernel%%:*}/kernel.toml")
    fi
    echo "$kernel $(object_of "$kernel") $problem $dtype $params $sets $repeats $rounds $expect" >>"$work/world.plan"
  done <"$work/all.plan"
  if [ "$world" -gt "$n_gpus" ] && [ -z "$mps" ]; then
    control=$(command -v nvidia-cuda-mps-control || ls /usr/local/nvidia/bin/nvidia-cuda-mps-control 2>/dev/null ||
      find / -name nvidia-cuda-mps-control -not -path '/proc/*' 2>/dev/null | head -1)
    [ -n "$control" ] || lack "no nvidia-cuda-mps-control: $world PEs cannot share $n_gpus GPU"
    export CUDA_MPS_PIPE_DIRECTORY="$work/mps" CUDA_MPS_LOG_DIRECTORY="$work/mps-log"
    mkdir -p "$work/mps" "$work/mps-log"
    PATH="$(dirname "$control"):$PATH" "$control" -d && mps=$control
  fi
  "$work/build/echolo-gpu-judge" "$world" "$n_gpus" "$work/build/echolo-gpu-pe" "$python" "$root/python" \
    "$root/problems" "$work/cases" "$work/world.plan" "$out/results.jsonl" | tee -a "$work/table"
  code=${PIPESTATUS[0]}
  if [ "$code" -ne 0 ]; then
    [ "$code" -gt "$status" ] && status=$code
    echo "--- the ends of the logs, world $world ---"
    tail -n 15 "$work"/cases/*.log
  fi
done
echo "=== table ==="
cat "$work/table"
cp "$work/table" "$out/table.txt" 2>/dev/null
exit "$status"
