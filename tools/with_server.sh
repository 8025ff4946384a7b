#!/usr/bin/env bash
# Runs a command beside a server: starts `espalier serve MODEL` on a free port, waits until it is ready, runs COMMAND with the server's
# address in place of {url}, and stops the server with SIGTERM. Fails, and shows the server's log, if the command fails or if the server
# does not end in good order.
#   tools/with_server.sh MODEL COMMAND [ARGUMENT...]
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: with_server.sh MODEL COMMAND [ARGUMENT...]" >&2; exit 2; }
model=$1
shift
espalier="$(dirname "$0")/../build/release/espalier"
[ -x "$espalier" ] || { echo "with_server: no $espalier: run make first" >&2; exit 1; }

log=$(mktemp)
"$espalier" serve "$model" --port 0 2>"$log" &
server=$!
cleanup() {
  kill -KILL "$server" 2>/dev/null || true
  rm -f "$log"
}
trap cleanup EXIT

fail() {
  echo "with_server: $1" >&2
  cat "$log" >&2
  exit 1
}

# The status of a GET from the server, or nothing while nobody answers.
status_of() {
  local status
  { exec 3<>"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null || return 0
  printf 'GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n' "$1" >&3
  read -r _ status _ <&3 || true
  exec 3>&-
  echo "$status"
}

port=
while true; do  # a big model takes minutes to load
  kill -0 "$server" 2>/dev/null || fail "the server ended while it was starting"
  port=$(sed -n 's|.*listening on http://127\.0\.0\.1:\([0-9]*\).*|\1|p' "$log")
  if [ -n "$port" ] && [ "$(status_of /health)" = 200 ]; then break; fi
  sleep 0.1
done

"${@//\{url\}/http://127.0.0.1:$port}" || fail "the command failed: $1"

kill -TERM "$server"
result=0
wait "$server" || result=$?
[ "$result" = 0 ] || fail "the server ended with exit code $result"
