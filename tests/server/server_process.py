"""A server under test: started on a free port, stopped with the signal that systemd sends; plain requests and metrics."""

import collections
import http.client
import json
import re
import select
import signal
import subprocess
import threading
import time

STARTED = re.compile(r"listening on (http://\S+?):(\d+)")


class ServerProcess:
    """`with ServerProcess(program, model, "--flag", ...) as server:` leaves the block with the server stopped; `exit_code` and `log` then
    tell how. A server that does not come up raises with what it printed."""

    def __init__(self, program, model, *flags, start_timeout_s=120, env=None, cwd=None):
        """Without a model, the one that comes along."""
        command = [program, "serve", *([model] if model else []), "--port", "0", *flags]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
                                        env=env, cwd=cwd)
        self.lines = collections.deque(maxlen=20000)
        self.port = None
        self.exit_code = None
        self._listening = threading.Event()
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        deadline = time.monotonic() + start_timeout_s
        self._listening.wait(start_timeout_s)
        while self.port is not None and time.monotonic() < deadline and self.process.poll() is None:
            try:
                if self.get("/health").status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.02)
        self.process.kill()
        self.process.wait()
        self._reader.join()
        raise RuntimeError(f"the server did not come up in {start_timeout_s} s:\n{self.log}")

    def _read_log(self):
        for line in self.process.stderr:
            self.lines.append(line)
            started = STARTED.search(line)
            if started and self.port is None:
                self.port = int(started[2])
                self._listening.set()
        self._listening.set()

    @property
    def log(self):
        return "".join(self.lines)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self, timeout_s=60):
        """SIGTERM; the exit code. A server that does not end is killed, with exit code None."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.exit_code = self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join()
        self.process.stderr.close()
        return self.exit_code

    def request(self, method, path, body=None, headers=None, timeout_s=60):
        """One request on a connection of its own. `body` other than bytes is sent as JSON."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json", **(headers or {})} if body is not None else headers or {})
            answer = connection.getresponse()
            return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def post(self, path, body, **options):
        return self.request("POST", path, body, **options)

    def metrics(self, **options):
        """{'name' or 'name{labels}': value} of every sample."""
        samples = {}
        for line in self.get("/metrics", **options).body.decode().splitlines():
            match = re.fullmatch(r"([a-zA-Z_:][a-zA-Z0-9_:]*(?:\{.*\})?) (\S+)", line)
            if match:
                samples[match[1]] = float(match[2])
        return samples

    def rss_bytes(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * 4096


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)


def readable(socket_, seconds):
    """Whether a socket has something to read (the end of the connection included) within that time."""
    return bool(select.select([socket_], [], [], seconds)[0])
