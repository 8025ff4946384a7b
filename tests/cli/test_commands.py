"""The commands as a person meets them: what they print, where, and with which exit code. Usage: test_commands.py PROGRAM SOURCE_DIR"""

import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
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
        for command in ("inspect", "tokenize", "logits", "score"):
            self.assertIn(command, result.stdout.decode())

    def test_a_wrong_flag_is_named(self):
        self.assert_refused(run("inspect", "--frobnicate", MODEL), 2, "--frobnicate")

    def test_no_command_is_a_usage_error(self):
        self.assert_refused(run(), 2, "subcommand")

    def test_a_missing_model_is_one_line_that_names_it(self):
        for command in (["inspect", "/no/such/model"], ["score", "/no/such/model"]):
            result = run(*command)
            self.assert_refused(result, 1, "/no/such/model")
            self.assertEqual(result.stderr.count(b"\n"), 1)

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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
