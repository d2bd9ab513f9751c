"""block_events.py - what vLLM publishes of a prompt's blocks, worked out apart from vtwin, and
a reader of what was published. Needs the zmq and msgpack of tools/fetch_clients."""
import hashlib

import msgpack
import zmq

GPT_OSS = "tests/cases/models/gpt-oss-20b.json"  # windows of 128 and full attention by turns
SIZE = 16


def cbor(x):
    """As cbor2 writes it, canonical."""
    def head(major, n):
        for code, size in ((24, 1), (25, 2), (26, 4)):
            if n < 24 or n < 1 << 8 * size:
                break
        return bytes([major << 5 | n]) if n < 24 else bytes([major << 5 | code]) + n.to_bytes(size, "big")
    if x is None:
        return b"\xf6"
    if isinstance(x, int):
        return head(0, x) if x >= 0 else head(1, -1 - x)
    if isinstance(x, bytes):
        return head(2, len(x)) + x
    if isinstance(x, str):
        return head(3, len(x.encode())) + x.encode()
    return head(4, len(x)) + b"".join(map(cbor, x))


def hashes(tokens, salt=None, seed="0"):
    """Of each full block, the last 64 bits; `salt` in the form that the release hashes."""
    parent, found = hashlib.sha256(cbor(seed)).digest(), []
    for at in range(0, len(tokens) - SIZE + 1, SIZE):
        extra = (salt,) if salt and at == 0 else None
        parent = hashlib.sha256(cbor((parent, tokens[at:at + SIZE], extra))).digest()
        found.append(int.from_bytes(parent[-8:], "big"))
    return found


def stored(tokens, chain, group, kind, kept, salt=None, window=None):
    """The event about all full blocks of a prompt, of which `kept` can be found again."""
    event = {
        "type": "BlockStored", "block_hashes": [chain[i] for i in kept],
        "parent_block_hash": None, "token_ids": tokens[:len(chain) * SIZE], "block_size": SIZE,
        "lora_id": None, "medium": "GPU", "lora_name": None,
        "extra_keys": [[salt] if salt and i == 0 else None for i in kept],
        "group_idx": group, "kv_cache_spec_kind": kind}
    if window:
        event["kv_cache_spec_sliding_window"] = window
    return event


def of_gpt_oss(tokens, minor, salt=None):
    """Both groups' events as 0.`minor` tells them. Before 0.29 everything stays findable, later
    the windows that who repeats the prompt needs. A salt has a tag in hashes since 0.31, never
    in events."""
    chain = hashes(tokens, ("cache_salt", salt) if salt and minor >= 31 else salt)
    every = range(len(chain))
    end = (len(tokens) - 1) // SIZE  # one token at least is computed again
    window = range(max(0, end - 8), end) if minor >= 29 else every
    return [stored(tokens, chain, 0, "sliding_window", window, salt, 128),
            stored(tokens, chain, 1, "full_attention", every, salt)]


def replay(endpoint, seconds=10):
    """All batches so far, as their publisher sends them again: (sequence, events, rank)."""
    context = zmq.Context()
    try:
        s = context.socket(zmq.DEALER)
        s.connect(endpoint)
        s.send_multipart([b"", (0).to_bytes(8, "big")])
        found = []
        while s.poll(seconds * 1000):
            *_, number, payload = s.recv_multipart()
            if not payload:
                return found
            stamp, events, rank = msgpack.unpackb(payload)
            assert stamp > 1.7e9, stamp
            found.append((int.from_bytes(number, "big"), events, rank))
        raise AssertionError("the replay does not end")
    finally:
        context.destroy(linger=0)
