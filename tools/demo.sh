#!/usr/bin/env bash
# A short agent session over HTTP: starts the server on a free port, plays the session against it with streamed text, and stops the server,
# which has to end in good order. Needs the release build.
#   tools/demo.sh [MODEL [SESSION]]
set -euo pipefail
cd "$(dirname "$0")/.."
model=${1:-models/espalier-nano}
session=${2:-examples/agent_session.jsonl}
espalier=build/release/espalier
[ -x "$espalier" ] || { echo "demo: no $espalier: run make first" >&2; exit 1; }

log=$(mktemp)
"$espalier" serve "$model" --port 0 2>"$log" &
server=$!
cleanup() {
  kill -KILL "$server" 2>/dev/null || true
  rm -f "$log"
}
trap cleanup EXIT

fail() {
  echo "demo: $1" >&2
  cat "$log" >&2
  exit 1
}

# The status of a GET, or nothing while nobody answers.
status_of() {
  local line
  { exec 3<>"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null || return 0
  printf 'GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n' "$1" >&3
  read -r _ line <&3 || true
  exec 3>&-
  echo "${line%% *}"
}

# A big model takes minutes to load.
port=
for (( ; ; )); do
  kill -0 "$server" 2>/dev/null || fail "the server ended while it was starting"
  port=$(sed -n 's|.*listening on http://127\.0\.0\.1:\([0-9]*\).*|\1|p' "$log")
  if [ -n "$port" ] && [ "$(status_of /health)" = 200 ]; then break; fi
  sleep 0.1
done

echo "espalier serve $model listens on port $port"
"$espalier" replay --data "$session" --url "http://127.0.0.1:$port" --show-text || fail "the session was not played to its end"

kill -TERM "$server"
result=0
wait "$server" || result=$?
[ "$result" = 0 ] || fail "the server ended with exit code $result"
echo
echo "the server has stopped"
