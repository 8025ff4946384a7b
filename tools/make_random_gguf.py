#!/usr/bin/env python3
"""Writes the weights of a checkpoint that make_random_checkpoint.py made as a GGUF file, so that llama.cpp runs the same model.

The layout is llama.cpp's `qwen35`: zero-centred norms are stored with their 1 added, `ssm_a` is -exp(A_log), one-dimensional tensors and
the convolution are F32, matrices keep their BF16 bytes. The MTP layer is left out. The tokenizer is a placeholder, byte symbols and then
numbers: prompts are lists of ids. Standard library only.

Example:
  make_random_checkpoint.py DIR --preset 0.8b && make_random_gguf.py DIR model.gguf
"""
import argparse
import json
import math
import struct
import sys
from pathlib import Path

ALIGNMENT = 32  # of a tensor's data, the format's default
COPY_BYTES = 1 << 24
F32, BF16 = 0, 30  # tensor types
FILE_TYPE_BF16 = 32
UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9  # value types

# Names below `blk.N.`, from those below `model.layers.N.`.
LAYER_NAMES = {
    "input_layernorm.weight": "attn_norm.weight",
    "post_attention_layernorm.weight": "post_attention_norm.weight",
    "self_attn.q_proj.weight": "attn_q.weight",
    "self_attn.k_proj.weight": "attn_k.weight",
    "self_attn.v_proj.weight": "attn_v.weight",
    "self_attn.o_proj.weight": "attn_output.weight",
    "self_attn.q_norm.weight": "attn_q_norm.weight",
    "self_attn.k_norm.weight": "attn_k_norm.weight",
    "linear_attn.in_proj_qkv.weight": "attn_qkv.weight",
    "linear_attn.in_proj_z.weight": "attn_gate.weight",
    "linear_attn.in_proj_b.weight": "ssm_beta.weight",
    "linear_attn.in_proj_a.weight": "ssm_alpha.weight",
    "linear_attn.conv1d.weight": "ssm_conv1d.weight",
    "linear_attn.A_log": "ssm_a",
    "linear_attn.dt_bias": "ssm_dt.bias",
    "linear_attn.norm.weight": "ssm_norm.weight",
    "linear_attn.out_proj.weight": "ssm_out.weight",
    "mlp.gate_proj.weight": "ffn_gate.weight",
    "mlp.up_proj.weight": "ffn_up.weight",
    "mlp.down_proj.weight": "ffn_down.weight",
}
GLOBAL_NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}


class UsageError(Exception):
    """A wrong argument; its text is one line for the person who gave it."""


def gguf_name(name):
    """The name of a tensor in the file; None for one that stays out."""
    if name in GLOBAL_NAMES:
        return GLOBAL_NAMES[name]
    if name.startswith("mtp."):
        return None
    parts = name.split(".", 3)
    if len(parts) == 4 and parts[:2] == ["model", "layers"] and parts[3] in LAYER_NAMES:
        return f"blk.{parts[2]}.{LAYER_NAMES[parts[3]]}"
    raise UsageError(f"tensor {name}: not one of make_random_checkpoint.py's")


def string(text):
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def array(kind, items):
    return struct.pack("<IQ", kind, len(items)) + b"".join(items)


def byte_symbols():
    """The 256 symbols in which byte-level BPE writes bytes: printable Latin-1 as itself, the others from U+0100 on."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    return [*map(chr, printable), *(chr(256 + i) for i in range(len(others)))]


def metadata(config):
    """[(key, value type, value as bytes)]"""
    key_heads, value_heads = config["linear_num_key_heads"], config["linear_num_value_heads"]
    if key_heads != value_heads:
        raise UsageError(f"{key_heads} key and {value_heads} value heads: llama.cpp orders value heads in another way; give a preset with as many of each")
    rope = config["rope_parameters"]
    symbols = byte_symbols()
    tokens = symbols + [f"<{i}>" for i in range(len(symbols), config["vocab_size"])]
    numbers = {
        "block_count": config["num_hidden_layers"],
        "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"],
        "feed_forward_length": config["intermediate_size"],
        "attention.head_count": config["num_attention_heads"],
        "attention.head_count_kv": config["num_key_value_heads"],
        "attention.key_length": config["head_dim"],
        "attention.value_length": config["head_dim"],
        "rope.dimension_count": round(config["head_dim"] * rope["partial_rotary_factor"]),
        "ssm.conv_kernel": config["linear_conv_kernel_dim"],
        "ssm.inner_size": value_heads * config["linear_value_head_dim"],
        "ssm.state_size": config["linear_key_head_dim"],
        "ssm.time_step_rank": value_heads,
        "ssm.group_count": key_heads,
        "full_attention_interval": config["full_attention_interval"],
    }
    return [
        ("general.architecture", STRING, string("qwen35")),
        ("general.name", STRING, string("random weights")),
        ("general.file_type", UINT32, struct.pack("<I", FILE_TYPE_BF16)),
        *((f"qwen35.{key}", UINT32, struct.pack("<I", value)) for key, value in numbers.items()),
        ("qwen35.attention.layer_norm_rms_epsilon", FLOAT32, struct.pack("<f", config["rms_norm_eps"])),
        ("qwen35.rope.freq_base", FLOAT32, struct.pack("<f", rope["rope_theta"])),
        ("qwen35.rope.dimension_sections", ARRAY, array(INT32, [struct.pack("<i", size) for size in [*rope["mrope_section"], 0]])),
        ("tokenizer.ggml.model", STRING, string("gpt2")),
        ("tokenizer.ggml.pre", STRING, string("qwen2")),
        ("tokenizer.ggml.tokens", ARRAY, array(STRING, [string(token) for token in tokens])),
        ("tokenizer.ggml.merges", ARRAY, array(STRING, [string("< 2")])),  # the key must be there; this one yields no token
        ("tokenizer.ggml.eos_token_id", UINT32, struct.pack("<I", config["vocab_size"] - 1)),
        ("tokenizer.ggml.add_bos_token", BOOL, b"\0"),
    ]


class Source:
    """One tensor of a safetensors file, all of them BF16."""

    def __init__(self, path, name, shape, begin, size):
        self.path, self.name, self.shape, self.begin, self.size = path, name, shape, begin, size

    def chunks(self):
        with open(self.path, "rb") as file:
            file.seek(self.begin)
            left = self.size
            while left > 0:
                chunk = file.read(min(left, COPY_BYTES))
                if not chunk:
                    raise UsageError(f"{self.path}: ends within {self.name}")
                left -= len(chunk)
                yield chunk

    def floats(self):
        wide = bytearray(2 * self.size)  # two zero bytes below a BF16 make it the float of the same value
        raw = b"".join(self.chunks())
        wide[2::4], wide[3::4] = raw[0::2], raw[1::2]
        return struct.unpack(f"<{self.size // 2}f", wide)


def read_sources(folder):
    sources = []
    for path in sorted(folder.glob("*.safetensors")):
        with open(path, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(length))
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            if entry["dtype"] != "BF16":
                raise UsageError(f"{path}: {name} is {entry['dtype']}, not BF16")
            begin, end = entry["data_offsets"]
            sources.append(Source(path, name, entry["shape"], 8 + length + begin, end - begin))
    if not sources:
        raise UsageError(f"{folder}: no *.safetensors")
    return sources


def is_f32(source):
    return len(source.shape) == 1 or source.name.endswith("conv1d.weight")


def file_shape(source):
    """Dimensions as the file has them, columns first; those of size 1 in the middle (the convolution's) are left out."""
    rows, *rest = source.shape
    return [size for size in reversed(rest) if size > 1] + [rows]


def f32_values(source):
    values = source.floats()
    if source.name.endswith("A_log"):
        return [-math.exp(value) for value in values]
    if source.name.endswith("norm.weight") and not source.name.endswith("linear_attn.norm.weight"):
        return [1 + value for value in values]
    return values


def file_chunks(source):
    if not is_f32(source):
        return source.chunks()
    values = f32_values(source)
    return [struct.pack(f"<{len(values)}f", *values)]


def padding(size):
    return b"\0" * (-size % ALIGNMENT)


def write_gguf(folder, path):
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    pairs = metadata(config)
    tensors = [(name, source) for source in read_sources(folder) if (name := gguf_name(source.name)) is not None]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs))
    head += b"".join(string(key) + struct.pack("<I", kind) + value for key, kind, value in pairs)
    offset = 0
    for name, source in tensors:
        shape = file_shape(source)
        head += string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, F32 if is_f32(source) else BF16, offset)
        size = source.size * 2 if is_f32(source) else source.size
        offset += size + len(padding(size))
    with open(path, "wb") as out:
        out.write(head + padding(len(head)))
        for _, source in tensors:
            size = 0
            for chunk in file_chunks(source):
                out.write(chunk)
                size += len(chunk)
            out.write(padding(size))


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path, help="directory that make_random_checkpoint.py wrote")
    parser.add_argument("out", type=Path, help="file to write")
    args = parser.parse_args(argv)
    try:
        write_gguf(args.checkpoint, args.out)
    except (UsageError, OSError) as error:
        print(f"make_random_gguf.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
