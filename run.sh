#!/usr/bin/env bash
# Installs what is missing, builds, and runs the main job: a torch.distributed program becomes a verified fused kernel.
# With arguments, runs those as `echolo ARGUMENTS` instead.
set -euo pipefail
source "$(dirname "$0")/scripts/setup.sh"
setup_packages
setup_venv
build release echolo
if [ $# -gt 0 ]; then exec build/echolo "$@"; fi
exec build/echolo optimize ag_gemm --world 4 --proposer search
