"""make_random_gguf.py: the file read back by the format's own description, its values against the checkpoint's."""
import contextlib
import io
import json
import math
import struct
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import make_random_checkpoint  # noqa: E402
import make_random_gguf as tool  # noqa: E402
from test_make_random_checkpoint import read_safetensors  # noqa: E402

SMALL = ["--preset", "0.8b", "--layers", "4", "--hidden", "64", "--intermediate", "96", "--vocab", "600"]
SCALARS = {4: "<I", 5: "<i", 6: "<f", 7: "<?"}


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, layout):
        values = struct.unpack_from(layout, self.data, self.at)
        self.at += struct.calcsize(layout)
        return values if len(values) > 1 else values[0]

    def string(self):
        length = self.take("<Q")
        self.at += length
        return self.data[self.at - length:self.at].decode()

    def value(self, kind):
        if kind == 8:
            return self.string()
        if kind == 9:
            item, count = self.take("<IQ")
            return [self.value(item) for _ in range(count)]
        return self.take(SCALARS[kind])


def read_gguf(path):
    """({key: value}, {name: (dimensions, type, bytes)})"""
    reader = Reader(path.read_bytes())
    assert reader.data[:4] == b"GGUF"
    reader.at = 4
    version, num_tensors, num_keys = reader.take("<IQQ")
    assert version == 3
    keys = {}
    for _ in range(num_keys):
        key = reader.string()
        keys[key] = reader.value(reader.take("<I"))
    infos = []
    for _ in range(num_tensors):
        name, count = reader.string(), reader.take("<I")
        shape = [reader.take("<Q") for _ in range(count)]
        kind, offset = reader.take("<IQ")
        infos.append((name, shape, kind, offset))
    start = (reader.at + 31) // 32 * 32
    tensors = {}
    end = start
    for name, shape, kind, offset in infos:
        assert offset % 32 == 0 and start + offset >= end
        size = math.prod(shape) * {0: 4, 30: 2}[kind]
        end = start + offset + size
        tensors[name] = (shape, kind, reader.data[start + offset:end])
    assert (end + 31) // 32 * 32 == len(reader.data)
    return keys, tensors


class Gguf(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.root = Path(folder.name)
        assert make_random_checkpoint.main([str(cls.root / "m"), *SMALL]) == 0
        assert tool.main([str(cls.root / "m"), str(cls.root / "m.gguf")]) == 0
        cls.keys, cls.tensors = read_gguf(cls.root / "m.gguf")
        cls.source = read_safetensors(cls.root / "m" / "model.safetensors")

    def f32(self, name):
        shape, kind, raw = self.tensors[name]
        self.assertEqual(kind, 0)
        return struct.unpack(f"<{math.prod(shape)}f", raw)

    def test_every_tensor_but_the_draft_layers(self):
        trunk = [name for name in self.source if not name.startswith("mtp.")]
        self.assertLess(len(trunk), len(self.source))
        self.assertEqual(len(self.tensors), len(trunk))

    def test_matrices_keep_their_values_and_list_columns_first(self):
        for ours, theirs in (("model.embed_tokens.weight", "token_embd.weight"), ("model.layers.3.self_attn.q_proj.weight", "blk.3.attn_q.weight"),
                             ("model.layers.0.linear_attn.in_proj_qkv.weight", "blk.0.attn_qkv.weight"),
                             ("model.layers.2.linear_attn.in_proj_a.weight", "blk.2.ssm_alpha.weight"),
                             ("model.layers.1.mlp.down_proj.weight", "blk.1.ffn_down.weight")):
            with self.subTest(theirs):
                (rows, columns), values = self.source[ours]
                shape, kind, raw = self.tensors[theirs]
                self.assertEqual((shape, kind), ([columns, rows], 30))
                self.assertEqual(raw, b"".join(struct.pack("<f", value)[2:] for value in values))

    def test_norms_hold_their_one(self):
        for ours, theirs in (("model.norm.weight", "output_norm.weight"), ("model.layers.1.post_attention_layernorm.weight", "blk.1.post_attention_norm.weight"),
                             ("model.layers.3.self_attn.k_norm.weight", "blk.3.attn_k_norm.weight")):
            for stored, value in zip(self.f32(theirs), self.source[ours][1], strict=True):
                self.assertAlmostEqual(stored, 1 + value, delta=1e-6)

    def test_the_gated_norm_is_as_it_was(self):
        self.assertEqual(self.f32("blk.0.ssm_norm.weight"), self.source["model.layers.0.linear_attn.norm.weight"][1])

    def test_decay_is_ready_to_multiply(self):
        for stored, value in zip(self.f32("blk.2.ssm_a"), self.source["model.layers.2.linear_attn.A_log"][1], strict=True):
            self.assertAlmostEqual(stored, -math.exp(value), delta=1e-6)
        self.assertEqual(self.f32("blk.2.ssm_dt.bias"), self.source["model.layers.2.linear_attn.dt_bias"][1])

    def test_the_convolution_is_one_row_a_channel(self):
        (channels, _, taps), values = self.source["model.layers.0.linear_attn.conv1d.weight"]
        self.assertEqual(self.tensors["blk.0.ssm_conv1d.weight"][0], [taps, channels])
        self.assertEqual(self.f32("blk.0.ssm_conv1d.weight"), values)

    def test_keys_say_the_shape(self):
        expected = {"block_count": 4, "embedding_length": 64, "feed_forward_length": 96, "attention.head_count": 8, "attention.head_count_kv": 2,
                    "attention.key_length": 256, "rope.dimension_count": 64, "rope.freq_base": 1e7, "rope.dimension_sections": [11, 11, 10, 0],
                    "ssm.conv_kernel": 4, "ssm.inner_size": 2048, "ssm.state_size": 128, "ssm.time_step_rank": 16, "ssm.group_count": 16,
                    "full_attention_interval": 4}
        self.assertEqual(self.keys["general.architecture"], "qwen35")
        self.assertEqual({key: self.keys[f"qwen35.{key}"] for key in expected}, expected)
        self.assertAlmostEqual(self.keys["qwen35.attention.layer_norm_rms_epsilon"], 1e-6, delta=1e-12)

    def test_one_distinct_token_for_every_row(self):
        tokens = self.keys["tokenizer.ggml.tokens"]
        self.assertEqual((len(tokens), len(set(tokens))), (600, 600))
        # Byte-level BPE's symbols of "A", the newline, the space and byte 0xff.
        self.assertLessEqual({"A", "\u010a", "\u0120", "\u00ff"}, set(tokens[:256]))

    def failure(self, *arguments):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            self.assertNotEqual(tool.main([str(argument) for argument in arguments]), 0)
        self.assertEqual(errors.getvalue().count("\n"), 1)
        return errors.getvalue()

    def test_more_value_heads_than_key_heads_are_refused(self):
        make_random_checkpoint.main([str(self.root / "tiny")])
        self.assertIn("2 key and 4 value heads", self.failure(self.root / "tiny", self.root / "tiny.gguf"))
        self.assertFalse((self.root / "tiny.gguf").exists())

    def test_directories_that_are_no_checkpoint(self):
        self.assertIn("config.json", self.failure(self.root / "nowhere", self.root / "x.gguf"))
        bare = self.root / "bare"
        bare.mkdir()
        (bare / "config.json").write_text((self.root / "m" / "config.json").read_text())
        self.assertIn("no *.safetensors", self.failure(bare, self.root / "x.gguf"))
        header = json.dumps({"model.norm.weight": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
        (bare / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
        self.assertIn("is F32, not BF16", self.failure(bare, self.root / "x.gguf"))
        header = json.dumps({"other.weight": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}).encode()
        (bare / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
        self.assertIn("tensor other.weight", self.failure(bare, self.root / "x.gguf"))


if __name__ == "__main__":
    unittest.main()
