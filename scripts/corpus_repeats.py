#!/usr/bin/env python3
"""Judges corpus cases again and again; a verdict may never differ from the first one but in its times.

usage: corpus_repeats.py BUILD_DIR [--repeats N] [--only WORD]... [--every K] [--jobs J]

BUILD_DIR holds the `echolo` binary. --every K takes each K-th case only. Prints "N passed, N failed".
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tests" / "corpus"
VOLATILE = {"seconds", "cached", "log", "stages"}


def stable(value):
    """The verdict without what may differ: wall times and whether something was found in a cache."""
    if isinstance(value, dict):
        return {key: stable(item) for key, item in value.items() if key not in VOLATILE}
    if isinstance(value, list):
        return [stable(item) for item in value]
    return value


def command_of(case, build, store):
    words = {}
    for line in case.read_text(errors="replace").splitlines():
        found = re.match(r"//\s*echolo-test:\s*(.*)", line)
        if found:
            words = dict(re.findall(r"(\w+)=(\"[^\"]*\"|\S+)", found.group(1)))
            break
    if not words:
        return None
    fabric = words.get("fabric", "nvlink")
    common = ["--json", "--fabric", fabric, "--store", store]
    if words.get("mode") == "check":
        return [str(build / "echolo"), "check", words["problem"], str(case), "--world", words["world"], *common]
    command = [str(build / "echolo"), "sanitize", "-n", words.get("n", "2"), str(case), *common]
    arguments = words.get("args", "").strip('"').split()
    return command + (["--", *arguments] if arguments else [])


def verdict_of(command):
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    try:
        return json.dumps(stable(json.loads(done.stdout)), sort_keys=True)
    except ValueError:
        return f"no verdict: exit code {done.returncode}, {done.stderr.decode(errors='replace')[:400]}"


def first_difference(one, other):
    at = next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
    return f"...{one[max(0, at - 120):at + 120]}...\n  against\n  ...{other[max(0, at - 120):at + 120]}..."


def repeat(case, build, repeats, store):
    command = command_of(case, build, store)
    if command is None:
        return None
    first = verdict_of(command)
    if first.startswith("no verdict"):
        return first
    for n in range(2, repeats + 1):
        again = verdict_of(command)
        if again != first:
            return f"run {n} differs: {first_difference(first, again)}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    given = parser.parse_args()
    build = given.build.resolve()
    cases = sorted(path for path in CORPUS.rglob("*.cu") if "echolo-test:" in path.read_text(errors="replace"))
    if given.only:
        cases = [path for path in cases if any(word in str(path.relative_to(CORPUS)) for word in given.only)]
    cases = cases[:: given.every]
    passed = failed = 0
    with tempfile.TemporaryDirectory() as store, concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        outcomes = pool.map(lambda case: (case, repeat(case, build, given.repeats, store)), cases)
        for case, outcome in outcomes:
            if outcome is None:
                continue
            if outcome:
                failed += 1
                print(f"{case.relative_to(CORPUS)}: {outcome}", flush=True)
            else:
                passed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
