"""make_random_checkpoint.py: shapes against published numbers, values against their intended statistics."""
import contextlib
import gzip
import io
import json
import math
import struct
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import make_random_checkpoint as tool  # noqa: E402


def read_safetensors(path):
    """{name: (shape, [values])} of a BF16 file, by the format's own description."""
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__")
    tensors = {}
    end = 0
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        raw = data[8 + length + begin:8 + length + end]
        # Two zero bytes below a BF16 make it the float of the same value.
        values = struct.unpack(f"<{len(raw) // 2}f", b"".join(b"\0\0" + raw[i:i + 2] for i in range(0, len(raw), 2)))
        tensors[name] = (entry["shape"], values)
    assert len(data) == 8 + length + end
    return tensors


def shapes_of(preset, *options):
    args = tool.parse_arguments(["unused", "--preset", preset, *options])
    return dict(tool.tensor_shapes(tool.make_config(args)))


class Shapes(unittest.TestCase):
    def test_the_27b_has_the_published_tensors(self):
        shapes = shapes_of("27b")
        mtp = {name: shape for name, shape in shapes.items() if name.startswith("mtp.")}
        self.assertEqual(len(shapes) - len(mtp), 851)
        self.assertEqual(len(mtp), 15)
        parameters = sum(math.prod(shape) for name, shape in shapes.items() if name not in mtp)
        self.assertAlmostEqual(parameters / 1e9, 26.90, places=2)
        self.assertAlmostEqual(sum(map(math.prod, mtp.values())) / 1e6, 424.7, places=1)
        self.assertEqual(shapes["model.layers.3.self_attn.q_proj.weight"], [12288, 5120])
        self.assertEqual(shapes["model.layers.0.linear_attn.in_proj_qkv.weight"], [10240, 5120])

    def test_options_override_the_preset(self):
        shapes = shapes_of("0.8b", "--layers", "5", "--hidden", "64", "--intermediate", "96", "--vocab", "1000", "--no-mtp")
        self.assertEqual(shapes["model.embed_tokens.weight"], [1000, 64])
        self.assertEqual(shapes["model.layers.4.mlp.up_proj.weight"], [96, 64])
        self.assertIn("model.layers.3.self_attn.q_proj.weight", shapes)
        self.assertNotIn("model.layers.5.mlp.up_proj.weight", shapes)
        self.assertFalse(any(name.startswith(("mtp.", "lm_head.")) for name in shapes))


class Checkpoints(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def make(self, name, *options):
        out = self.root / name
        self.assertEqual(tool.main([str(out), *options]), 0)
        return out

    def failure(self, *arguments):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            self.assertNotEqual(tool.main([str(argument) for argument in arguments]), 0)
        self.assertEqual(errors.getvalue().count("\n"), 1)
        return errors.getvalue()

    def test_values_have_their_statistics(self):
        out = self.make("m", "--vocab", "2000")
        tensors = read_safetensors(out / "model.safetensors")
        layers = json.loads((out / "config.json").read_text())["num_hidden_layers"]
        for name, (shape, values) in tensors.items():
            with self.subTest(name):
                self.assertEqual(len(values), math.prod(shape))
                self.assertTrue(all(map(math.isfinite, values)))
                if len(shape) == 1:
                    low, high = tool.small_range(name)
                    self.assertLessEqual(max(values), high + 1e-2)
                    self.assertGreaterEqual(min(values), low - 1e-2)
                    continue
                deviation = math.sqrt(sum(value * value for value in values) / len(values))
                wanted = tool.standard_deviation(name, shape, layers)
                self.assertAlmostEqual(deviation / wanted, 1, delta=0.1)
                self.assertLess(abs(sum(values) / len(values)), 5 * wanted / math.sqrt(len(values)))

    def test_rows_of_the_embedding_differ(self):
        out = self.make("m", "--vocab", "12000", "--layers", "1", "--no-mtp")  # three times the pool of noise
        (rows, width), values = read_safetensors(out / "model.safetensors")["model.embed_tokens.weight"]
        self.assertEqual(len({values[i * width:(i + 1) * width] for i in range(rows)}), rows)

    def test_the_seed_decides_the_bytes(self):
        first, same, other = (self.make(name, "--seed", seed) for name, seed in (("a", "5"), ("b", "5"), ("c", "6")))
        weights = [(out / "model.safetensors").read_bytes() for out in (first, same, other)]
        self.assertEqual(weights[0], weights[1])
        self.assertNotEqual(weights[0], weights[2])

    def test_shards_and_their_index(self):
        out = self.make("m", "--shard-bytes", "1000000")
        index = json.loads((out / "model.safetensors.index.json").read_text())
        files = sorted(path.name for path in out.glob("*.safetensors"))
        self.assertGreater(len(files), 2)
        self.assertEqual(sorted(set(index["weight_map"].values())), files)
        total = 0
        for name in files:
            self.assertLess((out / name).stat().st_size, 1_100_000)
            tensors = read_safetensors(out / name)
            self.assertEqual(sorted(tensors), sorted(tensor for tensor, file in index["weight_map"].items() if file == name))
            total += sum(2 * len(values) for _, values in tensors.values())
        self.assertEqual(total, index["metadata"]["total_size"])

    def tokenizer(self, **added):
        folder = self.root / "tokenizer"
        folder.mkdir()
        document = {"added_tokens": [{"content": content, "id": token} for content, token in added.items()], "model": {"vocab": {"a": 0}}}
        (folder / "tokenizer.json.gz").write_bytes(gzip.compress(json.dumps(document).encode()))
        (folder / "chat_template.jinja").write_text("{{ messages }}")
        return folder, document

    def test_tokenizer_files_and_stop_ids(self):
        folder, document = self.tokenizer(**{"<|endoftext|>": 7, "<|im_end|>": 9})
        out = self.make("m", "--tokenizer", str(folder))
        self.assertEqual(json.loads((out / "tokenizer.json").read_text()), document)
        self.assertEqual((out / "chat_template.jinja").read_text(), "{{ messages }}")
        self.assertEqual(json.loads((out / "generation_config.json").read_text())["eos_token_id"], [9, 7])
        self.assertEqual(json.loads((out / "config.json").read_text())["eos_token_id"], 7)

    def test_another_template(self):
        folder, _ = self.tokenizer()
        template = self.root / "other.jinja"
        template.write_text("other")
        out = self.make("m", "--tokenizer", str(folder), "--template", str(template))
        self.assertEqual((out / "chat_template.jinja").read_text(), "other")

    def test_a_vocabulary_too_small_for_the_tokenizer(self):
        folder, _ = self.tokenizer(big=600)
        self.assertIn("needs 601 vocabulary rows, the model has 512", self.failure(self.root / "m", "--tokenizer", folder))
        self.assertFalse((self.root / "m" / "config.json").exists())

    def test_directories_that_cannot_serve(self):
        self.assertIn("does not exist", self.failure(self.root / "m", "--tokenizer", self.root / "nowhere"))
        (self.root / "full").mkdir()
        (self.root / "full" / "file").write_text("")
        self.assertIn("not an empty directory", self.failure(self.root / "full"))
        (self.root / "bare").mkdir()
        self.assertIn("neither tokenizer.json", self.failure(self.root / "m", "--tokenizer", self.root / "bare"))


if __name__ == "__main__":
    unittest.main()
