#!/usr/bin/env python3
"""Writes a checkpoint of random weights in the shape of any dense Qwen3.5 / 3.6 family member: BF16, text-only layout.

The values are noise of the right size, so that activations stay sane and every code path runs; the answers mean nothing.
Matrices have standard deviation gain / sqrt(columns), zero-centred norms lie near 0, the gated norm near 1, and the decay of a
Gated DeltaNet head between about 0.7 and 1. A megabyte of noise is drawn once and tiled at varying offsets: 1.7 GB take seconds.
Standard library only; the same arguments give the same bytes.

Examples:
  make_random_checkpoint.py /tmp/m --preset 0.8b --tokenizer DIR
  make_random_checkpoint.py /tmp/m --preset tiny --vocab 248320 --tokenizer DIR --template chat_template.jinja
"""
import argparse
import gzip
import json
import math
import random
import shutil
import struct
import sys
from pathlib import Path

# Sizes that differ within the family; head_dim 256, GDN heads 128 wide, convolution 4, rotary 64 everywhere.
PRESETS = {
    #        hidden, layers, heads, kv heads, intermediate, GDN key heads, GDN value heads, tied, vocabulary rows
    "tiny": (128, 4, 4, 1, 384, 2, 4, True, 512),
    "0.8b": (1024, 24, 8, 2, 3584, 16, 16, True, 248320),
    "2b": (2048, 24, 8, 2, 6144, 16, 16, True, 248320),
    "4b": (2560, 32, 16, 4, 9216, 16, 32, True, 248320),
    "9b": (4096, 32, 16, 4, 12288, 16, 32, False, 248320),
    "27b": (5120, 64, 24, 4, 17408, 16, 48, False, 248320),
}
HEAD_DIM = 256
GDN_HEAD_DIM = 128
CONV_KERNEL = 4
POOL_BYTES = 1 << 20  # of noise; must be even
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt", "chat_template.jinja")
STOP_TOKENS = ("<|im_end|>", "<|endoftext|>")


class UsageError(Exception):
    """A wrong argument; its text is one line for the person who gave it."""


def make_config(args):
    hidden, layers, heads, kv_heads, intermediate, key_heads, value_heads, tied, vocab = PRESETS[args.preset]
    layers = args.layers or layers
    interval = 4
    return {
        "architectures": ["Qwen3_5ForCausalLM"],
        "model_type": "qwen3_5_text",
        "attention_bias": False,
        "attn_output_gate": True,
        "dtype": "bfloat16",
        "full_attention_interval": interval,
        "head_dim": HEAD_DIM,
        "hidden_act": "silu",
        "hidden_size": args.hidden or hidden,
        "intermediate_size": args.intermediate or intermediate,
        "layer_types": ["full_attention" if (i + 1) % interval == 0 else "linear_attention" for i in range(layers)],
        "linear_conv_kernel_dim": CONV_KERNEL,
        "linear_key_head_dim": GDN_HEAD_DIM,
        "linear_num_key_heads": key_heads,
        "linear_num_value_heads": value_heads,
        "linear_value_head_dim": GDN_HEAD_DIM,
        "max_position_embeddings": 262144,
        "mtp_num_hidden_layers": 0 if args.no_mtp else 1,
        "num_attention_heads": heads,
        "num_hidden_layers": layers,
        "num_key_value_heads": kv_heads,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"mrope_interleaved": True, "mrope_section": [11, 11, 10], "partial_rotary_factor": 0.25,
                            "rope_theta": 10000000, "rope_type": "default"},
        "tie_word_embeddings": tied,
        "vocab_size": args.vocab or vocab,
    }


def tensor_shapes(config):
    """[(name, shape)] of all tensors, names as text-only exports have them."""
    hidden, inner, vocab = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    query = config["num_attention_heads"] * HEAD_DIM
    kv = config["num_key_value_heads"] * HEAD_DIM
    value_heads = config["linear_num_value_heads"]
    value = value_heads * GDN_HEAD_DIM
    conv = 2 * config["linear_num_key_heads"] * GDN_HEAD_DIM + value

    def layer(prefix, kind):
        yield prefix + "input_layernorm.weight", [hidden]
        yield prefix + "post_attention_layernorm.weight", [hidden]
        if kind == "full_attention":
            yield prefix + "self_attn.q_proj.weight", [2 * query, hidden]
            yield prefix + "self_attn.k_proj.weight", [kv, hidden]
            yield prefix + "self_attn.v_proj.weight", [kv, hidden]
            yield prefix + "self_attn.o_proj.weight", [hidden, query]
            yield prefix + "self_attn.q_norm.weight", [HEAD_DIM]
            yield prefix + "self_attn.k_norm.weight", [HEAD_DIM]
        else:
            yield prefix + "linear_attn.in_proj_qkv.weight", [conv, hidden]
            yield prefix + "linear_attn.in_proj_z.weight", [value, hidden]
            yield prefix + "linear_attn.in_proj_b.weight", [value_heads, hidden]
            yield prefix + "linear_attn.in_proj_a.weight", [value_heads, hidden]
            yield prefix + "linear_attn.conv1d.weight", [conv, 1, CONV_KERNEL]
            yield prefix + "linear_attn.A_log", [value_heads]
            yield prefix + "linear_attn.dt_bias", [value_heads]
            yield prefix + "linear_attn.norm.weight", [GDN_HEAD_DIM]
            yield prefix + "linear_attn.out_proj.weight", [hidden, value]
        yield prefix + "mlp.gate_proj.weight", [inner, hidden]
        yield prefix + "mlp.up_proj.weight", [inner, hidden]
        yield prefix + "mlp.down_proj.weight", [hidden, inner]

    shapes = [("model.embed_tokens.weight", [vocab, hidden])]
    for i, kind in enumerate(config["layer_types"]):
        shapes += layer(f"model.layers.{i}.", kind)
    shapes.append(("model.norm.weight", [hidden]))
    if not config["tie_word_embeddings"]:
        shapes.append(("lm_head.weight", [vocab, hidden]))
    if config["mtp_num_hidden_layers"]:
        shapes.append(("mtp.fc.weight", [hidden, 2 * hidden]))
        shapes += [(f"mtp.{norm}.weight", [hidden]) for norm in ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm")]
        shapes += layer("mtp.layers.0.", "full_attention")
    return shapes


def num_bytes(shape):
    return 2 * math.prod(shape)


def small_range(name):
    """(low, high) of the uniform values of a one-dimensional tensor."""
    if name.endswith(".A_log"):
        return math.log(0.02), math.log(0.2)
    if name.endswith(".dt_bias"):
        return -0.5, 0.5
    if name.endswith("linear_attn.norm.weight"):
        return 0.8, 1.2
    return -0.2, 0.2


def standard_deviation(name, shape, num_layers):
    if name.endswith("conv1d.weight"):
        return 0.4
    gain = 1.0
    if name.endswith(("o_proj.weight", "out_proj.weight", "down_proj.weight")):
        gain = 1 / math.sqrt(2 * num_layers)  # the residual stream grows by a constant over all layers
    elif name.endswith("in_proj_a.weight"):
        gain = 0.3
    elif name.endswith(("embed_tokens.weight", "lm_head.weight")):
        gain = 3.0
    return gain / math.sqrt(shape[-1])


class Noise:
    """BF16 noise of any standard deviation from one pool of random bytes."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.low = self.random.randbytes(POOL_BYTES // 2)
        self.high = self.random.randbytes(POOL_BYTES // 2)

    def block(self, deviation):
        """POOL_BYTES of values +-[1, 2) * 2^e, a share of them 4 times larger, so that the mean square is deviation^2."""
        # A magnitude uniform in [1, 2) has mean square 7/3; a share p of 4-fold values makes it (1 + 15 p) * 7/3.
        exponent = math.floor(math.log2(deviation / math.sqrt(7 / 3)))
        if not -100 < exponent < 100:
            raise UsageError(f"a standard deviation of {deviation} is out of range")
        share = ((deviation / 2**exponent) ** 2 / (7 / 3) - 1) / 15
        biased = exponent + 127
        low = bytes((biased & 1) << 7 | (i & 0x7F) for i in range(256))
        threshold = round(share * 128)
        high = bytes((i & 0x80) | ((biased >> 1) + (1 if (i & 0x7F) < threshold else 0)) for i in range(256))
        block = bytearray(POOL_BYTES)
        block[0::2] = self.low.translate(low)
        block[1::2] = self.high.translate(high)
        return bytes(block)

    def write_matrix(self, out, size, deviation):
        block = memoryview(self.block(deviation))
        while size > 0:
            # An odd number of elements: repeated noise never starts at the same column of a matrix of even width.
            begin = 2 * (2 * self.random.randrange(POOL_BYTES // 4) + 1)
            for part in (block[begin:], block[:begin]):
                out.write(part[:size])
                size -= min(size, len(part))

    def write_small(self, out, count, low, high):
        for _ in range(count):
            out.write(struct.pack("<f", self.random.uniform(low, high))[2:])  # the upper half of a float is a BF16


def assign_shards(shapes, shard_bytes):
    """Consecutive tensors, each shard at most `shard_bytes` unless one tensor alone is larger."""
    shards = [[]]
    used = 0
    for name, shape in shapes:
        if shards[-1] and used + num_bytes(shape) > shard_bytes:
            shards.append([])
            used = 0
        shards[-1].append((name, shape))
        used += num_bytes(shape)
    return shards


def write_shard(path, tensors, noise, num_layers):
    header = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, shape in tensors:
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, offset + num_bytes(shape)]}
        offset += num_bytes(shape)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % 64)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for name, shape in tensors:
            if len(shape) == 1:
                noise.write_small(out, shape[0], *small_range(name))
            else:
                noise.write_matrix(out, num_bytes(shape), standard_deviation(name, shape, num_layers))


def write_weights(folder, shapes, seed, shard_bytes, num_layers):
    noise = Noise(seed)
    shards = assign_shards(shapes, shard_bytes)
    if len(shards) == 1:
        write_shard(folder / "model.safetensors", shapes, noise, num_layers)
        return
    weight_map = {}
    for i, tensors in enumerate(shards):
        name = f"model-{i + 1:05}-of-{len(shards):05}.safetensors"
        write_shard(folder / name, tensors, noise, num_layers)
        weight_map.update((tensor, name) for tensor, _ in tensors)
    total = sum(num_bytes(shape) for _, shape in shapes)
    write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": weight_map})


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def copy_tokenizer(source, folder):
    """Copies the tokenizer files of `source`, unpacking *.gz; returns the ids of its stop tokens and the number of ids it needs."""
    for name in TOKENIZER_FILES:
        if (source / name).is_file():
            shutil.copyfile(source / name, folder / name)
        elif (source / (name + ".gz")).is_file():
            (folder / name).write_bytes(gzip.decompress((source / (name + ".gz")).read_bytes()))
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise UsageError(f"{source}: neither tokenizer.json nor tokenizer.json.gz")
    document = json.loads(path.read_text(encoding="utf-8"))
    added = {token["content"]: token["id"] for token in document.get("added_tokens", [])}
    ids = [*document["model"]["vocab"].values(), *added.values()]
    return [added[token] for token in STOP_TOKENS if token in added], max(ids) + 1


def parse_arguments(argv):
    def positive(text):
        value = int(text)
        if value < 1:
            raise argparse.ArgumentTypeError(f"expected a positive number, found {text}")
        return value

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="directory to write; must not exist or be empty")
    parser.add_argument("--preset", choices=PRESETS, default="tiny", help="family member whose sizes to take (default: %(default)s)")
    parser.add_argument("--layers", type=positive, help="number of layers instead of the preset's; every fourth has full attention")
    parser.add_argument("--hidden", type=positive, help="hidden size instead of the preset's")
    parser.add_argument("--intermediate", type=positive, help="width of the MLP instead of the preset's")
    parser.add_argument("--vocab", type=positive, help="rows of the embedding instead of the preset's")
    parser.add_argument("--tokenizer", type=Path, help="directory whose tokenizer files and chat template to copy; names the stop ids")
    parser.add_argument("--template", type=Path, help="chat template to copy instead")
    parser.add_argument("--no-mtp", action="store_true", help="without the MTP layer")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shard-bytes", type=positive, default=5_000_000_000, help="largest file (default: %(default)s)")
    return parser.parse_args(argv)


def make_checkpoint(args):
    if args.out.exists() and (not args.out.is_dir() or any(args.out.iterdir())):
        raise UsageError(f"{args.out}: exists and is not an empty directory")
    for given in (args.tokenizer, args.template):
        if given and not given.exists():
            raise UsageError(f"{given}: does not exist")
    args.out.mkdir(parents=True, exist_ok=True)
    config = make_config(args)
    if args.tokenizer:
        stop_ids, needed = copy_tokenizer(args.tokenizer, args.out)
        if needed > config["vocab_size"]:
            raise UsageError(f"{args.tokenizer}: needs {needed} vocabulary rows, the model has {config['vocab_size']}: give --vocab")
        if stop_ids:
            config["eos_token_id"] = stop_ids[-1]
            write_json(args.out / "generation_config.json", {"eos_token_id": stop_ids})
    if args.template:
        shutil.copyfile(args.template, args.out / "chat_template.jinja")
    write_weights(args.out, tensor_shapes(config), args.seed, args.shard_bytes, config["num_hidden_layers"])
    write_json(args.out / "config.json", config)  # last: a directory without it is no checkpoint, however the run ended


def main(argv=None):
    try:
        make_checkpoint(parse_arguments(argv))
    except (UsageError, OSError) as error:
        print(f"make_random_checkpoint.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
