#!/usr/bin/env python3
"""compare_chats.py - the same prompts as Jinja makes of the models' own chat templates?

  compare_chats.py [-n CHATS] TEMPLATE.jinja...

For each template that src/text knows, random chats are rendered by both and compared; the
others are listed with the reason why they are refused. Needs jinja2.
"""
import argparse
import json
import os
import random
import sys
import tempfile

from jinja2.sandbox import ImmutableSandboxedEnvironment

sys.dont_write_bytecode = True
from driver import ROOT, Driver, build  # noqa: E402

TOKENIZER = os.path.join(ROOT, "tests/cases/tiny-qwen3/tokenizer.json")
DAY = "09 Feb 2031"
PARTS = ["Hello", " there", "\n", "\n\n", "<think>", "</think>", "\u3000", "\x1c", "\t", "é",
         "<tool_response>", "</tool_response>", "ok", '"quoted\\"', "\x07", "", " ", "日本"]


def environment():
    """Jinja as the transformers library sets it up."""
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    env.filters["tojson"] = lambda x, **_: json.dumps(x, ensure_ascii=False)
    env.globals["strftime_now"] = lambda form: DAY
    return env


def content(rng):
    return "".join(rng.choice(PARTS) for _ in range(rng.randrange(6)))


def random_chat(rng):
    roles = ["system"] if rng.random() < 0.5 else []
    for _ in range(rng.randrange(1, 7)):
        roles.append(rng.choice(["user", "user", "assistant", "assistant", "tool", "system"]))
    return [{"role": r, "content": content(rng)} for r in roles]


def request(chat, generate, thinking):
    texts = [DAY] + [m[key] for m in chat for key in ("role", "content")]
    data = b"".join(t.encode() + b"\0" for t in texts)
    return ("c", generate | (0 if thinking else 2), data)


def open_driver(program, template, folder):
    with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as f:
        json.dump({"bos_token": "<|endoftext|>", "chat_template": template}, f)
    return Driver(program, folder)


def compare(program, path, arguments, folder):
    with open(path, encoding="utf-8") as f:
        source = f.read()
    ours = open_driver(program, source, folder)
    kind = json.loads(ours.ask([("f", 0, b"")])[0])["chat"]
    name = os.path.basename(path)
    if not kind:
        try:
            ours.ask([request([{"role": "user", "content": "x"}], 0, True)])
        except ValueError as problem:
            print(f"{name}: refused: {str(problem).split(': ', 1)[1]}")
        ours.close()
        return True
    template = environment().from_string(source)
    rng = random.Random(arguments.seed)
    for _ in range(arguments.n):
        chat, generate, thinking = random_chat(rng), rng.randrange(2), rng.random() < 0.7
        extra = {} if thinking else {"enable_thinking": False}
        want = template.render(
            messages=chat, add_generation_prompt=bool(generate), bos_token="<|endoftext|>", **extra
        )
        got = ours.ask([request(chat, generate, thinking)])[0].decode()
        if want != got:
            print(f"{name} ({kind}): differs for {chat}, generate {generate}, "
                  f"thinking {thinking}:\n  jinja: {want!r}\n  ours:  {got!r}")
            return False
    ours.close()
    print(f"{name}: {kind}: {arguments.n} chats equal")
    return True


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("-n", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cc-flags", default="-O2")
    parser.add_argument("templates", nargs="+")
    arguments = parser.parse_args()
    program = build(arguments.cc_flags.split())
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(TOKENIZER, os.path.join(folder, "tokenizer.json"))
        good = [compare(program, path, arguments, folder) for path in arguments.templates]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
