#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, with apt: dependencies.sh [build|test]
#   build  what it takes to build torchleak-trace and to run its built-in job
#   test   that, and what the tests, the format check and the linter need
# With everything present it only asks dpkg, which takes some milliseconds. TORCHLEAK_SKIP_DEPENDENCIES=1 skips it.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# Without these nothing is built.
required=(g++ cmake ninja-build clang libbpf-dev libelf-dev libdw-dev zlib1g-dev
  libcli11-dev libfmt-dev nlohmann-json3-dev)
# These are not in every release; what lacks them is skipped, and says so.
optional=(python3-torch python3-numpy)

bpftool_packages() {
  if grep -qs '^ID=ubuntu' /etc/os-release; then
    echo linux-tools-common linux-tools-generic
  else
    echo bpftool
  fi
}

# Prints those of its arguments that are not installed.
missing_of() {
  local package
  declare -A installed=()
  while read -r status package; do
    if [[ $status == installed ]]; then
      installed[$package]=1
    fi
  done < <(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true)
  for package in "$@"; do
    if [[ -z ${installed[$package]:-} ]]; then
      echo "$package"
    fi
  done
}

# Prints those of its arguments that apt could install.
available_of() {
  local package
  for package in "$@"; do
    if LC_ALL=C apt-cache policy "$package" 2>/dev/null | grep -q '^  Candidate: [^(]'; then
      echo "$package"
    fi
  done
}

# For a release without python3-torch: the wheel, in a virtual environment below build/.
torch_from_wheel() {
  local venv=$repo_root/build/venv
  if find_torch_python >/dev/null; then
    return
  fi
  say "Installing PyTorch into build/venv, for the built-in job and the torch tests…"
  apt_get install -y --no-install-recommends python3-venv && quietly python3 -m venv "$venv" &&
    quietly "$venv/bin/pip" install numpy && quietly "$venv/bin/pip" install torch
}

apt_get() { DEBIAN_FRONTEND=noninteractive quietly apt-get -o DPkg::Lock::Timeout=120 "$@"; }

case ${1:-build} in
  build) ;;
  test)
    required+=(libgtest-dev)
    optional+=(clang-format-14 clang-tidy-19)
    ;;
  *) die "usage: dependencies.sh [build|test]" ;;
esac
if [[ -n ${TORCHLEAK_SKIP_DEPENDENCIES:-} ]]; then
  exit 0
fi
if ! find_bpftool >/dev/null; then
  read -ra bpftool <<<"$(bpftool_packages)"
  required+=("${bpftool[@]}")
fi
if ! type -P apt-get dpkg-query >/dev/null; then
  die "this system has no apt. Install what these Debian packages hold, then set TORCHLEAK_SKIP_DEPENDENCIES=1:
  ${required[*]} ${optional[*]}"
fi

mapfile -t missing_required < <(missing_of "${required[@]}")
mapfile -t missing_optional < <(missing_of "${optional[@]}")
if ((${#missing_required[@]} + ${#missing_optional[@]} == 0)); then
  exit 0
fi

if ! is_root; then
  if ((${#missing_required[@]})); then
    die "missing packages; run: sudo apt-get install ${missing_required[*]}"
  fi
  say "note: not installed: ${missing_optional[*]} (run as root to install them)"
  exit 0
fi

# A release that lacks an optional package is asked once a run, without the network.
lists_are_empty() { ! compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null; }
if ((${#missing_required[@]})) || lists_are_empty; then
  say "Updating the package lists…"
  apt_get update || die "apt-get update failed; is the network up? Needed: ${missing_required[*]} ${missing_optional[*]}"
fi
mapfile -t wanted < <(
  ((${#missing_required[@]})) && printf '%s\n' "${missing_required[@]}"
  available_of "${missing_optional[@]}"
)
if ((${#wanted[@]})); then
  say "Installing ${wanted[*]}…"
  apt_get install -y --no-install-recommends "${wanted[@]}" || die "apt could not install: ${wanted[*]}"
fi
for package in $(missing_of "${optional[@]}"); do
  if [[ $package == python3-torch ]]; then
    torch_from_wheel || say "note: PyTorch could not be installed; the built-in job and the torch tests need it"
  elif [[ $package != python3-numpy ]]; then
    say "note: this release has no $package; what needs it is skipped"
  fi
done
