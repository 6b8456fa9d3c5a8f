# Shell helpers that the suites' `run` scripts share. Sourced, never run.

conformance_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${FAIRLEAD_CACHE:-$HOME/.cache/fairlead}
mkdir -p "$cache"

require_address() {
  if [ -z "${FAIRLEAD_ADDRESS:-}" ]; then
    echo "FAIRLEAD_ADDRESS is not set; say host:port of a running server, or use tests/conformance/run" >&2
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
  local version=v1.5.1 cli=$cache/bin/temporal go
  if [ ! -x "$cli" ]; then
    go=$("$conformance_dir/../../tools/toolchain" go) || return 1
    GOBIN=$cache/bin "$go/go" install "github.com/temporalio/cli/cmd/temporal@$version" >&2 || return 1
  fi
  echo "$cli"
}

# Prints the path of Temporal's own server, which is newer than the one inside the CLI that we pin.
temporal_server() {
  local version=v1.32.1 go
  local folder=$cache/temporal-server-$version
  if [ ! -x "$folder/server" ]; then
    go=$("$conformance_dir/../../tools/toolchain" go) || return 1
    GOBIN=$folder "$go/go" install "go.temporal.io/server/cmd/server@$version" >&2 || return 1
  fi
  echo "$folder/server"
}

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# Starts a server from a command template in a temporary folder and exports FAIRLEAD_ADDRESS.
start_server() {
  local template=$1 port http_port
  port=$(free_port)
  http_port=$(free_port)
  server_http_port=$http_port
  server_folder=$(mktemp -d)
  template=${template//\{port\}/$port}
  template=${template//\{http_port\}/$http_port}
  template=${template//\{data\}/$server_folder/data}
  bash -c "exec $template" >"$server_folder/log" 2>&1 &
  server_pid=$!
  for _ in $(seq 300); do
    if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
      export FAIRLEAD_ADDRESS=127.0.0.1:$port
      return
    fi
    kill -0 "$server_pid" 2>/dev/null || break
    sleep 0.1
  done
  echo "the server did not open port $port; its log ends:" >&2
  tail -n 20 "$server_folder/log" >&2
  stop_server
  exit 1
}

stop_server() {
  kill "$server_pid" 2>/dev/null || true
  wait "$server_pid" 2>/dev/null || true
  rm -rf "$server_folder"
}
