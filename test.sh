#!/usr/bin/env bash
# Installs what is missing, builds, runs every test, and closes with "N passed, N failed".
#   ./test.sh            all tests (both tiers), release build
#   ./test.sh --fast     only the fast tier
#   ./test.sh --asan     all tests under AddressSanitizer and UndefinedBehaviorSanitizer
#   ./test.sh --fuzz S   the fuzz targets, S seconds each (installs clang)
#   ./test.sh --lint     clang-format and clang-tidy over all C++ (installs them)
set -euo pipefail
source "$(dirname "$0")/scripts/setup.sh"
mode=all
seconds=120
case "${1:-}" in
  "") ;;
  --fast) mode=fast ;;
  --asan) mode=asan ;;
  --fuzz) mode=fuzz; seconds=${2:-120} ;;
  --lint) mode=lint ;;
  *) echo "usage: ./test.sh [--fast|--asan|--fuzz SECONDS|--lint]" >&2; exit 2 ;;
esac

if [ "$mode" = fuzz ]; then
  setup_packages clang-16 libclang-rt-16-dev lld-16
  build fuzz
  passed=0 failed=0
  for target in build-fuzz/fuzz_*; do
    [ -x "$target" ] && [ -f "$target" ] || continue
    name=$(basename "$target"); name=${name#fuzz_}
    say "fuzzing $name for $seconds s"
    mkdir -p "build-fuzz/corpus-$name"
    what=${name%_parser}  # names the seeds and the words
    if "$target" -max_total_time="$seconds" -rss_limit_mb=4096 -print_final_stats=1 -dict="fuzz/$what.dict" \
      "build-fuzz/corpus-$name" "fuzz/corpus/$what"; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
    fi
  done
  echo "$passed passed, $failed failed"
  exit $((failed > 0 || passed == 0))
fi

if [ "$mode" = lint ]; then
  setup_packages clang-format-16 clang-tidy-16
  [ -f build/compile_commands.json ] || cmake --preset release >/dev/null
  mapfile -t sources < <(git ls-files 'src/*.cpp' 'tests/*.cpp' 'bench/*.cpp' 'fuzz/*.cpp')
  mapfile -t headers < <(git ls-files 'src/*.hpp' 'tests/*.hpp' 'include/*.h' 'include/*.hpp')
  passed=0 failed=0
  say "clang-format over ${#sources[@]} sources and ${#headers[@]} headers"
  if clang-format-16 --dry-run -Werror "${sources[@]}" "${headers[@]}"; then passed=1; else failed=1; fi
  say "clang-tidy (some minutes)"
  # What is built here: src/gpu/pe.cpp is compiled where CUDA's headers are.
  mapfile -t checked < <(git ls-files 'src/*.cpp' | while read -r f; do grep -qF "/$f\"" build/compile_commands.json && echo "$f"; done)
  if printf '%s\n' "${checked[@]}" | xargs -P "$(nproc)" -n 4 clang-tidy-16 -p build --quiet 2>/dev/null; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
  fi
  echo "$passed passed, $failed failed"
  exit $((failed > 0))
fi

setup_packages
setup_venv
preset=release dir=build
if [ "$mode" = asan ]; then preset=asan dir=build-asan; fi
build "$preset"
results=$PWD/$dir/test-results
rm -rf "$results"
mkdir -p "$results"
labels=()
[ "$mode" != fast ] || labels=(-LE slow)
say "running the tests"
# Every GoogleTest binary writes its counts as XML; every other test prints "N passed, N failed" itself.
status=0
GTEST_OUTPUT="xml:$results/" GTEST_BRIEF=1 ctest --test-dir "$dir" --output-on-failure --timeout 1500 -j "$(nproc)" "${labels[@]}" \
  -O "$results/ctest.log" || status=$?
python3 - "$results" "$dir/Testing/Temporary/LastTest.log" "$status" <<'PY'
import pathlib, re, sys
import xml.etree.ElementTree as xml
results, log, status = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
passed = failed = skipped = 0
for path in sorted(results.glob("*.xml")):
    root = xml.parse(path).getroot()
    cases = [case for suite in root for case in suite]
    bad = sum(1 for case in cases if case.find("failure") is not None)
    not_run = sum(1 for case in cases if case.get("result") in ("skipped", "suppressed"))
    failed += bad
    skipped += not_run
    passed += len(cases) - bad - not_run
for ok, bad in re.findall(r"^(\d+) passed, (\d+) failed$", log.read_text(errors="replace"), re.M):
    passed += int(ok)
    failed += int(bad)
# A test that crashed or ran out of time counts although it wrote no result.
if status != 0 and failed == 0:
    failed = 1
print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
sys.exit(1 if failed or not passed else 0)
PY
