#!/usr/bin/env python3
"""Measures Espalier and llama.cpp in turns on the same random weights and prints one table (tools/compare_llama.sh prepares both).

Best of several rounds, each program alone while it is measured, 2 threads each. Espalier's speeds are whole passes of model_bench, its warm
turn is a `replay`: from the messages to the first text. llama.cpp's are the `timings` that llama-server returns for /completion with lists of
ids: from the start of the work to the first token, and from token to token; neither HTTP nor tokenisation is in them.
Standard library only.
"""
import argparse
import json
import math
import os
import socket
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

THREADS = 2
CONTEXT = 24576
PROMPT = 2048
DEPTHS = (0, 4096)
GENERATED = 64
WARM_TURNS = 4
HISTORY_LINES = 460  # about 20,000 tokens of the default model's tokenizer
REPLY = 16  # tokens generated in each turn of the agent session
BEST = 20  # log-probabilities compared
MOST_NATS = 0.5  # apart they may be: BF16 rounds in other places, another model is several nats away
ESPALIER = "build/release/espalier"
MODEL_BENCH = "build/release/model_bench"


def run(*command, **environment):
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True, env={**os.environ, **environment}).stdout


def ids_of(count, salt):
    """A prompt of noise; another `salt` shares no prefix, so nothing cached can serve it."""
    return [(i * 7 + salt * 13) % 4000 + 300 for i in range(count)]


class LlamaServer:
    def __init__(self, program, model, log):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.log = open(log, "a", encoding="utf-8")
        self.process = subprocess.Popen(
            [program, "-m", str(model), "--host", "127.0.0.1", "--port", str(self.port), "-t", str(THREADS), "-tb", str(THREADS),
             "-c", str(CONTEXT), "-np", "1", "--cache-ram", "0"], stdout=self.log, stderr=self.log)

    def __enter__(self):
        while True:
            try:
                self.request("GET", "/health")
                return self
            except (urllib.error.URLError, ConnectionError):
                if self.process.poll() is not None:
                    sys.exit(f"compare_llama: llama-server ended with status {self.process.returncode}: see {self.log.name}")
                time.sleep(0.2)

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.log.close()

    def request(self, method, path, body=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method,
                                         data=None if body is None else json.dumps(body).encode(), headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as response:
            return json.load(response)

    def complete(self, ids, count, **options):
        return self.request("POST", "/completion", {"prompt": ids, "n_predict": count, "ignore_eos": True, "samplers": ["top_k"], "top_k": 1, **options})

    def timings(self, ids, count):
        return self.complete(ids, count)["timings"]


def bench(model, name):
    """Tokens per second of one benchmark of model_bench."""
    text = run(MODEL_BENCH, f"--benchmark_filter=^{name}/", "--benchmark_format=json", ESPALIER_BENCH_MODEL=str(model))
    (result,) = json.loads(text)["benchmarks"]
    return result["tok/s"]


def agent_session():
    """Messages of a session: a long history, then WARM_TURNS commands with their output."""
    listing = "".join(f"def total_{i}(rows, rate=0.{i}):  # ledger/part_{i % 97}.py\n    return sum(row.cents for row in rows)\n" for i in range(HISTORY_LINES))
    messages = [{"role": "user", "content": "Repair the totals and show that all tests pass.\n" + listing}]
    for turn in range(WARM_TURNS):
        call = {"id": f"call_{turn}", "type": "function", "function": {"name": "bash", "arguments": json.dumps({"command": f"sed -n '1,80p' part_{turn}.py"})}}
        output = "".join(f"def part_{turn}_{i}(rows):\n    return [row.cents for row in rows]\n" for i in range(24))
        messages.append({"role": "assistant", "reasoning_content": f"The next file is part_{turn}.py.", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{turn}", "content": output})
    return messages


TOOLS = [{"type": "function", "function": {"name": "bash", "description": "Run a command.",
                                           "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}}]


def write_session(folder, messages):
    """The session as a workload file, one row a message."""
    rows = []
    for number, message in enumerate(messages, 1):
        row = {"conversation_id": "compare", "turn": number, "role": message["role"]}
        if message["role"] == "user":
            row |= {"content": message["content"], "system": "You are a careful programmer who works in a shell.", "tools": TOOLS}
        elif message["role"] == "assistant":
            row |= {"reasoning_content": message["reasoning_content"], "tool_calls": message["tool_calls"]}
        else:
            row["tool_results"] = [{"tool_call_id": message["tool_call_id"], "content": message["content"]}]
        rows.append(json.dumps(row))
    # The last row of a conversation is the recorded answer to the last turn; only its prompt matters here.
    rows.append(json.dumps({"conversation_id": "compare", "turn": len(messages) + 1, "role": "assistant", "reasoning_content": "Done.",
                            "tool_calls": [{"id": "call_end", "type": "function", "function": {"name": "bash", "arguments": "{\"command\": \"true\"}"}}]}))
    path = folder / "session.jsonl"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def session_prompts(folder, model, messages):
    """Ids of the prompt of every turn, as replay sends them."""
    system = {"role": "system", "content": "You are a careful programmer who works in a shell."}
    request = folder / "request.json"
    prompts = []
    for end in range(1, len(messages) + 1, 2):
        request.write_text(json.dumps({"messages": [system, *messages[:end]], "tools": TOOLS}), encoding="utf-8")
        prompts.append(json.loads(run(ESPALIER, "render", model, request))["ids"])
    return prompts


def largest_difference(server, folder, model):
    """The largest difference of llama.cpp's BEST next-token log-probabilities after one prompt from Espalier's of the same tokens."""
    ids = ids_of(48, 5)
    (folder / "ids.json").write_text(json.dumps(ids), encoding="utf-8")
    run(ESPALIER, "logits", model, "--ids", folder / "ids.json", "--out", folder / "logits.safetensors", "--threads", THREADS)
    raw = (folder / "logits.safetensors").read_bytes()
    vocab = json.loads((model / "config.json").read_text())["vocab_size"]
    logits = struct.unpack(f"<{vocab}f", raw[-4 * vocab:])
    top = max(logits)
    total = top + math.log(sum(math.exp(x - top) for x in logits))
    best = server.complete(ids, 1, n_probs=BEST)["completion_probabilities"][0]["top_logprobs"]
    return max(abs(entry["logprob"] - (logits[entry["id"]] - total)) for entry in best)


def measure_espalier(model, session, best):
    for depth in DEPTHS:
        best.add(f"decode {depth}", "espalier", bench(model, f"BM_Decode/{depth}"))
    best.add("prefill", "espalier", bench(model, f"BM_Prefill/{PROMPT}"))
    report = json.loads(run(ESPALIER, "replay", "--data", session, "--model", model, "--threads", THREADS, "--max-tokens", REPLY, "--cache-bytes", "2G",
                            "--json"))
    if report["turns_ok"] != WARM_TURNS + 1:
        sys.exit(f"compare_llama: replay finished {report['turns_ok']} of {WARM_TURNS + 1} turns")
    best.add("warm", "espalier", 1000 / report["ttft_ms"]["min"])
    return report["hot_tokens"]


def measure_llama(server, prompts, round_number, best):
    server.timings(ids_of(64, 1), 8)  # touches every weight
    for depth in DEPTHS:
        result = server.timings(ids_of(max(depth, 1), 100 + 10 * round_number), GENERATED)
        best.add(f"decode {depth}", "llama", result["predicted_per_second"])
    result = server.timings(ids_of(PROMPT, 101 + 10 * round_number), 1)
    best.add("prefill", "llama", PROMPT * 1000 / result["prompt_ms"])
    hot = 0
    for number, prompt in enumerate(prompts):
        result = server.timings(prompt, REPLY)
        if number > 0:
            best.add("warm", "llama", 1000 / result["prompt_ms"])
            hot += result["cache_n"]
    return hot


class Best:
    """The fastest of all rounds: (row, program) -> rate."""

    def __init__(self):
        self.rates = {}

    def add(self, row, program, rate):
        print(f"  {program:9} {row:12} {rate:10.2f} /s", flush=True)
        key = row, program
        self.rates[key] = max(rate, self.rates.get(key, 0.0))

    def row(self, name, row, show):
        ours, theirs = self.rates[row, "espalier"], self.rates[row, "llama"]
        return f"| {name} | {show(ours)} | {show(theirs)} | {ours / theirs:.2f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, help="llama-server")
    parser.add_argument("--label", default="llama.cpp", help="its name in the table")
    parser.add_argument("--folder", type=Path, required=True, help="holds the checkpoint `model` and `model.gguf`; scratch files go there")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()

    model, gguf, log = args.folder / "model", args.folder / "model.gguf", args.folder / "server.log"
    messages = agent_session()
    session = write_session(args.folder, messages)
    prompts = session_prompts(args.folder, model, messages)
    lengths = [len(prompt) for prompt in prompts]
    if lengths[-1] + REPLY > CONTEXT:
        sys.exit(f"compare_llama: the session has {lengths[-1]} tokens, the context {CONTEXT}")

    best = Best()
    with LlamaServer(args.server, gguf, log) as server:
        difference = largest_difference(server, args.folder, model)
    if difference > MOST_NATS:
        sys.exit(f"compare_llama: not the same model: log-probabilities of the next token differ by {difference:.3f} nats")
    for number in range(args.rounds):
        print(f"round {number + 1} of {args.rounds}, load {os.getloadavg()[0]:.1f}", flush=True)
        hot = measure_espalier(model, session, best)
        with LlamaServer(args.server, gguf, log) as server:
            llama_hot = measure_llama(server, prompts, number, best)

    def rate(value):
        return f"{value:.1f} tokens/s"

    def time_ms(value):
        return f"{1000 / value:.0f} ms"

    warm = sum(lengths[1:])
    print(f"\n| Qwen3.5-0.8B's shape, random BF16 weights, {THREADS} threads, best of {args.rounds} | Espalier | {args.label} | ratio |\n|---|---|---|---|")
    print(best.row(f"prefill of {PROMPT:,} tokens", "prefill", rate))
    for depth in DEPTHS:
        print(best.row(f"decode at {depth:,} tokens" if depth else "decode, no history", f"decode {depth}", rate))
    print(best.row(f"warm turn at {lengths[1]:,} to {lengths[-1]:,} tokens of prompt, to the first token", "warm", time_ms))
    print(f"\nPrompt tokens of the {WARM_TURNS} warm turns: {warm:,}, hot {hot:,} and {llama_hot:,}. "
          f"Same model: the {BEST} likeliest next tokens differ by at most {difference:.3f} nats.")


if __name__ == "__main__":
    main()
