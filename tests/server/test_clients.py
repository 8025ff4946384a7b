"""Clients from PyPI, each through a streamed conversation of several turns with tool calls, and through the errors that agents act on. They live
in an environment of their own (pip_environment.py): used where it is there, made where ESPALIER_INSTALL_CLIENTS=1 says so, else everything is
skipped with the reason. Usage: test_clients.py PROGRAM SOURCE_DIR"""

import asyncio
import importlib.metadata
import json
import os
import pathlib
import re
import sys
import tempfile
import textwrap
import unittest

import pip_environment
from server_process import ServerProcess

PROGRAM = sys.argv[1]
SOURCE = pathlib.Path(sys.argv[2])
MODEL = str(SOURCE / "models/espalier-nano")
KEY = "a key with 32 characters in it ok"
NAME = "espalier-nano"

SYSTEM = "You are a careful programmer who works in a shell. Each turn you run one command with the bash tool."
TASK = "The total of our ledger is off by a few cents now and then. Find the cause in ledger/parse.py and repair it."
OUTPUT = "<returncode>0</returncode>\n<output>\n.:\nREADME.md\nledger\ntests\n</output>"
BASH = {"type": "function", "function": {"name": "bash", "description": "Run a command and return its output.", "parameters": {
    "type": "object", "properties": {"command": {"type": "string", "description": "The command to run"}}, "required": ["command"]}}}
TURNS = 4


def setUpModule():
    global server
    server = ServerProcess(PROGRAM, MODEL, "--api-key", KEY, "--served-model-name", NAME, "--context", "16384")


def tearDownModule():
    server.stop()


def base_url():
    return server.url + "/v1"


def too_long():
    return [{"role": "user", "content": "word " * 20000}]


def documented_settings(client):
    """The first indented block below the client's heading in docs/agents.md: what people copy is what is tested."""
    section = (SOURCE / "docs/agents.md").read_text().split(f"\n## {client}\n")[1].split("\n## ")[0]
    return textwrap.dedent(re.search(r"(?:^(?: {4}.*)?\n)*^ {4}.*\n(?:^(?: {4}.*)?\n)*", section, re.M)[0])


class Client(unittest.TestCase):
    def assert_command(self, name, arguments):
        self.assertEqual(name, "bash")
        self.assertIsInstance(json.loads(arguments), dict)


class OpenAi(Client):
    def setUp(self):
        import openai

        self.openai = openai
        self.client = openai.OpenAI(base_url=base_url(), api_key=KEY, max_retries=0)

    def test_a_streamed_conversation_with_tool_calls(self):
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": TASK}]
        cached = []
        for _ in range(TURNS):
            with self.client.chat.completions.stream(model=NAME, messages=messages, tools=[BASH], tool_choice="required", temperature=0,
                                                     max_tokens=300, stream_options={"include_usage": True}) as stream:
                fragments = [event for event in stream if event.type == "tool_calls.function.arguments.delta"]
                answer = stream.get_final_completion()
            self.assertGreater(len(fragments), 0)
            message = answer.choices[0].message
            self.assertEqual(answer.choices[0].finish_reason, "tool_calls")
            self.assert_command(message.tool_calls[0].function.name, message.tool_calls[0].function.arguments)
            cached.append(answer.usage.prompt_tokens_details.cached_tokens / answer.usage.prompt_tokens)
            messages.append(message.model_dump(exclude_none=True, include={"role", "content", "tool_calls"}))
            messages += [{"role": "tool", "tool_call_id": call.id, "content": OUTPUT} for call in message.tool_calls]
        self.assertTrue(all(share > 0.5 for share in cached[1:]), cached)

    def test_streamed_and_whole_answers_are_the_same(self):
        request = {"model": NAME, "messages": [{"role": "user", "content": TASK}], "tools": [BASH], "temperature": 0, "max_tokens": 200}
        whole = self.client.chat.completions.create(**request)
        with self.client.chat.completions.stream(**request) as stream:
            streamed = stream.get_final_completion()
        self.assertEqual(streamed.choices[0].message.content, whole.choices[0].message.content)
        self.assertEqual([call.function.arguments for call in streamed.choices[0].message.tool_calls or []],
                         [call.function.arguments for call in whole.choices[0].message.tool_calls or []])

    def test_several_at_once_from_the_asynchronous_client(self):
        async def ask(client, text):
            messages = [{"role": "user", "content": text}]
            stream = await client.chat.completions.create(model=NAME, messages=messages, stream=True, temperature=0, max_tokens=30)
            return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

        async def ask_all():
            async with self.openai.AsyncOpenAI(base_url=base_url(), api_key=KEY, max_retries=0) as client:
                return await asyncio.gather(*(ask(client, f"Say {number}") for number in (1, 2, 3, 1, 2, 3)))

        answers = asyncio.run(ask_all())
        self.assertEqual(answers[:3], answers[3:])

    def test_models_and_completions(self):
        self.assertEqual([model.id for model in self.client.models.list()], [NAME])
        answer = self.client.completions.create(model=NAME, prompt=["def main():", "import os"], max_tokens=8, temperature=0)
        self.assertEqual([choice.index for choice in answer.choices], [0, 1])
        self.assertEqual(answer.usage.completion_tokens, 16)

    def test_a_stream_left_early_leaves_the_client_usable(self):
        for _ in range(3):
            stream = self.client.chat.completions.create(model=NAME, messages=[{"role": "user", "content": "hello"}], stream=True, max_tokens=4000,
                                                         extra_body={"ignore_eos": True})
            next(iter(stream))
            stream.close()
        self.assertTrue(self.client.chat.completions.create(model=NAME, messages=[{"role": "user", "content": "hello"}], max_tokens=2).choices)

    def test_errors_are_those_that_the_client_knows(self):
        wrong = self.openai.OpenAI(base_url=base_url(), api_key="wrong", max_retries=0)
        with self.assertRaises(self.openai.AuthenticationError):
            wrong.models.list()
        with self.assertRaises(self.openai.BadRequestError) as raised:
            self.client.chat.completions.create(model=NAME, messages=too_long())
        self.assertEqual(raised.exception.code, "context_length_exceeded")
        self.assertIn("16384", raised.exception.message)
        with self.assertRaises(self.openai.BadRequestError) as raised:
            self.client.chat.completions.create(model=NAME, messages=[{"role": "user", "content": "hello"}], temperature=-1)
        self.assertEqual(raised.exception.param, "temperature")
        with self.assertRaises(self.openai.NotFoundError):
            self.client.embeddings.create(model=NAME, input="hello")


class LiteLlm(Client):
    def setUp(self):
        import litellm

        self.litellm = litellm
        self.options = {"model": "openai/" + NAME, "api_base": base_url(), "api_key": KEY, "temperature": 0, "max_tokens": 300, "num_retries": 0}

    def test_a_streamed_conversation_with_tool_calls(self):
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": TASK}]
        for _ in range(TURNS):
            chunks = list(self.litellm.completion(messages=messages, tools=[BASH], tool_choice="required", stream=True,
                                                  stream_options={"include_usage": True}, **self.options))
            answer = self.litellm.stream_chunk_builder(chunks, messages=messages)
            message = answer.choices[0].message
            self.assertEqual(answer.choices[0].finish_reason, "tool_calls")
            self.assert_command(message.tool_calls[0].function.name, message.tool_calls[0].function.arguments)
            messages.append(message.model_dump())  # as it is: with null fields and all
            messages += [{"role": "tool", "tool_call_id": call.id, "content": OUTPUT} for call in message.tool_calls]
        self.assertGreater(answer.usage.prompt_tokens_details.cached_tokens, answer.usage.prompt_tokens / 2)

    def test_a_prompt_that_is_too_long_is_the_error_that_agents_compact_on(self):
        with self.assertRaises(self.litellm.exceptions.ContextWindowExceededError):
            self.litellm.completion(messages=too_long(), **self.options)

    def test_a_wrong_key_is_an_authentication_error(self):
        with self.assertRaises(self.litellm.exceptions.AuthenticationError):
            self.litellm.completion(messages=[{"role": "user", "content": "hello"}], **{**self.options, "api_key": "wrong"})


class MiniSweAgent(Client):
    """The agent with its own LiteLLM model, its prompts and its parsing of calls. Its environment only says what a shell might: a very small
    model writes commands that nobody should run."""

    class Environment:
        def __init__(self, num_commands):
            self.left = num_commands
            self.commands = []
            self.config = None

        def execute(self, action, cwd=""):
            from minisweagent.exceptions import Submitted

            self.commands.append(action["command"])
            self.left -= 1
            if self.left == 0:
                raise Submitted({"role": "exit", "content": "done", "extra": {"exit_status": "Submitted", "submission": "done"}})
            return {"output": "README.md\nledger\ntests\n", "returncode": 0, "exception_info": ""}

        def get_template_vars(self, **kwargs):
            return {"system": "Linux", "release": "6", "version": "1", "machine": "x86_64", **kwargs}

        def serialize(self):
            return {}

    def agent(self, model_class):
        import yaml
        from minisweagent.agents.default import DefaultAgent
        from minisweagent.config import builtin_config_dir

        config = yaml.safe_load((builtin_config_dir / "mini.yaml").read_text())
        ours = yaml.safe_load(documented_settings("mini-swe-agent"))["model"]
        self.assertTrue(ours["model_kwargs"]["api_base"].endswith("/v1"))
        of_this_test = {"api_base": base_url(), "api_key": KEY, "max_tokens": 300, "tool_choice": "required"}
        model = model_class(**{**config["model"], **ours, "model_kwargs": {**config["model"].get("model_kwargs", {}), **ours["model_kwargs"], **of_this_test}})
        return DefaultAgent(model, self.Environment(TURNS), system_template=config["agent"]["system_template"],
                            instance_template=config["agent"]["instance_template"], step_limit=3 * TURNS)

    def run_agent(self, model_class):
        agent = self.agent(model_class)
        self.assertEqual(agent.run(TASK)["exit_status"], "Submitted")
        self.assertEqual(len(agent.env.commands), TURNS)
        self.assertGreaterEqual(sum(message["role"] == "tool" for message in agent.messages), TURNS - 1)
        return agent.env.commands

    def test_an_agent_works_through_a_task_streamed_and_not(self):
        import litellm
        from minisweagent.models.litellm_model import LitellmModel

        class Streamed(LitellmModel):
            def _query(self, messages, **kwargs):
                return litellm.stream_chunk_builder(list(super()._query(messages, stream=True, **kwargs)), messages=messages)

        self.assertEqual(self.run_agent(Streamed), self.run_agent(LitellmModel))


class LangChain(Client):
    def setUp(self):
        import langchain_openai

        self.model = langchain_openai.ChatOpenAI(model=NAME, base_url=base_url(), api_key=KEY, temperature=0, max_tokens=300,
                                                 max_retries=0, stream_usage=True)

    def test_a_streamed_conversation_with_tool_calls(self):
        from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage

        model = self.model.bind_tools([BASH], tool_choice="required")
        messages = [SystemMessage(SYSTEM), HumanMessage(TASK)]
        for _ in range(TURNS):
            answer = None
            for chunk in model.stream(messages):
                answer = chunk if answer is None else answer + chunk
            self.assertFalse(answer.invalid_tool_calls)
            for call in answer.tool_calls:
                self.assert_command(call["name"], json.dumps(call["args"]))
            self.assertTrue(answer.tool_calls)
            messages += [answer] + [ToolMessage(OUTPUT, tool_call_id=call["id"]) for call in answer.tool_calls]
        self.assertGreater(answer.usage_metadata["input_token_details"]["cache_read"], answer.usage_metadata["input_tokens"] / 2)

    def test_plain_text_streamed_and_whole(self):
        whole = self.model.invoke("hello").content
        self.assertEqual("".join(chunk.content for chunk in self.model.stream("hello")), whole)


def go_on_in_the_environment():
    """Starts this file again under the interpreter that has the packages."""
    install = os.environ.get("ESPALIER_INSTALL_CLIENTS") == "1"
    try:
        python = pip_environment.python_of(pathlib.Path(__file__).with_name("requirements.txt"), install)
    except pip_environment.NotInstalled as reason:
        print(f"skipped: {reason}\nOK (skipped=1)")
        sys.exit(0)
    # Nothing of what these packages would like to look up elsewhere.
    quiet = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False", "HF_HUB_OFFLINE": "1", "LANGSMITH_TRACING": "false",
             "MSWEA_SILENT_STARTUP": "1", "MSWEA_GLOBAL_CONFIG_DIR": tempfile.gettempdir(), "NO_PROXY": "127.0.0.1,localhost"}
    os.execve(python, [python, "-B", "-W", "ignore", *sys.argv], {**os.environ, **quiet, "ESPALIER_CLIENTS_PYTHON": python})


if __name__ == "__main__":
    if "ESPALIER_CLIENTS_PYTHON" not in os.environ:
        go_on_in_the_environment()
    import litellm

    litellm.suppress_debug_info = True
    print(", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("openai", "litellm", "mini-swe-agent", "langchain-openai")))
    unittest.main(argv=sys.argv[:1], verbosity=2)
