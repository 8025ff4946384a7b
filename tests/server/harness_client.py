"""The official agent benchmark's HTTP client, reproduced from its specification: what it sends byte for byte, how it frames and merges a stream,
when it keeps a connection, what counts as a failed turn. A server that this client is content with loses no turn of a real run.

Where the original would wait for ever (broken chunk framing), this one raises BrokenFraming at once. It counts no tokens: time per output
token needs the client's own tokenizer and is not measured here.
"""

import dataclasses
import json
import queue
import re
import socket
import threading
import time
import urllib.parse

IDLE_LIMIT_S = 4.0     # a connection unused for longer is closed and replaced
TURN_TIMEOUT_S = 600.0
FRAME = re.compile(rb"data:\s*(\{[^\n]+\})")


# ------------------------------------------------------------------------------------------------------------------------- requests


def encode(body):
    """Compact JSON, non-ASCII text raw, control characters as short escapes or \\u00xx."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def chat_body(messages, tools, tool_choice=None, model="Qwen3.6-27B-Q4_K_M"):
    body = {"model": model, "messages": messages, "temperature": 0.0, "max_completion_tokens": 1024, "stream": True, "seed": 42}
    if tools is not None:
        body["tools"] = tools
    if tool_choice is not None:
        body["tool_choice"] = tool_choice
    return encode(body)


@dataclasses.dataclass
class Turn:
    number: int
    body: bytes


@dataclasses.dataclass
class Conversation:
    id: str
    turns: list


def load_conversations(path, make_body=chat_body):
    """The performance phase: every request of every conversation, with the recorded history; the model's own replies are never sent back."""
    conversations = []
    messages, tools = [], None
    with open(path, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines if line.strip()]
    for row in rows:
        if row["turn"] == 1:
            conversations.append(Conversation(row["conversation_id"], []))
            tools = row.get("tools")
            messages = [{"role": "system", "content": row["system"]}] if row.get("system") else []
        if row["role"] == "user":
            messages.append({"role": "user", "content": row["content"]})
        elif row["role"] == "tool":
            for result in row["tool_results"]:
                messages.append({"role": "tool", "content": result["content"], "tool_call_id": result["tool_call_id"]})
        else:
            message = {"role": "assistant"}
            for key in ("content", "tool_calls", "reasoning_content"):  # absent keys stay absent, `content` is one of them
                if row.get(key) is not None:
                    message[key] = row[key]
            messages.append(message)
            continue
        conversations[-1].turns.append(Turn(row["turn"], make_body(messages, tools)))
    return conversations


# The accuracy phase: share of each subset that is taken, in percent; subsets in alphabetical order.
BFCL_SUBSETS = {
    "irrelevance": 10, "live_irrelevance": 10, "live_multiple": 10, "live_parallel": 10, "live_parallel_multiple": 10, "live_simple": 10,
    "multiple": 62, "parallel": 62, "parallel_multiple": 62, "simple_java": 62, "simple_javascript": 62, "simple_python": 62,
}
BFCL_FLOOR = 25
BFCL_TYPES = {
    **dict.fromkeys(("integer", "byte", "short", "long", "Bigint"), "integer"),
    **dict.fromkeys(("number", "float", "double"), "number"),
    **dict.fromkeys(("string", "any", "char", "Any", "String"), "string"),
    **dict.fromkeys(("boolean", "bool"), "boolean"),
    **dict.fromkeys(("array", "list", "tuple", "ArrayList", "Array", "Queue", "Stack"), "array"),
    **dict.fromkeys(("dict", "object", "HashMap", "Hashtable"), "object"),
}


def convert_properties(properties):
    for schema in properties.values():
        original = schema.get("type", "string")
        schema["type"] = BFCL_TYPES.get(original, "string")
        if original == "float":
            schema["format"] = "float"
            schema["description"] = schema.get("description", "") + " This is a float type value."
        if schema["type"] in ("array", "object"):
            if "properties" in schema:
                convert_properties(schema["properties"])
            elif "items" in schema:
                items = schema["items"]
                items["type"] = BFCL_TYPES[items["type"]]
                if items["type"] == "array" and "items" in items:
                    items["items"]["type"] = BFCL_TYPES[items["items"]["type"]]
                elif items["type"] == "object" and "properties" in items:
                    convert_properties(items["properties"])


def convert_tool(function):
    parameters = function["parameters"]
    parameters["type"] = "object"
    convert_properties(parameters["properties"])
    return {"type": "function", "function": {**function, "name": function["name"].replace(".", "_")}}


def load_accuracy_samples(directory, make_body=chat_body):
    """[(sample id, body)] in the order of issue."""
    samples = []
    for subset, percent in BFCL_SUBSETS.items():
        with open(f"{directory}/BFCL_v4_{subset}.json", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines if line.strip()]
        taken = len(rows) if len(rows) <= BFCL_FLOOR else max(1, len(rows) * percent // 100)
        for row in rows[:taken]:
            messages = [{"role": message["role"], "content": message["content"] or ""} for group in row["question"] for message in group]
            samples.append((row["id"], make_body(messages, [convert_tool(function) for function in row["function"]], "auto")))
    return samples


# ------------------------------------------------------------------------------------------------------------------------- HTTP/1.1


class BrokenFraming(Exception):
    """The message is not HTTP/1.1. The original client would wait for its timer, or for ever."""


class RequestFailed(Exception):
    """A status other than 200, invalid UTF-8 in a frame, arguments that are not a string, a connection that broke before the head."""


class Connection:
    """One socket. Reads a message as its bytes arrive; knows afterwards whether the connection may be used again."""

    def __init__(self, host, port):
        self.socket = socket.create_connection((host, port), timeout=TURN_TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        self.reusable = True
        self.broken = False  # the message ended because the connection did
        self.last_used = time.monotonic()

    def close(self):
        self.socket.close()

    def receive(self):
        if hasattr(socket, "TCP_QUICKACK"):
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        data = self.socket.recv(128 * 1024)
        self.buffer += data
        return bool(data)

    def read_line(self, what):
        while b"\r\n" not in self.buffer:
            if not self.receive():
                return None
            if len(self.buffer) > 1 << 20 and b"\r\n" not in self.buffer:
                raise BrokenFraming(f"{what} without an end")
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def read_head(self):
        """(status, {lower-case name: value}). A connection that ends here fails the request."""
        line = self.read_line("status line")
        if line is None:
            raise RequestFailed("the connection ended before an answer")
        match = re.fullmatch(rb"HTTP/1\.([01]) (\d{3})(?: .*)?", line)
        if not match:
            raise BrokenFraming(f"status line {line!r}")
        headers = {}
        while True:
            field = self.read_line("headers")
            if field is None:
                raise RequestFailed("the connection ended in the head of an answer")
            if field == b"":
                break
            name, colon, value = field.partition(b":")
            if not colon or name != name.strip():
                raise BrokenFraming(f"header {field!r}")
            headers[name.decode("latin-1").lower()] = value.decode("latin-1").strip()
        if match[1] == b"0" or headers.get("connection", "").lower() == "close":
            self.reusable = False
        return int(match[2]), headers

    def read_body(self, headers):
        """Yields the pieces of a body as they arrive. A connection that breaks ends it as if that were the end."""
        if headers.get("transfer-encoding", "").lower() == "chunked":
            yield from self.read_chunks()
        elif "content-length" in headers:
            left = int(headers["content-length"])
            while left > 0:
                if not self.buffer and not self.receive():
                    self.reusable, self.broken = False, True
                    return
                piece, self.buffer = self.buffer[:left], self.buffer[left:]
                left -= len(piece)
                yield piece
        else:
            self.reusable = False
            while self.buffer or self.receive():
                piece, self.buffer = self.buffer, b""
                yield piece

    def read_chunks(self):
        while True:
            line = self.read_line("chunk size")
            if line is None:
                break
            if not re.fullmatch(rb"[0-9a-fA-F]+(?:;.*)?", line):
                raise BrokenFraming(f"chunk size {line!r}")
            left = int(line.split(b";")[0], 16)
            if left == 0:
                while (trailer := self.read_line("trailers")) != b"":
                    if trailer is None:
                        break
                return
            while left > 0:
                if not self.buffer and not self.receive():
                    break
                piece, self.buffer = self.buffer[:left], self.buffer[left:]
                left -= len(piece)
                yield piece
            if left > 0:
                break
            if self.read_line("end of chunk") != b"":
                raise BrokenFraming("a chunk is longer than announced")
        self.reusable, self.broken = False, True


# ------------------------------------------------------------------------------------------------------------------------- streams


@dataclasses.dataclass
class Answer:
    """What the harness makes of a stream, and what it does not look at but a test should."""
    content: list = dataclasses.field(default_factory=list)    # one entry a delta
    reasoning: list = dataclasses.field(default_factory=list)
    call_deltas: list = dataclasses.field(default_factory=list)
    finish_reason: str = None
    error: str = None            # the request failed
    truncated: bool = False      # the connection broke after the head: a success to the harness
    done: bool = False           # [DONE] was seen: means nothing to the harness
    dropped: list = dataclasses.field(default_factory=list)  # documents that it drops without an error
    errors_in_stream: list = dataclasses.field(default_factory=list)
    timings: dict = None         # what the server says of its own time
    issued: float = 0.0
    first: float = None
    completed: float = 0.0

    def tool_calls(self):
        return merge_tool_calls(self.call_deltas)

    def empty(self):
        return not (self.content or self.reasoning or self.call_deltas)


def merge_tool_calls(deltas):
    """Entries of the same index (0 where there is none) are one call: id, type and name replaced where not empty, arguments appended."""
    calls = {}
    for delta in deltas:
        for entry in delta:
            call = calls.setdefault(entry.get("index", 0), {"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
            function = entry.get("function") or {}
            for target, source, key in ((call, entry, "id"), (call, entry, "type"), (call["function"], function, "name")):
                if source.get(key):
                    target[key] = source[key]
            arguments = function.get("arguments")
            if arguments is not None:
                if not isinstance(arguments, str):
                    raise RequestFailed(f"arguments are {type(arguments).__name__}, not a string")
                call["function"]["arguments"] += arguments
    return [calls[index] for index in sorted(calls)]


def check_shape(document):
    """The shape that the harness decodes into; ValueError for a wrong type."""
    def expect(value, kinds, what):
        if value is not None and not isinstance(value, kinds):
            raise ValueError(f"{what} is {type(value).__name__}")
        return value

    choices = document.get("choices", [])
    if not isinstance(choices, list):
        raise ValueError(f"choices is {type(choices).__name__}")
    for choice in choices:
        if not isinstance(choice, dict):
            raise ValueError("a choice is not an object")
        expect(choice.get("finish_reason"), str, "finish_reason")
        delta = expect(choice.get("delta"), dict, "delta") or {}
        for key in ("role", "content", "reasoning_content", "reasoning"):
            text = expect(delta.get(key), str, key)
            if text and any(0xD800 <= ord(character) < 0xE000 for character in text):
                raise ValueError(f"a lone surrogate in {key}")
        for call in expect(delta.get("tool_calls"), list, "tool_calls") or []:
            if not isinstance(call, dict):
                raise ValueError("a tool call is not an object")
    return choices


class StreamReader:
    """Frames on LF LF alone, a batch at a time: what a batch drops, it drops to its end."""

    def __init__(self, answer):
        self.answer = answer
        self.buffer = b""

    def feed(self, data):
        self.buffer += data
        end = self.buffer.rfind(b"\n\n")
        if end >= 0:
            batch, self.buffer = self.buffer[: end + 2], self.buffer[end + 2 :]
            self.read_batch(batch)

    def finish(self):
        if self.buffer:
            self.read_batch(self.buffer)
        merge_tool_calls(self.answer.call_deltas)

    def read_batch(self, batch):
        if b"[DONE]" in batch:
            self.answer.done = True
        for document in FRAME.findall(batch):
            try:
                text = document.decode("utf-8")
            except UnicodeDecodeError as fault:
                raise RequestFailed(f"invalid UTF-8 in a frame: {fault}") from None
            try:
                value = json.loads(text)
                choices = check_shape(value)
            except ValueError as fault:  # JSONDecodeError is one
                self.answer.dropped.append((str(fault), document))
                return
            if "error" in value:
                self.answer.errors_in_stream.append(value["error"])
            if choices:
                self.read_choice(choices[0])
            if "espalier" in value:
                self.answer.timings = value["espalier"]["timings"]

    def read_choice(self, choice):
        answer = self.answer
        delta = choice.get("delta") or {}
        content, calls = delta.get("content"), delta.get("tool_calls")
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        if content:
            answer.content.append(content)
        elif reasoning:  # beside content it is lost
            answer.reasoning.append(reasoning)
        if calls:
            answer.call_deltas.append(calls)
        if choice.get("finish_reason"):
            answer.finish_reason = choice["finish_reason"]
        if (content or reasoning or calls) and answer.first is None:
            answer.first = time.monotonic()


class HarnessWorker:
    """One connection behind a queue. A request that its issuer has given up on keeps the connection: those behind it wait."""

    def __init__(self, url, api_key=None):
        parts = urllib.parse.urlsplit(url)
        self.host, self.port = parts.hostname, parts.port or 80
        self.path = parts.path.rstrip("/") + "/v1/chat/completions"
        self.host_header = parts.hostname if self.port in (80, 443) else f"{parts.hostname}:{self.port}"
        self.api_key = api_key
        self.connection = None
        self.connections_opened = 0
        self.requests = queue.Queue()
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def issue(self, body, session_id=None):
        """Puts a request in line; returns what tells of its end."""
        pending = Pending()
        pending.answer.issued = time.monotonic()
        self.requests.put((body, session_id, pending))
        return pending

    def close(self):
        self.requests.put(None)
        self.thread.join(timeout=5)
        if self.connection:
            self.connection.close()

    def head(self, body, session_id):
        lines = [f"POST {self.path} HTTP/1.1", f"Host: {self.host_header}"]
        if self.api_key is not None:
            lines.append(f"Authorization: Bearer {self.api_key}")
        lines += ["Content-Type: application/json", "Accept: text/event-stream"]
        if session_id is not None:
            lines.append(f"X-Session-ID: {session_id}")
        lines += [f"Content-Length: {len(body)}", "", ""]
        return "\r\n".join(lines).encode()

    def _serve(self):
        while (request := self.requests.get()) is not None:
            body, session_id, pending = request
            try:
                self._send(body, session_id, pending.answer)
            except (RequestFailed, BrokenFraming, OSError) as fault:
                pending.answer.error = f"{type(fault).__name__}: {fault}"
            pending.answer.completed = time.monotonic()
            pending.finished.set()

    def _send(self, body, session_id, answer):
        if self.connection and (not self.connection.reusable or time.monotonic() - self.connection.last_used > IDLE_LIMIT_S):
            self.connection.close()
            self.connection = None
        if self.connection is None:
            self.connection = Connection(self.host, self.port)
            self.connections_opened += 1
        connection = self.connection
        try:
            connection.socket.sendall(self.head(body, session_id) + body)
            status, headers = connection.read_head()
            if status != 200:
                text = b"" if status < 200 else b"".join(connection.read_body(headers))
                connection.reusable = connection.reusable and status >= 200
                raise RequestFailed(f"status {status}: {text.decode('utf-8', 'replace')}")
            reader = StreamReader(answer)
            for piece in connection.read_body(headers):
                reader.feed(piece)
            reader.finish()
            answer.truncated = connection.broken
            connection.last_used = time.monotonic()
        except (OSError, BrokenFraming):
            connection.reusable = False
            raise


class Pending:
    def __init__(self):
        self.answer = Answer()
        self.finished = threading.Event()

    def wait(self, timeout_s):
        """None where the turn's timer ran out first. The request itself goes on."""
        return self.answer if self.finished.wait(timeout_s) else None


# ------------------------------------------------------------------------------------------------------------------------- phases


@dataclasses.dataclass
class TurnResult:
    conversation_id: str
    turn: int
    answer: Answer       # None: timed out, or not sent because an earlier turn failed
    failure: str = None


def performance_phase(worker, conversations, turn_timeout_s=TURN_TIMEOUT_S):
    """One request at a time, conversations in order. A failed turn ends its conversation: the rest of it is issued to nobody."""
    results = []
    for conversation in conversations:
        failed = None
        for turn in conversation.turns:
            if failed:
                results.append(TurnResult(conversation.id, turn.number, None, "TurnAbortedByPriorFailure"))
                continue
            answer = worker.issue(turn.body, conversation.id).wait(turn_timeout_s)
            failed = "TurnTimeout" if answer is None else answer.error
            results.append(TurnResult(conversation.id, turn.number, answer, failed))
    return results


def accuracy_phase(worker, samples):
    """All queued at once, answered one after the other; errors do not stop it, and there is no timer."""
    pending = [(name, worker.issue(body)) for name, body in samples]
    results = []
    for name, request in pending:
        request.finished.wait()
        results.append(TurnResult(name, 1, request.answer, request.answer.error))
    return results
