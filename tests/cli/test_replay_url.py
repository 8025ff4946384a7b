"""espalier replay --url as a person meets it, against a server made for the test. Usage: test_replay_url.py PROGRAM SOURCE_DIR"""

import http.server
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

PROGRAM = sys.argv[1]
SOURCE = pathlib.Path(sys.argv[2])
MODEL = str(SOURCE / "models/espalier-nano")


def run(*arguments, **options):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, timeout=120, **options)


class Answerer(http.server.BaseHTTPRequestHandler):
    """Answers every turn with one call; what it was asked is in `server.asked`."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append((self.path, dict(self.headers), json.loads(body)))
        if self.server.key and self.headers["Authorization"] != "Bearer " + self.server.key:
            return self.answer(401, "application/json", b'{"error":{"message":"no such key"}}')
        if self.server.silent:
            return time.sleep(30)
        call = {"index": 0, "id": "call_0", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
        counts = {"prompt_tokens": 100, "cached_tokens": 90, "completion_tokens": 9}
        events = [{"choices": [{"delta": {"role": "assistant", "content": "I look."}}]}, {"choices": [{"delta": {"tool_calls": [call]}}]},
                  {"choices": [{"delta": {}, "finish_reason": "tool_calls"}], "espalier": counts}]
        self.answer(200, "text/event-stream", "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode())

    def answer(self, status, content_type, body):
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class ReplayAgainstAServer(unittest.TestCase):
    SESSION = str(SOURCE / "examples/agent_session.jsonl")

    def setUp(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answerer)
        self.server.daemon_threads = True
        self.server.asked, self.server.key, self.server.silent = [], None, False
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.command = ["replay", "--data", self.SESSION, "--url", f"http://127.0.0.1:{self.server.server_port}"]

    def test_every_turn_is_asked_and_the_report_is_that_of_a_replay(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory, "replies")
            result = run(*self.command, "--json", "--replies", str(path))
            self.assertEqual((result.returncode, result.stderr), (0, b""))
            replies = [json.loads(line) for line in path.read_text().splitlines()]
        report = json.loads(result.stdout)
        self.assertEqual((report["turns_ok"], report["turns_failed"], report["prompt_tokens"], report["hot_tokens"], report["output_tokens"]),
                         (8, 0, 800, 720, 72))
        self.assertEqual(report["finish_reasons"], {"tool_calls": 8})
        self.assertEqual([len(body["messages"]) for _, _, body in self.server.asked], [2, 4, 6, 8, 10, 12, 14, 16])
        for path, headers, body in self.server.asked:
            self.assertEqual((path, headers["X-Session-ID"], headers["Accept"]), ("/v1/chat/completions", "ledger__cents", "text/event-stream"))
            self.assertNotIn("Authorization", headers)
        self.assertEqual(len(replies), 8)
        self.assertEqual(replies[0], {"conversation": "ledger__cents", "turn": 1, "content": "I look.",
                                      "tool_calls": [{"name": "bash", "arguments": '{"command": "ls"}'}], "finish_reason": "tool_calls"})

    def test_text_is_shown_as_it_comes_with_a_line_for_each_turn(self):
        shown = run(*self.command, "--turns", "2", "--show-text").stdout.decode()
        self.assertEqual(shown.count('I look.\n[bash] {"command": "ls"}\n-- turn '), 2)
        self.assertIn("-- turn 2: 100 prompt tokens, 90 hot;", shown)
        self.assertIn("token counts    prompts by the server, answers by the server", shown)

    def test_with_a_model_answers_are_counted_by_its_tokenizer(self):
        shown = run(*self.command, "--model", MODEL).stdout.decode()
        self.assertIn("answers by the harness's rules", shown)
        self.assertNotIn("output tokens   72", shown)

    def test_the_key_comes_from_the_flag_or_the_environment(self):
        self.server.key = "secret"
        refused = run(*self.command)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("status 401: no such key", refused.stderr.decode())
        self.assertEqual(run(*self.command, "--api-key", "secret").returncode, 0)
        self.assertEqual(run(*self.command, env={**os.environ, "ESPALIER_API_KEY": "secret"}).returncode, 0)
        self.assertEqual(run(*self.command, "--api-key", "secret", env={**os.environ, "ESPALIER_API_KEY": "other"}).returncode, 0)

    def test_flags_of_a_model_in_this_process_do_not_go_with_a_url(self):
        for flags in (["--threads", "2"], ["--backend", "cpu"], ["--context", "100"], ["--cache-bytes", "1G"], ["--max-sequences", "2"], ["--ceiling"]):
            result = run(*self.command, *flags)
            self.assertEqual((result.returncode, result.stdout), (2, b""), flags)
            self.assertIn(flags[0], result.stderr.decode())
        for flags in (["--api-key", "k"], ["--ca-file", "f"]):
            self.assertEqual(run("replay", "--data", self.SESSION, *flags).returncode, 2)
        self.assertEqual(self.server.asked, [])

    def test_nobody_there_is_one_error_that_names_the_url(self):
        self.server.shutdown()
        self.server.server_close()
        result = run(*self.command)
        self.assertEqual(result.returncode, 1)
        self.assertIn(self.command[-1], result.stderr.decode())
        self.assertEqual(result.stderr.count(b"\n"), 1)

    def test_ctrl_c_ends_at_once_while_the_server_is_silent(self):
        self.server.silent = True
        process = subprocess.Popen([PROGRAM, *self.command], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 30
        while not self.server.asked and time.monotonic() < deadline:
            time.sleep(0.02)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=20)
        self.assertEqual((process.returncode, stdout), (1, b""))
        self.assertLess(time.monotonic() - start, 5)
        self.assertIn(b"interrupted", stderr)


class OurServer(unittest.TestCase):
    """The server of this program answers what the engine in this process does."""

    SESSION = str(SOURCE / "examples/agent_session.jsonl")

    def setUp(self):
        self.server = subprocess.Popen([PROGRAM, "serve", MODEL, "--port", "0"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(self.stop)
        self.url, seen = None, []
        for line in self.server.stderr:
            seen.append(line.decode())
            if found := re.search(r"listening on (http://\S+)", seen[-1]):
                self.url = found.group(1)
            if "ready: " in seen[-1]:
                break
        self.assertIsNotNone(self.url, seen)
        self.log = threading.Thread(target=self.server.stderr.read, daemon=True)
        self.log.start()  # it must not fill the pipe

    def stop(self):
        self.server.kill()
        self.server.wait()
        self.log.join()
        self.server.stderr.close()

    def replay(self, *flags):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory, "replies")
            result = run("replay", "--data", self.SESSION, "--json", "--replies", str(path), *flags)
            self.assertEqual(result.returncode, 0, result.stderr)
            return json.loads(result.stdout), path.read_bytes()

    def test_replies_and_counts_are_those_of_a_replay_in_process(self):
        for limit in ("1024", "12"):  # whole calls, and calls that are cut
            here, replies_here = self.replay("--model", MODEL, "--max-tokens", limit)
            there, replies_there = self.replay("--url", self.url, "--max-tokens", limit)
            self.assertEqual(replies_there, replies_here)
            for key in ("turns_ok", "turns_failed", "prompt_tokens", "output_tokens", "iou", "finish_reasons"):
                self.assertEqual(there[key], here[key], key)
            self.assertGreaterEqual(there["hot_tokens"], here["hot_tokens"])  # the server has answered before
        self.server.send_signal(signal.SIGTERM)
        self.assertEqual(self.server.wait(timeout=30), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
