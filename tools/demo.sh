#!/usr/bin/env bash
# A short agent session over HTTP, with streamed text: a server is started, plays the session, and is stopped. Needs the release build.
#   tools/demo.sh [MODEL [SESSION]]
set -euo pipefail
cd "$(dirname "$0")/.."
model=${1:-models/espalier-nano}
session=${2:-examples/agent_session.jsonl}
echo "espalier serve $model"
tools/with_server.sh "$model" build/release/espalier replay --data "$session" --url '{url}' --show-text
echo "the server has stopped"
