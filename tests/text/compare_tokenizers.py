#!/usr/bin/env python3
"""compare_tokenizers.py - the same ids and the same text as the `tokenizers` package?

  compare_tokenizers.py [-n TEXTS] [--seed N] [--cc-flags "..."] [TOKENIZER_JSON...]
  compare_tokenizers.py --every-character [TOKENIZER_JSON...]
  compare_tokenizers.py --variants [-n TEXTS]
  compare_tokenizers.py --golden OUT.jsonl TOKENIZER_JSON [-n TEXTS] [--seed N]

Makes random texts and compares, for each tokenizer: ids with and without special tokens
added, with special tokens taken as text; decoded text with and without special tokens;
text streamed token by token. The first difference is printed and ends it with status 1.
--every-character puts each character of Unicode into a few contexts instead.
--variants takes tests/cases/tokenizer/gpt2.json with other steps, behaviors, added tokens.
--golden writes texts and the package's own answers for tests/text/test_golden.c.
Without files: those of tests/cases. Needs the `tokenizers` package.
"""
import argparse
import json
import os
import random
import sys
import tempfile

import tokenizers
from tokenizers.decoders import DecodeStream

sys.dont_write_bytecode = True
from driver import ROOT, Driver, build  # noqa: E402

DEFAULT = ["tiny-qwen3/tokenizer.json", "tokenizer/gpt2.json", "tokenizer/llama3.json"]
BATCH = 2000
SPACES = [*" \t\n\r\x0b\x0c\x1c\x1f\x85\xa0", *map(chr, range(0x2000, 0x2010)),
          *"\u1680\u180e\u2028\u2029\u202f\u205f\u2060\u3000\ufeff"]  # fmt: skip
WORDS = """the of and to in is that it for was on are as with his they at be this have from
or had by hot word but what some we can out other were all there when up use your how said
an each she which do their time if will way about many then them write would like so these
her long make thing see him two has look more day could go come did number sound no most
people my over know water than call first who may down side been now find I'm don't we'll
they've it's I'd YOU'RE O'Neil Straße naïve café Ångström résumé größer İstanbul ΑΘΗΝΑ
Москва 東京 北京 서울 ภาษาไทย हिन्दी العربية עברית""".split()
CODE = ["def f(x):\n    return x + 1\n", "for (int i = 0; i < n; i++) {\n\ta[i]++;\n}\n",
        "if err != nil {\r\n\treturn err\r\n}", "<div class=\"a\">&amp;</div>", "a->b.c[0] = *p++;",
        "SELECT * FROM t WHERE x >= 10;", "#include <stdio.h>\n", "{\"k\": [1, 2.5, null]}",
        "https://example.org/a?b=c&d=e#f", "\\frac{1}{2} $x^2$", "0xdeadBEEF 1_000_000 3.14e-10"]
EMOJI = ["😀", "👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇩🇪", "❤️", "🫨", "1️⃣", "☃", "🧑🏿‍💻"]


def any_character(rng):
    while True:
        c = rng.randrange(0x110000)
        if not 0xD800 <= c < 0xE000:
            return chr(c)


def from_block(rng):
    """A few characters that are near each other."""
    start = rng.choice([0x20, 0xA0, 0x100, 0x300, 0x370, 0x400, 0x5D0, 0x600, 0x900, 0xE00, 0x1100,
                        0x1E00, 0x2000, 0x2100, 0x2460, 0x3040, 0x3130, 0x4E00, 0xA640, 0xAC00,
                        0xD7A0, 0xF900, 0xFB00, 0xFE20, 0xFF00, 0x10330, 0x11100, 0x11300, 0x113C0,
                        0x1D150, 0x1D400, 0x1E8D0, 0x1F300, 0x1F900, 0x1FA70, 0x20000, 0x2F800,
                        0x31350, 0xE0100])  # fmt: skip
    return "".join(chr(start + rng.randrange(64)) for _ in range(rng.randrange(1, 8)))


def marks(rng):
    """A letter under marks, in any order: what NFC is for."""
    base = rng.choice("aeiouAEOUcnsz가각\u1100\u1161\u11a8\u09c7\u0bc6\u1025\u05d0\u0915\u212b")
    pool = [*range(0x300, 0x370), 0x5B0, 0x5C1, 0x93C, 0x9BE, 0xBBE, 0x102E, 0x1161, 0x11A8,
            0x1DCE, 0x20D0, 0x3099, 0x309A, 0xFE20, 0x1D165, 0x1E8D0, 0x07FD, 0x08D3, 0x1ABF]
    return base + "".join(chr(rng.choice(pool)) for _ in range(rng.randrange(1, 6)))


def number(rng):
    kind = rng.randrange(4)
    if kind == 0:
        return str(rng.randrange(10 ** rng.randrange(1, 20)))
    if kind == 1:
        return f"{rng.random() * 10 ** rng.randrange(8):.{rng.randrange(6)}f}"
    if kind == 2:
        return "".join(rng.choice("²³¹½¼Ⅷ٣٤५६𝟘𝟙０１①") for _ in range(rng.randrange(1, 6)))
    return f"{rng.randrange(24):02}:{rng.randrange(60):02}"


def piece(rng, special):
    kind = rng.randrange(13)
    if kind < 3:
        return rng.choice(WORDS)
    if kind == 3:
        return "".join(rng.choice(SPACES) for _ in range(rng.randrange(1, 6)))
    if kind == 4:
        return rng.choice(" \n\t") * rng.randrange(1, 20)
    if kind == 5:
        return number(rng)
    if kind == 6:
        return rng.choice(CODE)
    if kind == 7:
        return rng.choice(EMOJI)
    if kind == 8:
        return from_block(rng)
    if kind == 9:
        return marks(rng)
    if kind == 10:
        text = rng.choice(special) if special else "<|x|>"
        return text[: rng.randrange(len(text))] if rng.random() < 0.2 else text
    if kind == 11:
        return "".join(chr(rng.randrange(0x20, 0x7F)) for _ in range(rng.randrange(1, 12)))
    return "".join(any_character(rng) for _ in range(rng.randrange(1, 6)))


def random_text(rng, special):
    pieces = [piece(rng, special) for _ in range(int(rng.expovariate(1 / 8)))]
    joint = rng.choice(["", " ", " "])
    return joint.join(pieces)


def every_character():
    for c in range(0x110000):
        if not 0xD800 <= c < 0xE000:
            x = chr(c)
            yield f"a{x}b '{x} 1{x}2 {x}{x}  {x}\n{x}'{x}e e\u0323{x}\u0301"


def split(pattern, behavior="Isolated", invert=False):
    kind = "String" if len(pattern) == 1 else "Regex"
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def added(content, rng):
    flags = ("single_word", "lstrip", "rstrip", "normalized", "special")
    return {"id": 0, "content": content, **{f: rng.random() < 0.4 for f in flags}}


def variants(seed):
    """(name, tokenizer.json) of all that the three families do not use."""
    rng = random.Random(seed)
    with open(os.path.join(ROOT, "tests/cases/tokenizer/gpt2.json"), encoding="utf-8") as f:
        text = f.read()
    base = json.loads(text)
    bytes_only = dict(base["pre_tokenizer"], use_regex=False)

    def one(name, steps=(), **changes):
        tree = json.loads(text)
        tree["model"].update(changes.pop("model", {}))
        if steps:
            tree["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [*steps, bytes_only]}
        tree.update(changes)
        return name, tree

    yield one("prefix space", pre_tokenizer=dict(base["pre_tokenizer"], add_prefix_space=True))
    yield one("no pattern", pre_tokenizer=bytes_only)
    for each in (False, True):
        yield one(f"digits {each}", [{"type": "Digits", "individual_digits": each}])
    for behavior in ("Isolated", "Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext"):
        for pattern in (r"\p{N}", r"\s+", " ", r"[a-e]*", r"(?<=\S)(?=[A-Z])", r"^|$"):
            for invert in (False, True):
                yield one(f"{behavior} {pattern} {invert}", [split(pattern, behavior, invert)])
    yield one("DeepSeek", [
        split(r"\p{N}{1,3}"), split("[一-龥぀-ゟ゠-ヿ]+"),
        split(r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?"
              r"[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"),
    ])  # fmt: skip
    yield one("words", [split(r"\w+|[^\w\s]+"), split(r"\d+"), split(r"\P{L}")])
    few = {t: i for t, i in base["model"]["vocab"].items() if len(t) > 1 or t < "\x7f"}
    for unk in (None, "the"):
        for fuse in (False, True):
            model = {"vocab": few, "merges": [], "unk_token": unk, "fuse_unk": fuse}
            yield one(f"bytes missing, {unk} {fuse}", model=model, added_tokens=[])
    # None starts with a space: the package panics where one with rstrip stands before it.
    contents = ["foo", "bar ", "<x>", "<x", "<xy>", "é", "e\u0301x", "a\u0323", "ab", "_", "日本"]
    for k in range(12):
        tokens = [added(c, rng) for c in rng.sample(contents, 6)]
        yield one(f"added {k}", added_tokens=tokens, normalizer=rng.choice([None, {"type": "NFC"}]))


class Reference:
    """The package's answers."""

    def __init__(self, path):
        self.tok = tokenizers.Tokenizer.from_file(path)
        self.tok.no_truncation()
        self.tok.no_padding()
        self.special = [t.content for t in self.tok.get_added_tokens_decoder().values()]

    def ids(self, texts, flags):
        self.tok.encode_special_tokens = bool(flags & 2)
        out = self.tok.encode_batch_fast(texts, add_special_tokens=bool(flags & 1))
        self.tok.encode_special_tokens = False
        return [e.ids for e in out]

    def texts(self, id_lists, flags):
        return self.tok.decode_batch(id_lists, skip_special_tokens=bool(flags))

    def streams(self, id_lists, flags):
        out = []
        for ids in id_lists:
            stream = DecodeStream(skip_special_tokens=bool(flags))
            out.append([stream.step(self.tok, i) or "" for i in ids])
        return out


def differ(what, inputs, want, got):
    for given, a, b in zip(inputs, want, got):
        if a != b:
            print(f"{what} differ for {given!r}:\n  tokenizers: {a}\n  ours:       {b}")
            return True
    return False


def compare(reference, ours, texts, rng, size):
    """None if all is equal, else what differs was printed."""
    for flags in (0, 1, 2):
        want = reference.ids(texts, flags)
        if differ(f"ids (flags {flags})", texts, want, ours.ids(texts, flags)):
            return False
    # Ids of texts decode to texts; random ids also to bytes that are none.
    lists = want + [[rng.randrange(size + 5) for _ in range(rng.randrange(12))] for _ in texts]
    for flags in (0, 1):
        if differ("texts", lists, reference.texts(lists, flags), ours.texts(lists, flags)):
            return False
        few = lists[:: 1 + len(lists) // 400]
        if differ("streams", few, reference.streams(few, flags), ours.streams(few, flags)):
            return False
    return True


def batches(texts):
    batch = []
    for text in texts:
        batch.append(text)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def run_variants(program, arguments):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tokenizer.json")
        for name, tree in variants(arguments.seed):
            with open(path, "w", encoding="utf-8") as f:
                json.dump(tree, f)
            if not run(program, path, arguments, name):
                print(f"in: {name}")
                return False
    return True


def run(program, path, arguments, name=None):
    rng = random.Random(arguments.seed)
    reference, ours = Reference(path), Driver(program, path)
    size = reference.tok.get_vocab_size()
    if arguments.every_character:
        texts = every_character()
    else:
        texts = (random_text(rng, reference.special) for _ in range(arguments.n))
    n = characters = 0
    for batch in batches(texts):
        if not compare(reference, ours, batch, random.Random(n), size):
            return False
        n += len(batch)
        characters += sum(map(len, batch))
    ours.close()
    print(f"{name or os.path.relpath(path, ROOT)}: {n} texts, {characters} characters: all equal")
    return True


def golden(arguments):
    rng = random.Random(arguments.seed)
    reference = Reference(arguments.files[0])
    texts = ["", " "] + [random_text(rng, reference.special) for _ in range(arguments.n)]
    answers = [reference.ids(texts, flags) for flags in (0, 1, 2)]
    with open(arguments.golden, "w", encoding="utf-8") as out:
        for i, text in enumerate(texts):
            plain, added, as_text = (a[i] for a in answers)
            decoded = reference.texts([plain], 1)[0]
            row = {"text": text, "ids": plain}
            if added != plain and i < 10:
                row["with_special"] = added
            if as_text != plain:
                row["special_as_text"] = as_text
            if decoded != text:
                row["decoded"] = decoded
            out.write(json.dumps(row, separators=(",", ":"), ensure_ascii=False) + "\n")
    print(f"{arguments.golden}: {len(texts)} texts by tokenizers {tokenizers.__version__}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("-n", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cc-flags", default="-O2")
    parser.add_argument("--every-character", action="store_true")
    parser.add_argument("--variants", action="store_true")
    parser.add_argument("--golden")
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    if arguments.golden:
        return golden(arguments)
    program = build(arguments.cc_flags.split())
    print(f"tokenizers {tokenizers.__version__}, seed {arguments.seed}")
    if arguments.variants:
        return 0 if run_variants(program, arguments) else 1
    files = arguments.files or [os.path.join(ROOT, "tests/cases", f) for f in DEFAULT]
    return 0 if all(run(program, f, arguments) for f in files) else 1


if __name__ == "__main__":
    sys.exit(main())
