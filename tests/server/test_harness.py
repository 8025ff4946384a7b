"""The official agent benchmark against the server: its client (harness_client.py) over two recorded conversations and twenty function-calling
samples, and the stream that it needs looked at byte by byte. Usage: test_harness.py PROGRAM SOURCE_DIR"""

import hashlib
import json
import pathlib
import sys
import time
import unittest

import harness_client as harness
from server_process import ServerProcess, readable

PROGRAM = sys.argv[1]
SOURCE = pathlib.Path(sys.argv[2])
MODEL = str(SOURCE / "models/espalier-nano")
DATA = SOURCE / "../shared/data"
CONVERSATIONS = DATA / "mlperf/agentic_coding_2.5h.jsonl"
FUNCTION_CALLING = DATA / "bfcl"

BASH = {"type": "function", "function": {"name": "bash", "description": "Run a command in the project's folder.", "parameters": {
    "type": "object", "properties": {"command": {"type": "string", "description": "The command to run"}}, "required": ["command"]}}}


def setUpModule():
    global server
    server = ServerProcess(PROGRAM, MODEL)


def tearDownModule():
    server.stop()


def needs(path):
    return unittest.skipUnless(path.exists(), f"{path.resolve()} is absent: the benchmark's data lies beside a developer's checkout")


class RawStream:
    """A streamed answer as its bytes: the head, every chunk with its time of arrival."""

    def __init__(self, connection, body, path="/v1/chat/completions"):
        body = harness.encode(body)
        self.sent = time.monotonic()
        connection.socket.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost:{server.port}\r\nContent-Type: application/json\r\n"
                                  f"Accept: text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        self.status, self.headers = connection.read_head()
        self.pieces = [(time.monotonic(), piece) for piece in connection.read_body(self.headers)]
        self.ended = time.monotonic()
        self.body = b"".join(piece for _, piece in self.pieces)
        self.cut = connection.broken
        self.frames = self.body.split(b"\n\n")
        self.documents = [json.loads(frame[6:]) for frame in self.frames if frame.startswith(b"data: {")]

    def arrival(self, text):
        """When the first piece with these bytes came."""
        return next(arrived for arrived, piece in self.pieces if text in piece)

    def deltas(self):
        return [document["choices"][0]["delta"] for document in self.documents if document["choices"]]


class StreamOnTheWire(unittest.TestCase):
    def setUp(self):
        self.connection = harness.Connection("127.0.0.1", server.port)

    def tearDown(self):
        self.connection.close()

    def stream(self, **fields):
        body = {"model": "any", "messages": [{"role": "user", "content": "List the files here."}], "temperature": 0.0,
                "max_completion_tokens": 60, "stream": True, "seed": 42, **fields}
        stream = RawStream(self.connection, body)
        self.assertEqual(stream.status, 200, stream.body)
        return stream

    def called(self, **fields):
        return self.stream(tools=[BASH], tool_choice={"type": "function", "function": {"name": "bash"}}, **fields)

    def test_the_head_announces_a_chunked_event_stream_on_a_connection_that_stays(self):
        stream = self.stream()
        self.assertEqual(stream.headers["content-type"].split(";")[0], "text/event-stream")
        self.assertEqual(stream.headers["transfer-encoding"], "chunked")
        self.assertNotIn("content-length", stream.headers)
        self.assertNotEqual(stream.headers.get("connection", "keep-alive").lower(), "close")
        self.assertFalse(stream.cut)

    def test_every_frame_is_one_line_that_lf_lf_ends(self):
        for stream in (self.stream(), self.called(), self.stream(stream_options={"include_usage": True})):
            self.assertNotIn(b"\r", stream.body)
            self.assertEqual(stream.frames[-1], b"", "the body ends in LF LF")
            for frame in stream.frames[:-1]:
                self.assertNotIn(b"\n", frame)
                self.assertTrue(frame.startswith((b"data: ", b":")), frame)

    def test_every_frame_but_the_last_is_a_document_that_the_harness_decodes(self):
        for stream in (self.stream(), self.called()):
            data = [frame for frame in stream.frames if frame.startswith(b"data:")]
            self.assertEqual(data[-1], b"data: [DONE]")
            for frame in data[:-1]:
                document = harness.FRAME.fullmatch(frame)
                self.assertTrue(document, frame)
                harness.check_shape(json.loads(document[1].decode("utf-8", "strict")))

    def test_chunks_of_one_answer_share_id_model_and_time(self):
        stream = self.stream()
        heads = {(document["id"], document["object"], document["created"], document["model"]) for document in stream.documents}
        self.assertEqual(len(heads), 1)
        _, kind, created, _ = heads.pop()
        self.assertEqual(kind, "chat.completion.chunk")
        self.assertLess(abs(created - time.time()), 60)
        self.assertNotEqual(self.stream().documents[0]["id"], stream.documents[0]["id"])

    def test_the_first_delta_carries_text_or_a_call(self):
        for stream in (self.stream(), self.called(), self.stream(chat_template_kwargs={"enable_thinking": True})):
            first = stream.deltas()[0]
            self.assertTrue(first.get("content") or first.get("reasoning_content") or first.get("tool_calls"), first)
            self.assertEqual(first.get("role"), "assistant")

    def test_a_call_comes_as_id_and_whole_name_and_then_fragments_of_a_json_object(self):
        stream = self.called()
        entries = [entry for delta in stream.deltas() for entry in delta.get("tool_calls", [])]
        self.assertTrue(entries)
        seen = set()
        for entry in entries:
            self.assertIsInstance(entry["function"].get("arguments", ""), str)
            if entry["index"] not in seen:
                self.assertTrue(entry["id"])
                self.assertEqual((entry["type"], entry["function"]["name"]), ("function", "bash"))
                seen.add(entry["index"])
            else:
                self.assertFalse({"id", "type"} & entry.keys() or "name" in entry["function"], entry)
        self.assertEqual(seen, set(range(len(seen))))
        # The name is there while the arguments are still being written.
        self.assertEqual(entries[0]["function"]["arguments"], "")
        self.assertLess(stream.arrival(b'"bash"'), stream.arrival(b"command"))
        finish = [document["choices"][0]["finish_reason"] for document in stream.documents if document["choices"]][-1]
        self.assertIn(finish, ("tool_calls", "length"))
        if finish == "tool_calls":
            for call in harness.merge_tool_calls([entries]):
                self.assertIsInstance(json.loads(call["function"]["arguments"]), dict)

    def test_one_finish_reason_at_the_end(self):
        for stream in (self.stream(), self.called(), self.stream(max_completion_tokens=1)):
            reasons = [document["choices"][0]["finish_reason"] for document in stream.documents if document["choices"]]
            self.assertTrue(all(reason is None for reason in reasons[:-1]))
            self.assertIn(reasons[-1], ("stop", "length", "tool_calls"))
        self.assertEqual(reasons[-1], "length")

    def test_usage_comes_when_asked_for_in_a_frame_without_choices(self):
        asked = self.stream(stream_options={"include_usage": True})
        frames = [document for document in asked.documents if document.get("usage")]
        self.assertEqual(len(frames), 1)
        self.assertIs(frames[0], asked.documents[-1])
        self.assertEqual(frames[0]["choices"], [])
        usage = frames[0]["usage"]
        self.assertEqual(usage["prompt_tokens"] + usage["completion_tokens"], usage["total_tokens"])
        self.assertLess(usage["prompt_tokens_details"]["cached_tokens"], usage["prompt_tokens"])
        whole = server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "List the files here."}], "temperature": 0.0,
                                                     "max_completion_tokens": 60, "seed": 42}).json()
        self.assertEqual(whole["choices"][0]["message"]["content"], "".join(delta.get("content") or "" for delta in asked.deltas()))
        self.assertEqual({key: whole["usage"][key] for key in ("prompt_tokens", "completion_tokens")},
                         {key: usage[key] for key in ("prompt_tokens", "completion_tokens")})
        for document in self.stream().documents:
            self.assertIsNone(document.get("usage"))
            self.assertEqual(len(document["choices"]), 1)

    def test_the_last_chunk_tells_what_the_request_cost(self):
        last = self.stream().documents[-1]
        self.assertIsInstance(last["espalier"], dict)

    def test_text_comes_while_it_is_made_and_the_end_at_once(self):
        stream = self.stream(max_completion_tokens=300, ignore_eos=True)
        first = stream.pieces[0][0] - stream.sent
        self.assertGreater(len(stream.deltas()), 20)
        self.assertLess(first, (stream.ended - stream.sent) / 2)
        self.assertLess(stream.ended - stream.arrival(b"[DONE]"), 0.05)

    def test_text_is_whole_characters(self):
        stream = self.stream(messages=[{"role": "user", "content": "Repeat: ж 漢字 🙂 naïve"}], temperature=1.5, max_completion_tokens=200)
        stream.body.decode("utf-8", "strict")
        for delta in stream.deltas():
            self.assertFalse(any(0xD800 <= ord(character) < 0xE000 for character in delta.get("content") or ""))

    def test_the_connection_reads_on_after_the_last_chunk(self):
        self.stream()
        self.assertEqual(self.connection.buffer, b"")
        self.assertFalse(readable(self.connection.socket, 6.0), "the server closed, or said something that nobody asked for")
        self.stream()
        self.assertTrue(self.connection.reusable)

    def test_completions_stream_in_the_same_frames(self):
        stream = RawStream(self.connection, {"prompt": "def main():", "max_tokens": 20, "stream": True, "temperature": 0}, "/v1/completions")
        self.assertEqual(stream.status, 200, stream.body)
        self.assertEqual(stream.frames[-2:], [b"data: [DONE]", b""])
        self.assertTrue(all(isinstance(document["choices"][0]["text"], str) for document in stream.documents if document["choices"]))


class BackToBack(unittest.TestCase):
    def test_a_thousand_streams_on_one_connection_without_a_pause(self):
        worker = harness.HarnessWorker(server.url)
        body = harness.encode({"model": "any", "messages": [{"role": "user", "content": "hello"}], "max_completion_tokens": 2, "stream": True})
        for number in range(1000):
            answer = worker.issue(body).wait(60)
            self.assertIsNotNone(answer, f"request {number} was not answered")
            self.assertIsNone(answer.error, f"request {number}")
            self.assertTrue(answer.done and not answer.truncated and not answer.empty(), f"request {number}: {answer}")
        self.assertEqual(worker.connections_opened, 1)
        worker.close()


def held_back_share(answer):
    """How much of the time from a reply's first token to its last had passed when the client had its first text."""
    first_token_s, total_s = answer.timings["first_token_ms"] / 1e3, answer.timings["total_ms"] / 1e3
    return (answer.first - answer.issued - first_token_s) / max(total_s - first_token_s, 1e-6)


class OfficialHarness(unittest.TestCase):
    def assert_clean(self, results):
        for result in results:
            self.assertIsNone(result.failure, f"{result.conversation_id} {result.turn}")
            answer = result.answer
            self.assertEqual((answer.dropped, answer.errors_in_stream, answer.truncated), ([], [], False))
            self.assertTrue(answer.done)
            self.assertIn(answer.finish_reason, ("stop", "length", "tool_calls"))
            self.assertFalse(answer.empty(), f"{result.conversation_id} {result.turn}")
            for call in answer.tool_calls():
                self.assertTrue(call["id"] and call["function"]["name"])
                if answer.finish_reason == "tool_calls":
                    self.assertIsInstance(json.loads(call["function"]["arguments"]), dict)

    @needs(CONVERSATIONS)
    def test_performance_phase_of_two_conversations(self):
        conversations = {conversation.id: conversation for conversation in harness.load_conversations(CONVERSATIONS)}
        worker = harness.HarnessWorker(server.url)
        results = harness.performance_phase(worker, [conversations["pallets__flask-5014"], conversations["psf__requests-1142"]])
        worker.close()
        self.assertEqual(len(results), 27 + 43)
        self.assert_clean(results)
        self.assertEqual(worker.connections_opened, 1)
        # A call is not held back until it is whole: the first text follows the first token long before the last one.
        held_back = sorted(held_back_share(result.answer) for result in results)
        self.assertLess(held_back[len(held_back) // 2], 0.5)

    @needs(FUNCTION_CALLING)
    def test_accuracy_phase_of_twenty_samples(self):
        samples = harness.load_accuracy_samples(FUNCTION_CALLING)[::50]
        worker = harness.HarnessWorker(server.url)
        results = harness.accuracy_phase(worker, samples)
        worker.close()
        self.assertEqual(len(results), 20)
        self.assert_clean(results)

    def test_a_pause_makes_the_client_come_back_on_a_new_connection(self):
        worker = harness.HarnessWorker(server.url)
        body = harness.chat_body([{"role": "user", "content": "hello"}], [BASH])
        for pause_s, connections in ((0, 1), (harness.IDLE_LIMIT_S + 0.3, 2), (1, 2)):
            time.sleep(pause_s)
            self.assertIsNone(worker.issue(body).wait(60).error)
            self.assertEqual(worker.connections_opened, connections)
        worker.close()

    def test_a_client_that_gave_up_on_a_turn_keeps_its_connection(self):
        worker = harness.HarnessWorker(server.url)
        long_body = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 400, "stream": True, "ignore_eos": True}
        slow = worker.issue(harness.encode(long_body))
        next_one = worker.issue(harness.chat_body([{"role": "user", "content": "hello"}], None))
        self.assertIsNone(slow.wait(0.01))
        self.assertIsNone(next_one.wait(60).error)
        self.assertTrue(slow.finished.is_set() and slow.answer.done)
        worker.close()


class OfficialRequests(unittest.TestCase):
    """The client's requests are the official ones: hashes over all bodies, each with a newline behind it."""

    @needs(CONVERSATIONS)
    def test_performance_bodies(self):
        bodies = [turn.body for conversation in harness.load_conversations(CONVERSATIONS) for turn in conversation.turns]
        self.assertEqual(len(bodies), 1007)
        self.assertEqual(hashlib.sha256(b"".join(body + b"\n" for body in bodies)).hexdigest(),
                         "53db894bf4886caf8d30b5cabd0e99cbe302fdb59790974dc881d24aa959a37a")

    @needs(FUNCTION_CALLING)
    def test_accuracy_bodies_and_their_order(self):
        samples = harness.load_accuracy_samples(FUNCTION_CALLING)
        self.assertEqual(len(samples), 995)
        self.assertEqual(hashlib.sha256(b"".join(body + b"\n" for _, body in samples)).hexdigest(),
                         "44d97256ab8cc2a23153f5986f9e748f7d4786117259727f515c0edb98e9f55c")
        self.assertEqual(hashlib.sha256("".join(name + "\n" for name, _ in samples).encode()).hexdigest(),
                         "31225ad1c4ee7087aee9cbf5245e53710d1f2bf20074f3310a985d868dd96d28")

    def test_the_head_is_what_the_official_client_sends(self):
        worker = harness.HarnessWorker("http://localhost:8080", api_key="key")
        self.assertEqual(worker.head(b"{}", "demo__1"), b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost:8080\r\nAuthorization: Bearer key\r\n"
                         b"Content-Type: application/json\r\nAccept: text/event-stream\r\nX-Session-ID: demo__1\r\nContent-Length: 2\r\n\r\n")
        worker.close()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
