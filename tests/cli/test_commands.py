"""The commands as a person meets them: what they print, where, and with which exit code. Usage: test_commands.py PROGRAM SOURCE_DIR"""

import json
import os
import pathlib
import pty
import random
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = sys.argv[1]
SOURCE = pathlib.Path(sys.argv[2])
MODEL = str(SOURCE / "models/espalier-nano")


def run(*arguments, stdin=b"", **options):
    return subprocess.run([PROGRAM, *arguments], input=stdin, capture_output=True, timeout=120, **options)


class Usage(unittest.TestCase):
    def assert_refused(self, result, code, *words):
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, b"")
        for word in words:
            self.assertIn(word, result.stderr.decode())

    def test_help_names_every_command_and_succeeds(self):
        result = run("--help")
        self.assertEqual(result.returncode, 0)
        for command in ("run", "inspect", "replay", "tokenize", "render", "parse", "logits", "score"):
            self.assertIn(command, result.stdout.decode())

    def test_a_wrong_flag_is_named(self):
        self.assert_refused(run("inspect", "--frobnicate", MODEL), 2, "--frobnicate")

    def test_no_command_is_a_usage_error(self):
        self.assert_refused(run(), 2, "subcommand")

    def test_a_missing_model_is_one_line_that_names_it(self):
        session = str(SOURCE / "examples/agent_session.jsonl")
        for command in (["inspect", "/no/such/model"], ["score", "/no/such/model"], ["run", "/no/such/model"],
                        ["replay", "--data", session, "--model", "/no/such/model"]):
            result = run(*command)
            self.assert_refused(result, 1, "/no/such/model")
            self.assertEqual(result.stderr.count(b"\n"), 1)

    def test_a_flag_that_may_be_repeated_does_not_take_the_model(self):
        flags = ("--allowed-host", "a.example", "--allowed-host", "b.example", "--cors-origin", "https://a.example")
        result = run("serve", "--port", "0", *flags, "/no/such/model")
        self.assertEqual(result.returncode, 1)
        self.assertIn("/no/such/model", result.stderr.decode())

    def test_a_wrong_file_is_named(self):
        with tempfile.TemporaryDirectory() as directory:
            ids = pathlib.Path(directory, "ids.json")
            for text in ("{", "[]", "[1, 999999999]", "[-1]", "[1.5]", '"text"'):
                ids.write_text(text)
                self.assert_refused(run("logits", MODEL, "--ids", str(ids), "--out", directory + "/out"), 1, "ids.json")

    def test_a_full_disk_is_said_and_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as directory:
            ids = pathlib.Path(directory, "ids.json")
            ids.write_text("[1, 2, 3]")
            self.assert_refused(run("logits", MODEL, "--ids", str(ids), "--out", "/dev/full"), 1, "/dev/full", "No space left")
            self.assertEqual(os.listdir(directory), ["ids.json"])
        with open("/dev/full", "wb") as full:
            result = subprocess.run([PROGRAM, "inspect", MODEL], stdout=full, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"standard output", result.stderr)


class Results(unittest.TestCase):
    def test_inspect_gives_the_same_numbers_as_text_and_json(self):
        shown = json.loads(run("inspect", MODEL, "--json", "--context", "1000").stdout)
        self.assertEqual(shown["layers"], {"linear_attention": 6, "full_attention": 2})
        self.assertEqual(shown["stop_ids"], [8129, 8131])
        # 16 pages of 64 tokens, two layers, K and V, one head of 256, BF16.
        self.assertEqual(shown["memory"]["pages"], 16 * 64 * 2 * 2 * 256 * 2)
        self.assertIn("Qwen3_5ForCausalLM", run("inspect", MODEL).stdout.decode())

    def test_tokenize_reads_stdin_whole(self):
        self.assertEqual(json.loads(run("tokenize", MODEL).stdout), {"ids": []})
        self.assertEqual(json.loads(run("tokenize", MODEL, stdin=b"<|im_end|>").stdout), {"ids": [8131]})
        self.assertGreater(len(json.loads(run("tokenize", MODEL, "--plain", stdin=b"<|im_end|>").stdout)["ids"]), 1)

    def test_logits_agree_between_backends_and_have_the_promised_shape(self):
        with tempfile.TemporaryDirectory() as directory:
            ids = pathlib.Path(directory, "ids.json")
            ids.write_text(json.dumps({"ids": list(range(100))}))
            rows = {}
            for backend in ("cpu", "reference"):
                out = pathlib.Path(directory, backend)
                result = run("logits", MODEL, "--ids", str(ids), "--out", str(out), "--layers", "--backend", backend)
                self.assertEqual(result.returncode, 0, result.stderr)
                data = out.read_bytes()
                (length,) = struct.unpack_from("<Q", data)
                header = json.loads(data[8 : 8 + length])
                self.assertEqual(header["logits"]["shape"], [100, 8192])
                for name in ["final"] + [f"hidden.{i}" for i in range(9)]:
                    self.assertEqual(header[name]["shape"], [100, 256])
                begin, end = header["logits"]["data_offsets"]
                values = struct.unpack_from(f"<{(end - begin) // 4}f", data, 8 + length + begin)
                rows[backend] = values[99 * 8192 : 99 * 8192 + 8162]
            difference = sum(abs(a - b) for a, b in zip(rows["cpu"], rows["reference"])) / 8162
            self.assertLess(difference, 0.1)
            self.assertGreater(difference, 0.0)

    def test_score_prefers_code_to_noise(self):
        code = (SOURCE / "tools/check_layers.py").read_bytes()[:4000]
        noise = bytes(random.Random(1).choices(range(33, 123), k=4000))
        loss = lambda text: json.loads(run("score", MODEL, "--json", stdin=text).stdout)["bits_per_byte"]
        self.assertLess(loss(code), loss(noise) / 2)


class Chat(unittest.TestCase):
    """`run` in a pipe and on a terminal."""

    def test_a_prompt_is_answered_and_nothing_else_is_printed(self):
        first = run("run", MODEL, "-p", "print the numbers", "--max-tokens", "20")
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertGreater(len(first.stdout.strip()), 0)
        self.assertEqual(run("run", MODEL, "-p", "print the numbers", "--max-tokens", "20").stdout, first.stdout)

    def test_lines_of_a_pipe_are_turns_of_one_conversation(self):
        result = run("run", MODEL, "--max-tokens", "8", stdin=b"hello\n/reset\nhello\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        answers = result.stdout.split(b"\n")
        self.assertEqual(len(answers) % 2, 1)
        half = len(answers) // 2
        self.assertEqual(answers[:half], answers[half : 2 * half])

    def test_ctrl_c_ends_the_answer_and_ctrl_d_the_program(self):
        primary, secondary = pty.openpty()
        process = subprocess.Popen([PROGRAM, "run", MODEL, "--max-tokens", "30000", "--temperature", "2", "--seed", "1"],
                                   stdin=secondary, stdout=secondary, stderr=subprocess.PIPE, start_new_session=True)
        os.close(secondary)
        try:
            self.read_until(primary, b"> ")
            os.write(primary, b"tell me everything\n")
            time.sleep(0.7)
            process.send_signal(signal.SIGINT)
            self.read_until(primary, b"> ")
            self.assertIsNone(process.poll())
            os.write(primary, b"\x04")
            self.assertEqual(process.wait(timeout=20), 0)
        finally:
            process.kill()
            process.communicate()
            os.close(primary)

    def test_a_terminal_shows_how_far_the_loading_is_and_a_pipe_nothing(self):
        for command in (["run", MODEL, "-p", "hello", "--max-tokens", "1"],
                        ["replay", "--model", MODEL, "--data", Replay.SESSION, "--turns", "1", "--conversations", "1", "--max-tokens", "1"]):
            self.assertNotIn(b"loading", run(*command).stderr)
            primary, secondary = pty.openpty()
            process = subprocess.Popen([PROGRAM, *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=secondary)
            os.close(secondary)
            try:
                shown = self.read_to_the_end(primary)
                self.assertEqual(process.wait(timeout=120), 0)
            finally:
                process.kill()
                process.wait()
                os.close(primary)
            percents = [int(number) for number in re.findall(rb"loading the model: (\d+) %", shown)]
            self.assertEqual(percents[:1] + percents[-1:], [0, 100])
            self.assertEqual(percents, sorted(set(percents)))
            self.assertIn(b"100 %\r\x1b[K", shown)  # nothing of it stays

    def read_to_the_end(self, descriptor):
        seen = b""
        while True:
            try:
                seen += os.read(descriptor, 65536)
            except OSError:  # the other end is closed
                return seen

    def read_until(self, descriptor, end):
        seen = b""
        deadline = time.monotonic() + 60
        while not seen.endswith(end):
            self.assertLess(time.monotonic(), deadline, seen[-200:])
            if select.select([descriptor], [], [], 0.2)[0]:
                seen += os.read(descriptor, 65536)


class Replay(unittest.TestCase):
    SESSION = str(SOURCE / "examples/agent_session.jsonl")

    def test_two_runs_give_the_same_replies_and_all_but_the_new_text_is_hot(self):
        with tempfile.TemporaryDirectory() as directory:
            replies = []
            for name in ("one", "two"):
                path = pathlib.Path(directory, name)
                result = run("replay", "--data", self.SESSION, "--model", MODEL, "--json", "--replies", str(path), "--max-tokens", "60")
                self.assertEqual(result.returncode, 0, result.stderr)
                report = json.loads(result.stdout)
                replies.append(path.read_bytes())
            self.assertEqual(replies[0], replies[1])
            self.assertEqual((report["turns_ok"], report["turns_failed"]), (8, 0))
            ceiling = json.loads(run("replay", "--data", self.SESSION, "--model", MODEL, "--ceiling", "--json").stdout)
            self.assertEqual(report["prompt_tokens"], ceiling["prompt_tokens"])
            self.assertLessEqual(report["hot_tokens"], ceiling["perfect"])
            self.assertGreaterEqual(report["hot_tokens"], ceiling["snapshots"])

    def test_a_broken_workload_names_file_and_line(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.write('{"conversation_id": "a", "turn": 7}\n')
            file.flush()
            result = run("replay", "--data", file.name, "--model", MODEL)
            self.assertEqual(result.returncode, 1)
            self.assertIn(file.name + ":1", result.stderr.decode())

    def test_ctrl_c_ends_at_once_without_a_report(self):
        with tempfile.TemporaryDirectory() as directory:
            replies = pathlib.Path(directory, "replies")
            process = subprocess.Popen([PROGRAM, "replay", "--data", self.SESSION, "--model", MODEL, "--max-tokens", "5000", "--replies", str(replies)],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            stdout, _ = process.communicate(timeout=20)
            if process.returncode != 0:  # it may have been quicker; while the model is still being loaded the signal ends it at once
                self.assertIn(process.returncode, (1, -signal.SIGINT))
                self.assertEqual((stdout, replies.exists()), (b"", False))

    def test_kill_leaves_no_half_written_file(self):
        with tempfile.TemporaryDirectory() as directory:
            process = subprocess.Popen([PROGRAM, "replay", "--data", self.SESSION, "--model", MODEL, "--replies", directory + "/replies"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.3)
            process.kill()
            process.wait()
            self.assertIn(os.listdir(directory), ([], ["replies"]))


class Parse(unittest.TestCase):
    """What a reply says, by the form of calls that the template of the default model has."""

    TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {
        "n": {"type": "number"}, "a": {"type": "array"}, "s": {"type": "string"}}}}}]
    CALL = ("<tool_call>\n<function=f>\n<parameter=a>\n[12.0, True]\n</parameter>\n<parameter=s>\nü🙂\n</parameter>\n"
            "</function>\n</tool_call>")

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.tools = pathlib.Path(self.directory.name, "tools.json")
        self.tools.write_text(json.dumps(self.TOOLS))

    def parse(self, text, *flags):
        result = run("parse", MODEL, "--tools", str(self.tools), *flags, stdin=text.encode())
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        return result.stdout.decode()

    def test_a_reply_is_taken_apart(self):
        out = self.parse("why</think>Look.\n" + self.CALL, "--thinking")
        self.assertEqual(json.loads(out), {"content": "Look.\n", "reasoning": "why",
                                           "tool_calls": [{"name": "f", "arguments": {"a": [12.0, True], "s": "ü🙂"}}]})
        self.assertIn("[12.0,true]", out)  # as the model wrote it
        self.assertEqual(json.loads(self.parse("a</think>b")), {"content": "a</think>b", "reasoning": "", "tool_calls": []})

    def test_cuts_show_what_may_be_sent_by_then(self):
        text = "Look ü.\n" + self.CALL
        lines = [json.loads(line) for line in self.parse(text, "--cuts").splitlines()]
        self.assertEqual([line["bytes"] for line in lines], [len(text[:i].encode()) for i in range(len(text) + 1)])
        for i, line in enumerate(lines):
            self.assertEqual(line["content"], text[: min(i, 8)])
            name_is_whole = i >= text.index("=f>") + 3
            self.assertEqual([call["name"] for call in line["tool_calls"]], ["f"] if name_is_whole else [])
            if i < text.index("</parameter>") + len("</parameter>"):
                self.assertEqual([call["arguments"] for call in line["tool_calls"]], [{}] if name_is_whole else [])
        self.assertEqual(lines[-1]["tool_calls"], [{"name": "f", "arguments": {"a": [12.0, True]}}])  # the last value might go on

    def test_without_tools_everything_is_content(self):
        out = json.loads(run("parse", MODEL, stdin=self.CALL.encode()).stdout)
        self.assertEqual(out, {"content": self.CALL, "reasoning": "", "tool_calls": []})

    def test_a_wrong_tools_file_is_named(self):
        for text in ("{", "{}", "5"):
            self.tools.write_text(text)
            result = run("parse", MODEL, "--tools", str(self.tools))
            self.assertEqual((result.returncode, result.stdout, result.stderr.count(b"\n")), (1, b"", 1))
            self.assertIn("tools.json", result.stderr.decode())


class Templates(unittest.TestCase):
    def test_render_gives_text_and_ids_and_user_text_is_never_a_control_token(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"messages": [{"role": "user", "content": "a<|im_end|>b"}]}, file)
            file.flush()
            out = json.loads(run("render", MODEL, file.name).stdout)
        self.assertIn("a<|im_end|>b", out["text"])
        self.assertEqual(out["ids"].count(8131), 1)  # the template's own <|im_end|> alone

    def test_a_template_that_loops_ends_in_one_line(self):
        with tempfile.TemporaryDirectory() as directory:
            for name in os.listdir(MODEL):
                if name != "chat_template.jinja":
                    os.symlink(os.path.join(MODEL, name), os.path.join(directory, name))
            pathlib.Path(directory, "chat_template.jinja").write_text(
                "{% for a in range(100000) %}{% for b in range(100000) %}{% set c = a * b %}{% endfor %}{% endfor %}")
            result = run("run", directory, "-p", "hello")
        self.assertEqual(result.returncode, 1)
        self.assertIn("chat_template.jinja:1: ", result.stderr.decode())
        self.assertLessEqual(result.stderr.count(b"\n"), 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
