#!/usr/bin/env bash
# Makes a Gradescope container ready to grade. Run once as root, when the image is built; running it
# again changes nothing. Made for Ubuntu 22.04, whose python3 (3.10) is left alone: Gradescope's own
# harness uses it.
#
#   BYTEWISE_PREFIX   where the packages go (default /opt/bytewise; a Python of their own, if one is
#                     needed, goes beside it). Not below /root: student code runs as another user,
#                     who cannot enter there.
#   BYTEWISE_USER     that user (default student)
#   BYTEWISE_PYTHON   the Python to build on (default: one that is there, else one from apt)
#   BYTEWISE_SYSTEM   "keep": install no system packages
#   TORCH_INDEX_URL   an index with CPU builds of torch (default: the one this zip was built with;
#                     if there is none, or it fails, pip's own index)
set -euo pipefail
umask 022

source=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=/dev/null
. "$source/settings.sh"
prefix=${BYTEWISE_PREFIX:-/opt/bytewise}
user=${BYTEWISE_USER:-student}
index=${TORCH_INDEX_URL:-$BUILT_WITH_TORCH_INDEX_URL}
python=$prefix/bin/python
root=false
[ "$(id -u)" -eq 0 ] && root=true

say() { echo "setup: $*"; }
fail() {
  echo "setup FAILED: $*" >&2
  exit 1
}
trap 'echo "setup FAILED in line $LINENO of setup.sh" >&2' ERR

# --- A Python of our own -----------------------------------------------------------------------

# Final releases only: the python3.11 in Ubuntu 22.04's archive is 3.11.0rc1, on which torch crashes.
# With "open" as second argument, its library must not lie where other users cannot enter.
usable() {
  "$1" -I - "${2:-}" 2>/dev/null <<'PYTHON'
import os, sys, stat
import ensurepip, venv
fine = (3, 11) <= sys.version_info[:2] <= (3, 14) and sys.version_info.releaselevel == "final"
path = os.path.realpath(sys.base_prefix)
while sys.argv[1] == "open" and path != "/":
    fine = fine and bool(os.stat(path).st_mode & stat.S_IXOTH)
    path = os.path.dirname(path)
sys.exit(not fine)
PYTHON
}

# The first that will do; 3.12 and 3.11 are what the project is tested with most.
find_python() {
  local name candidate
  for name in python3.12 python3.11 python3.13 python3.14 python3; do
    for candidate in "$(command -v "$name" || true)" "$prefix"-python/*/bin/"$name"; do
      if [ -x "$candidate" ] && usable "$candidate" "${1:-}"; then
        echo "$candidate"
        return
      fi
    done
  done
  return 1
}

apt_install() {
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}

# From the distribution; else from the deadsnakes archive; else a stand-alone build, by uv.
install_python() {
  say "no Python 3.11 or newer here; installing one"
  apt-get update -qq || say "apt-get update failed; trying with the lists that are here"
  apt_install python3.12 python3.12-venv && find_python open >/dev/null && return
  if apt_install software-properties-common && add-apt-repository -y ppa:deadsnakes/ppa; then
    apt-get update -qq || true
    apt_install python3.12 python3.12-venv && find_python open >/dev/null && return
  fi
  say "apt has none; taking a stand-alone build"
  apt_install python3-venv || return
  python3 -m venv --clear "$prefix-uv" &&
    "$prefix-uv/bin/python" -m pip install -q --no-cache-dir uv &&
    UV_PYTHON_INSTALL_DIR="$prefix-python" "$prefix-uv/bin/uv" python install --no-bin 3.12 &&
    rm -rf "$prefix-uv"
}

if [ -n "${BYTEWISE_PYTHON:-}" ]; then
  base=$BYTEWISE_PYTHON
  usable "$base" || fail "BYTEWISE_PYTHON=$base is no final release of Python 3.11 to 3.14 with venv"
elif "$root"; then
  base=$(find_python open) || {
    if [ "${BYTEWISE_SYSTEM:-}" = keep ]; then
      base=$(find_python) || fail "no Python 3.11 or newer here; name one with BYTEWISE_PYTHON"
      say "WARNING: other users cannot enter where $base lies"
    else
      install_python || true
      base=$(find_python open) || fail "no Python 3.11 or newer could be installed, neither by apt \
nor by uv (see above). Install one yourself and name it with BYTEWISE_PYTHON"
    fi
  }
else
  base=$(find_python) || fail "no Python 3.11 or newer here; name one with BYTEWISE_PYTHON"
fi
say "Python: $base ($("$base" -V))"

if ! "$python" -I -c 'import pip' 2>/dev/null; then
  "$base" -m venv --clear "$prefix" || fail "no virtual environment could be made in $prefix"
fi

# --- Packages ----------------------------------------------------------------------------------

pip_install() {
  "$python" -I -m pip install -q --no-input --no-cache-dir --disable-pip-version-check "$@"
}

# Without its dependencies, so that nothing else comes from that index.
if [ -n "$index" ] && pip_install --no-deps --index-url "$index" "$TORCH"; then
  say "$TORCH from $index"
else
  [ -n "$index" ] && say "WARNING: $TORCH is not to be had from $index; trying pip's own index"
  pip_install --no-deps "$TORCH" || fail "$TORCH could not be installed (see pip's words above)"
  say "$TORCH from pip's own index"
fi
# In place, because the package finds assignments and tests beside itself.
pip_install -e "$source" || fail "the grader's packages could not be installed (see above)"
"$python" -I -m pip check || fail "the installed packages do not fit together"

# --- Ready for the first submission ------------------------------------------------------------

"$python" -I -m compileall -q "$source" || fail "a file in $source is not Python that can be compiled"
# What a grading process does first: imports torch, and compiles a kernel with Triton.
"$python" -I -c 'from grader.judge.preload import preload; preload()' ||
  fail "torch, Triton or the simulator does not work here (see above)"
"$python" -I -m grader grade --help >/dev/null || fail "the grader's command line does not start"

if "$root"; then
  id -u "$user" >/dev/null 2>&1 ||
    useradd --system --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin "$user" ||
    fail "the user $user could not be created"
  # Hidden tests are here; Python and its packages are not.
  chmod 700 "$source"
  if setpriv --reuid "$(id -u "$user")" --regid "$(id -g "$user")" --clear-groups \
    "$python" -I -c 'import torch'; then
    id -u "$user" >"$prefix/student.uid"
    say "student code will run as $user"
  elif [ "${BYTEWISE_SYSTEM:-}" = keep ]; then
    rm -f "$prefix/student.uid"
    say "WARNING: $user cannot run $python; student code will be confined without a user of its own"
  else
    fail "$user cannot run $python; put BYTEWISE_PREFIX where every user can enter"
  fi
else
  say "not root: student code will run as $(id -un), as far as it can be confined"
fi
say "ready"
