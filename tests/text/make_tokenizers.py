#!/usr/bin/env python3
"""make_tokenizers.py - tokenizer.json files of the families that src/text reads.

  make_tokenizers.py train OUT_DIR TEXT_FILES...    small ones of each family
  make_tokenizers.py tiktoken FAMILY FILE OUT       from a tiktoken file (base64 token, rank)
  make_tokenizers.py gpt2 ENCODER_JSON VOCAB_BPE OUT

Needs the `tokenizers` package. The patterns, normalizers and special tokens are those of
the published models; `train` made tests/cases/tokenizer/{gpt2,llama3}.json from docs/*.md.
"""
import base64
import json
import sys

from tokenizers import (
    AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
    trainers,
)  # fmt: skip

CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LETTERS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
PATTERNS = {
    "qwen": rf"{CONTRACTIONS}|{LETTERS}|\p{{N}}|{REST}",
    "llama3": rf"{CONTRACTIONS}|{LETTERS}|\p{{N}}{{1,3}}|{REST}",
    "o200k": rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{CONTRACTIONS}?"
    rf"|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{CONTRACTIONS}?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}
SPECIAL = {
    "gpt2": ["<|endoftext|>"],
    "qwen": ["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
    "llama3": ["<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>",
               "<|reserved_special_token_1|>", "<|start_header_id|>", "<|end_header_id|>",
               "<|eot_id|>"],
    "o200k": ["<|startoftext|>", "<|endoftext|>", "<|return|>"],
}  # fmt: skip
PLAIN = {"qwen": ["<think>", "</think>", "<tool_call>", "</tool_call>"]}


def dress(tok, family):
    """Everything but the model, as the family's published tokenizer.json has it."""
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=family == "gpt2")
    if family == "gpt2":
        tok.pre_tokenizer = byte_level
    else:
        tok.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(PATTERNS[family]), "isolated"), byte_level]
        )
    if family == "qwen":
        tok.normalizer = normalizers.NFC()
    tok.decoder = decoders.ByteLevel()
    tok.post_processor = processors.ByteLevel(trim_offsets=False)


def finish(tok, family, out):
    tok.add_special_tokens([AddedToken(t, special=True) for t in SPECIAL[family]])
    tok.add_tokens([AddedToken(t, normalized=False) for t in PLAIN.get(family, [])])
    if family == "llama3":
        bos = SPECIAL[family][0]
        tok.post_processor = processors.Sequence([
            processors.ByteLevel(trim_offsets=True, add_prefix_space=False),
            processors.TemplateProcessing(
                single=f"{bos} $A", pair=f"{bos} $A {bos}:1 $B:1",
                special_tokens=[(bos, tok.token_to_id(bos))],
            ),
        ])  # fmt: skip
    tree = json.loads(tok.to_str())
    with open(out, "w", encoding="utf-8") as file:
        json.dump(tree, file, ensure_ascii=False, separators=(",", ":"))
        file.write("\n")


def train(out_dir, files):
    for family, size in (("gpt2", 900), ("llama3", 1200)):
        tok = Tokenizer(models.BPE(ignore_merges=family == "llama3"))
        dress(tok, family)
        trainer = trainers.BpeTrainer(
            vocab_size=size, show_progress=False, special_tokens=[],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        )
        tok.train(files, trainer)
        finish(tok, family, f"{out_dir}/{family}.json")


def byte_characters():
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    out = {b: chr(b) for b in plain}
    for b in range(256):
        out.setdefault(b, chr(256 + len(out) - len(plain)))
    return out


def split_token(ranks, token):
    """The two parts that the token was merged of."""
    parts = [bytes([b]) for b in token]
    while len(parts) > 2:
        pairs = [(ranks.get(parts[i] + parts[i + 1], 1 << 60), i) for i in range(len(parts) - 1)]
        rank, i = min(pairs)
        if rank >= ranks[token]:
            return None
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    return parts


def from_tiktoken(family, path, out):
    ranks = {}
    with open(path, "rb") as file:
        for line in file:
            if line.strip():
                token, rank = line.split()
                ranks[base64.b64decode(token)] = int(rank)
    spell = byte_characters()
    text = {t: "".join(spell[b] for b in t) for t in ranks}
    merges = []
    for token in sorted(ranks, key=ranks.get):
        parts = split_token(ranks, token) if len(token) > 1 else None
        if parts:
            merges.append((text[parts[0]], text[parts[1]]))
    vocab = {text[t]: rank for t, rank in ranks.items()}
    tok = Tokenizer(models.BPE(vocab, merges, ignore_merges=family != "qwen"))
    dress(tok, family)
    finish(tok, family, out)


def from_gpt2(encoder, merges, out):
    tok = Tokenizer(models.BPE.from_file(encoder, merges))
    dress(tok, "gpt2")
    finish(tok, "gpt2", out)


def main(arguments):
    if len(arguments) > 2 and arguments[0] == "train":
        train(arguments[1], arguments[2:])
    elif len(arguments) == 4 and arguments[0] == "tiktoken":
        from_tiktoken(*arguments[1:])
    elif len(arguments) == 4 and arguments[0] == "gpt2":
        from_gpt2(*arguments[1:])
    else:
        sys.exit(__doc__)


main(sys.argv[1:])
