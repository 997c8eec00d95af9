# Sourced by run.sh and test.sh: installs what is missing, makes .venv, builds. Every step is skipped when it has been
# done, and may be interrupted at any point: the next run goes on from there.

cd "$(dirname "${BASH_SOURCE[0]}")/.."
ECHOLO_ROOT=$PWD

# What the build links against and the tools that it and the judge run (docs/architecture.md, "Dependencies").
DEBIAN_PACKAGES=(
  g++ make cmake ninja-build ccache pkg-config binutils
  libfmt-dev libspdlog-dev libcli11-dev nlohmann-json3-dev libtomlplusplus-dev libsqlitecpp-dev libsqlite3-dev
  libhwy-dev libseccomp-dev bubblewrap libgtest-dev librapidcheck-dev libbenchmark-dev
)

say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }
fail() { printf 'error: %s\n' "$*" >&2; exit 3; }

missing_packages() {
  local package
  for package in "${DEBIAN_PACKAGES[@]}" "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
  done
}

# setup_packages [EXTRA...]
setup_packages() {
  command -v dpkg-query >/dev/null || fail "this is not a Debian-like system (no dpkg); install by hand: ${DEBIAN_PACKAGES[*]} $*"
  local extra=("$@") missing
  # A Python without ensurepip can't make the virtual environment.
  python3 -c 'import ensurepip, venv' 2>/dev/null || extra+=(python3 python3-venv)
  mapfile -t missing < <(missing_packages "${extra[@]}")
  [ ${#missing[@]} -gt 0 ] || return 0
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
      as_root=(sudo)
    else
      fail "Debian packages are missing and this user can't install them. Run this once, then try again:
  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
    fi
  fi
  say "installing Debian packages: ${missing[*]}"
  # An interrupted earlier installation is finished first.
  [ -z "$(dpkg --audit 2>/dev/null)" ] || "${as_root[@]}" dpkg --configure -a >&2
  "${as_root[@]}" apt-get update -q >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >&2 ||
    fail "apt-get could not install: ${missing[*]}"
}

setup_venv() {
  local python=.venv/bin/python stamp=.venv/echolo-installed wanted
  wanted=$(sha256sum <python/requirements.txt)
  if [ -x "$python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then return 0; fi
  if ! "$python" -c 'import pip' 2>/dev/null; then
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "Python 3.11 or newer is needed; python3 is $(python3 --version 2>&1)"
    say "making the Python environment .venv"
    rm -rf .venv
    python3 -m venv .venv || fail "python3 -m venv .venv did not work"
  fi
  say "installing PyTorch and the CUDA compiler into .venv (5.6 GB; a minute or two the first time)"
  # uv is faster than pip by far; where it isn't to be had, pip does the same.
  if "$python" -m pip install -q --disable-pip-version-check uv >&2; then
    .venv/bin/uv pip install --python "$python" -r python/requirements.txt >&2 || fail "installing python/requirements.txt did not work"
  else
    "$python" -m pip install -q --disable-pip-version-check -r python/requirements.txt >&2 || fail "installing python/requirements.txt did not work"
  fi
  echo "$wanted" >"$stamp"
}

# build [PRESET [TARGET]]: without a target everything, the tests and benchmarks too
build() {
  local preset=${1:-release} target=${2:-all} dir=build log
  [ "$preset" = release ] || dir=build-$preset
  log=$dir/configure.log
  mkdir -p "$dir"
  if [ ! -f "$dir/build.ninja" ]; then
    say "configuring ($preset)"
    cmake --preset "$preset" >"$log" 2>&1 || { cat "$log" >&2; fail "cmake --preset $preset did not work"; }
  fi
  if [ -t 2 ]; then
    say "building ($preset)"
    cmake --build "$dir" --target "$target" -j "$(nproc)" >&2 || fail "the build did not work"
  else
    cmake --build "$dir" --target "$target" -j "$(nproc)" 2>&1 | awk '/^\[[0-9]+\/[0-9]+\]/ { if (systime() - last >= 20) { print; fflush(); last = systime() } next } /no work to do/ { next } { print; fflush() }' >&2
    [ "${PIPESTATUS[0]}" = 0 ] || fail "the build did not work"
  fi
}
