#!/usr/bin/env python3
"""Plays requests made from docs/openapi.yaml, valid and broken ones, against a server for some minutes: no answer may be a 5xx, and every answer
has to be one that the description names, in its shape. Installs schemathesis in a throw-away environment; without a package index it says so and
exits with 77. Usage: schema_test.py PROGRAM [MINUTES]"""

import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(SOURCE / "tests/server"))

import pip_environment  # noqa: E402
from server_process import ServerProcess  # noqa: E402

KEY = "a key of the schema test"
# Not among them: positive_data_acceptance and negative_data_rejection. What schemathesis takes to be a valid request can be one that this
# model's template refuses, and unknown fields are accepted on purpose.
CHECKS = ("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance", "response_headers_conformance",
          "unsupported_method", "ignored_auth")


def main():
    program = sys.argv[1]
    minutes = float(sys.argv[2]) if len(sys.argv) > 2 else 10.0
    try:
        python = pip_environment.python_of(SOURCE / "tests/server/requirements-schema.txt", install=True)
    except pip_environment.NotInstalled as reason:
        print(f"skipped: {reason}")
        return 77
    schemathesis = str(pathlib.Path(python).with_name("schemathesis"))
    # A small context keeps an endless reply short.
    with ServerProcess(program, str(SOURCE / "models/espalier-nano"), "--api-key", KEY, "--context", "256") as server, \
            tempfile.TemporaryDirectory() as directory:
        environment = {**os.environ, "NO_PROXY": "127.0.0.1"}
        tested = subprocess.run([schemathesis, "--no-color", "run", str(SOURCE / "docs/openapi.yaml"), "--url", server.url,
                                 "-H", f"Authorization: Bearer {KEY}", "--checks", ",".join(CHECKS), "--phases", "examples,coverage,fuzzing",
                                 "--max-time", str(int(minutes * 60)), "--continue-on-failure", "--workers", "4", "--request-timeout", "120", "--seed", "1",
                                 "--generation-database", "none", "--suppress-health-check", "all", "--warnings", "off"],
                                cwd=directory, env=environment, timeout=minutes * 60 + 600)
        answers = {name: int(value) for name, value in server.metrics(headers={"Authorization": f"Bearer {KEY}"}).items() if "requests_total" in name}
        alive = server.process.poll() is None
    print(f"answers by metric: {answers}")
    print(f"server alive at the end: {alive}, exit code {server.exit_code}")
    return 0 if tested.returncode == 0 and alive and server.exit_code == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
