"""kv_events.py URL EVENTS REPLAY BLOCKS - block events of the twin, read with vLLM's own decoder and
judged by vLLM's own block hashes. BLOCKS is the size of the pool; PYTHONHASHSEED must be the engine's."""
import sys

import msgspec
import zmq
import zmq.asyncio
from vllm.distributed import kv_events
from vllm.utils.hashing import sha256_cbor
from vllm.v1.core import kv_cache_utils

from client import COMPLETIONS, Server, completion, expect, run

SIZE = 16
decode = msgspec.msgpack.Decoder(kv_events.KVEventBatch).decode
kv_cache_utils.init_none_hash(sha256_cbor)
# What is hashed has a tag since 0.31; events tell it bare.
TAG = (lambda salt: ("cache_salt", salt)) if hasattr(kv_cache_utils, "to_event_extra_keys") else (lambda salt: salt)


class Listener:
    """What was published since it was last asked."""

    def __init__(self, events):
        self.socket = zmq.asyncio.Context.instance().socket(zmq.SUB)
        self.socket.connect(events)
        self.socket.subscribe(b"")
        self.raw = {} # number of the batch: its bytes
        self.held = None # hashes in the cache, known since it was last cleared

    async def events(self, patience=1000):
        found = []
        while await self.socket.poll(patience):
            _, number, payload = await self.socket.recv_multipart()
            self.raw[int.from_bytes(number, "big")] = payload
            batch = decode(payload)
            expect(batch.ts > 1.7e9 and not batch.data_parallel_rank, batch)
            found += batch.events
            for event in batch.events:
                self.follow(event)
        return found

    def follow(self, event):
        if type(event) is kv_events.AllBlocksCleared:
            self.held = set()
        elif self.held is not None:
            hashes = set(event.block_hashes)
            known = hashes & self.held
            if type(event) is kv_events.BlockStored:
                expect(not known, "stored twice", event)
                self.held |= hashes
            else:
                expect(known == hashes, "removed, but was not there", event)
                self.held -= hashes


def hashes(tokens, salt=None):
    """Of each full block, short as they are published."""
    parent, found = None, []
    for at in range(0, len(tokens) - SIZE + 1, SIZE):
        extra = (TAG(salt),) if salt and at == 0 else None
        parent = kv_cache_utils.hash_block_tokens(sha256_cbor, parent, tokens[at:at + SIZE], extra)
        found.append(kv_cache_utils.maybe_convert_block_hash(parent))
    return found


def check_stored(events, tokens, salt=None, known=0):
    """These events tell exactly of the full blocks of TOKENS beyond the KNOWN first."""
    expect(all(type(e) is kv_events.BlockStored for e in events), events)
    want = hashes(tokens, salt)
    expect([h for e in events for h in e.block_hashes] == want[known:], "hashes", events, want)
    expect([t for e in events for t in e.token_ids] == tokens[known * SIZE:len(want) * SIZE], "tokens")
    parent = want[known - 1] if known else None
    for e in events:
        expect(e.parent_block_hash == parent and e.block_size == SIZE and e.medium == "GPU", e)
        expect(e.lora_id is None and e.lora_name is None, e)
        expect(not salt or (e.extra_keys[0] == (salt,) if parent is None else e.extra_keys == [None]), e)
        parent = e.block_hashes[-1]


async def computed(s, prompt, n, **more):
    """The tokens that a request leaves in the cache: all but the last one, never computed."""
    body = completion(prompt=prompt, max_tokens=n, return_token_ids=True, **more)
    choice = (await s.post(COMPLETIONS, body))["choices"][0]
    return (choice["prompt_token_ids"] + choice["token_ids"])[:-1]


async def connects(s, l, _):
    """A subscriber gets nothing from before it is known: stores anew until something comes."""
    for _ in range(20):
        await s.post("/reset_prefix_cache")
        await computed(s, list(range(100, 140)), 1)
        if await l.events(300):
            break
    expect(l.held, "no events")


async def prompt_and_output(s, l, _):
    await s.post("/reset_prefix_cache") # told with the next step
    tokens = await computed(s, list(range(1000, 1050)), 100)
    found = await l.events()
    expect(type(found[0]) is kv_events.AllBlocksCleared, found[0])
    check_stored(found[1:], tokens)


async def what_is_known_is_not_told(s, l, _):
    await computed(s, list(range(1000, 1050)), 1)
    expect(not await l.events(), "events of a prefix that is in the cache")
    tokens = await computed(s, list(range(1000, 1048)) + [7] * 40, 1)
    check_stored(await l.events(), tokens, known=3)


async def salted(s, l, _):
    tokens = await computed(s, list(range(1000, 1050)), 20, cache_salt="pepper")
    check_stored(await l.events(), tokens, salt="pepper")


async def evicted(s, l, blocks):
    """Prompts that do not fit the pool together: what is stored anew pushes out the oldest."""
    removed, first = [], hashes(list(range(1000, 1016)))[0]
    for i in range(blocks // 64 + 2):
        await computed(s, [(i * 31 + j * 7) % 4000 + 5 for j in range(64 * SIZE)], 1)
        removed += [h for e in await l.events(200) if type(e) is kv_events.BlockRemoved for h in e.block_hashes]
    expect(first in removed and len(l.held) <= blocks, len(removed), len(l.held))
    return f"{len(removed)} blocks removed, {len(l.held)} of {blocks} held"


async def replayed(s, l, _):
    """Old batches can be asked for again, by number, and are the same bytes."""
    numbers = sorted(l.raw)
    expect(numbers == list(range(numbers[0], numbers[-1] + 1)), "a gap in", numbers)
    socket = zmq.asyncio.Context.instance().socket(zmq.DEALER)
    socket.connect(sys.argv[3])
    await socket.send_multipart([b"", (numbers[0] + 1).to_bytes(8, "big")])
    got = {}
    while await socket.poll(3000):
        frames = await socket.recv_multipart()
        if frames[-1] == b"":
            break
        got[int.from_bytes(frames[-2], "big")] = frames[-1]
    expect(got == {n: p for n, p in l.raw.items() if n > numbers[0]}, len(got), len(l.raw))
    return f"{len(got)} batches"


if __name__ == "__main__":
    run([connects, prompt_and_output, what_is_known_is_not_told, salted, evicted, replayed],
        Server(sys.argv[1]), Listener(sys.argv[2]), int(sys.argv[4]))
