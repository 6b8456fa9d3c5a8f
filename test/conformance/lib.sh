# Shell helpers that the suites' `run` scripts share. Sourced, never run.

conformance_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${FAIRLEAD_CACHE:-$HOME/.cache/fairlead}
mkdir -p "$cache"

require_address() {
  if [ -z "${FAIRLEAD_ADDRESS:-}" ]; then
    echo "FAIRLEAD_ADDRESS is not set; say host:port of a running server, or use test/conformance/run" >&2
    exit 2
  fi
}

# A suite whose toolchain is missing is skipped on a developer's machine and fails in CI.
skip() {
  local language=$1 reason=$2
  if [ "${CI:-}" = true ]; then
    echo "not ok - $language: toolchain: $reason"
    exit 1
  fi
  echo "skip - $language: $reason"
  exit 0
}

# The functions below are called as `x=$(f) || …`, where `set -e` sleeps: each step checks itself.

# Prints the interpreter of a virtual environment that holds exactly our pinned requirements.
python_venv() {
  local requirements=$conformance_dir/python/requirements.txt venv=$cache/python-venv
  if ! cmp -s "$requirements" "$venv/installed.txt"; then
    python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' >&2 || return 1
    rm -rf "$venv"
    python3 -m venv "$venv" >&2 || return 1
    "$venv/bin/pip" install --quiet --requirement "$requirements" >&2 || return 1
    cp "$requirements" "$venv/installed.txt"
  fi
  echo "$venv/bin/python"
}

# Prints the path of the pinned temporal CLI, building it when it is missing.
temporal_cli() {
  local version=v1.5.1 cli=$cache/bin/temporal
  if [ ! -x "$cli" ]; then
    command -v go >&2 || return 1
    GOBIN=$cache/bin go install "github.com/temporalio/cli/cmd/temporal@$version" >&2 || return 1
  fi
  echo "$cli"
}
