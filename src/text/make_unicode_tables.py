#!/usr/bin/env python3
"""make_unicode_tables.py - writes unicode_tables.c, from what Python knows of Unicode.

Needs Python 3.11 (Unicode 14.0) and unicodedata2==16.0.0 from PyPI (Unicode 16.0).

Tokens must be those of Hugging Face's `tokenizers`, and that package knows two Unicodes:
  - its normalizer (unicode-normalization-alignments 0.1.12) that of 9.0: later marks
    have no combining class, later characters do not decompose;
  - its regular expressions (Oniguruma 6.9.10) that of 16.0, where PCRE2 10.42 knows 14.0:
    what came since is a list of ranges, to be added to \\p{...} of a pattern.
"""
import os
import sys
import unicodedata as u14

import unicodedata2 as u16

assert u14.unidata_version == "14.0.0", "run this with Python 3.11"
assert u16.unidata_version == "16.0.0", "pip install unicodedata2==16.0.0"

# Characters with a combining class or a decomposition that came after Unicode 9.0.
AFTER_9 = [
    (0x07FD, 0x07FD), (0x0898, 0x089F), (0x08CA, 0x08D3), (0x09FE, 0x09FE),
    (0x0C3C, 0x0C3C), (0x0D3B, 0x0D3C), (0x0EBA, 0x0EBA), (0x1715, 0x1715),
    (0x1ABF, 0x1ACE), (0x1DF6, 0x1DFA), (0xA82C, 0xA82C), (0x10D24, 0x10D27),
    (0x10EAB, 0x10EAC), (0x10F46, 0x10F50), (0x10F82, 0x10F85), (0x11070, 0x11070),
    (0x1133B, 0x1133B), (0x1145E, 0x1145E), (0x11839, 0x1183A), (0x11938, 0x11938),
    (0x1193D, 0x1193E), (0x11943, 0x11943), (0x119E0, 0x119E0), (0x11A34, 0x11A34),
    (0x11A47, 0x11A47), (0x11A99, 0x11A99), (0x11D42, 0x11D42), (0x11D44, 0x11D45),
    (0x11D97, 0x11D97), (0x16FF0, 0x16FF1), (0x1E130, 0x1E136), (0x1E2AE, 0x1E2AE),
    (0x1E2EC, 0x1E2EF),
]  # fmt: skip
HANGUL = range(0xAC00, 0xAC00 + 11172)
JAMO = list(range(0x1161, 0x1176)) + list(range(0x11A8, 0x11C3))  # vowels, tails
BLOCK = 256


def known_to_9(c):
    return not any(lo <= c <= hi for lo, hi in AFTER_9)


def decompositions():
    """One step each: (character, first, second or 0)."""
    rows = []
    for c in range(0x110000):
        text = u14.decomposition(chr(c))
        if text and "<" not in text and c not in HANGUL and known_to_9(c):
            parts = [int(p, 16) for p in text.split()]
            rows.append((c, parts[0], parts[1] if len(parts) > 1 else 0))
    return rows


def composes(c):
    """Whether a composer puts it together again."""
    return u14.normalize("NFC", chr(c)) == chr(c)


def seconds(pairs):
    """Of pairs by their second character: (second, index of the first with it), and an end."""
    out = []
    for i, (_, _, second) in enumerate(pairs):
        if not out or out[-1][0] != second:
            out.append((second, i))
    return out + [(0x110000, len(pairs))]


def single_runs(singles):
    """Runs of characters that each stand for another: (first, last, index of the first)."""
    return ranges((c, c - i) for i, (c, _, _) in enumerate(singles))


def classes():
    return {
        c: u14.combining(chr(c))
        for c in range(0x110000)
        if u14.combining(chr(c)) and known_to_9(c)
    }


def ranges(pairs):
    """[(key, value)] in order of key -> [(first, last, value)]."""
    out = []
    for c, value in pairs:
        if out and out[-1][1] == c - 1 and out[-1][2] == value:
            out[-1] = (out[-1][0], c, value)
        else:
            out.append((c, c, value))
    return out


def newer():
    return ranges(
        (c, u16.category(chr(c)))
        for c in range(0x110000)
        if u14.category(chr(c)) == "Cn" and u16.category(chr(c)) != "Cn"
    )


def flags(singles, pairs, ccc, new):
    """Two bits a character: 1 it may change or be moved by NFC, 2 newer than PCRE2's.

    Of a character that is two, bit 1 also says that NFC leaves them apart."""
    flag = {}
    for c, _, _ in singles + pairs:
        if not composes(c):
            flag[c] = 1
    for c in [second for c, _, second in pairs if composes(c)] + list(ccc) + JAMO:
        flag[c] = 1
    assert not any(flag.get(c, 0) for c, _, _ in pairs if composes(c))
    for first, last, _ in new:
        for c in range(first, last + 1):
            flag[c] = flag.get(c, 0) | 2
    return flag


def blocks(flag):
    seen, index = {}, []
    for start in range(0, max(flag) // BLOCK * BLOCK + BLOCK, BLOCK):
        cell = tuple(
            sum(flag.get(start + i + k, 0) << 2 * k for k in range(32))
            for i in range(0, BLOCK, 32)
        )
        index.append(seen.setdefault(cell, len(seen)))
    return index, list(seen)


def rows(items, width=88):
    line, out = "   ", []
    for item in items:
        if len(line) + len(item) + 2 > width:
            out.append(line)
            line = "   "
        line += " " + item + ","
    return "\n".join(out + [line])


def table(out, head, items):
    out.write(f"{head} = {{\n{rows(items)}\n}};\n\n")


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "unicode_tables.c")
    decomposed = decompositions()
    singles = [row for row in decomposed if not row[2]]
    pairs = sorted((row for row in decomposed if row[2]), key=lambda row: (row[2], row[1]))
    ccc = classes()
    new = newer()
    index, cells = blocks(flags(singles, pairs, ccc, new))
    assert len(cells) < 256
    with open(path, "w", encoding="ascii") as out:
        out.write(
            "/* unicode_tables.c - made by make_unicode_tables.py; do not edit. */\n"
            '#include "text/unicode.h"\n\n/* clang-format off */\n'
        )
        table(out, "const struct uni_pair uni_pairs[]",
              [f"{{{a:#x},{c:#x}}}" for c, a, _ in pairs])
        table(out, "const struct uni_second uni_seconds[]",
              [f"{{{b:#x},{i}}}" for b, i in seconds(pairs)])
        table(out, "const uint16_t uni_by_whole[]",
              [str(i) for i in sorted(range(len(pairs)), key=lambda i: pairs[i][0])])
        table(out, "const struct uni_range uni_single_runs[]",
              [f"{{{a:#x},{b:#x},{a - v}}}" for a, b, v in single_runs(singles)])
        table(out, "const uint32_t uni_singles[]", [f"{a:#x}" for _, a, _ in singles])
        table(out, "const struct uni_range uni_classes[]",
              [f"{{{a:#x},{b:#x},{v}}}" for a, b, v in ranges(sorted(ccc.items()))])
        table(out, "const struct uni_newer uni_newer[]",
              [f'{{{a:#x},{b:#x},"{v}"}}' for a, b, v in new])
        table(out, "const uint8_t uni_flag_block[]", [str(i) for i in index])
        table(out, "const uint64_t uni_flag_cells[]",
              [hex(word) if word else "0" for cell in cells for word in cell])
        out.write("/* clang-format on */\n\n")
        for name in ("pairs", "seconds", "single_runs", "classes", "newer"):
            out.write(f"const size_t uni_n_{name} = VT_COUNT(uni_{name});\n")
        out.write("const size_t uni_n_flag_blocks = VT_COUNT(uni_flag_block);\n")
    print(f"{path}: {len(decomposed)} decompositions, "
          f"{len(new)} newer ranges, {len(cells)} blocks", file=sys.stderr)


main()
