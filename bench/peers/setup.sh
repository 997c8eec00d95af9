#!/usr/bin/env bash
# Installs what only the benchmark needs: PoCL from Debian, pyopencl and Numba into a Python environment of its own.
# usage: setup.sh FOLDER
set -euo pipefail
venv=$1
if [ "$(dpkg-query -W -f='${db:Status-Status}' pocl-opencl-icd 2>/dev/null)" != installed ]; then
  if [ "$(id -u)" = 0 ]; then
    apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends pocl-opencl-icd ocl-icd-libopencl1
  else
    echo "PoCL is not installed; as root: apt-get install pocl-opencl-icd ocl-icd-libopencl1" >&2
  fi
fi
if [ ! -f "$venv/installed" ]; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check numpy numba pyopencl
  touch "$venv/installed"
fi
