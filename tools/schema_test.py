#!/usr/bin/env python3
"""Plays requests made from docs/openapi.yaml, valid and broken ones, against a server for some minutes: no answer may be a 5xx, and every answer
has to be one that the description names, in its shape. Installs schemathesis in a throw-away environment; without a package index it says so and
exits with 77. Usage: schema_test.py PROGRAM [MINUTES]"""

import collections
import json
import os
import pathlib
import re
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
        subprocess.run([schemathesis, "--no-color", "run", str(SOURCE / "docs/openapi.yaml"), "--url", server.url,
                        "-H", f"Authorization: Bearer {KEY}", "--checks", ",".join(CHECKS), "--phases", "examples,coverage,fuzzing",
                        "--max-time", str(int(minutes * 60)), "--continue-on-failure", "--workers", "4", "--request-timeout", "120",
                        "--seed", "1", "--generation-database", "none", "--suppress-health-check", "all", "--warnings", "off",
                        "--report", "json", "--report-json-path", "report.json"],
                       cwd=directory, env={**os.environ, "NO_PROXY": "127.0.0.1"}, timeout=minutes * 60 + 600)
        report = json.loads(pathlib.Path(directory, "report.json").read_text())
        answers = collections.Counter()
        for name, value in server.metrics(headers={"Authorization": f"Bearer {KEY}"}).items():
            if match := re.fullmatch(r'espalier_requests_total\{route="(.*)",status="(\d+)"\}', name):
                answers[match[1], int(match[2])] += int(value)
        alive = server.process.poll() is None

    by_status = collections.Counter()
    for (_, status), count in answers.items():
        by_status[status] += count
    faults = [f"server: {count} answers {status} on {route}" for (route, status), count in answers.items()
              if status >= 500 and route != "/health"]  # /health says 503 while the model loads
    faults += ["schemathesis: failures, see above"] * bool(report["failures"])
    # A request without an answer is the server's fault; where schemathesis stumbles over its own generators it is not, and it goes on.
    faults += [f"schemathesis: {error['title']}, see above" for error in report["errors"] if error["title"] != "Runtime Error"]
    faults += ["schemathesis: did not run to its end"] * (not report["complete"])
    faults += ["server: gone, or a wrong exit code"] * (not alive or server.exit_code != 0)
    faults += [f"{route}: never answered 200" for route in ("/v1/chat/completions", "/v1/completions", "/tokenize", "/detokenize", "/apply-template")
               if answers[route, 200] == 0]
    print(f"{report['test_cases']['generated']} test cases, answers by status {dict(sorted(by_status.items()))}")
    print("\n".join(faults) or "no 5xx, every answer as described")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
