"""Runs vLLM's own Scheduler on a case and records what it decides.

A case is a configuration, requests and actions, as dictionaries in the words of the format
"vllm-sched-oracle/2", which `vtwin simulate --oracle` replays. Configuration, KV groups,
KV-cache manager and scheduler are vLLM's, untouched; only the model is made up: a request's
k-th output token follows from k, and drafts are accepted by a rule.

Orders that Python leaves open (sets of ids) are those of insertion, or sorted.
"""

import contextlib
import copy
import dataclasses
import functools
import logging
import os
import pathlib

os.environ.setdefault("PYTHONHASHSEED", "0")  # of block hashes
os.environ["VLLM_USE_V2_MODEL_RUNNER"] = "0"

import msgspec  # noqa: E402
import torch  # noqa: E402
import vllm  # noqa: E402
from vllm.config import (  # noqa: E402
    CacheConfig,
    DeviceConfig,
    KVEventsConfig,
    LoRAConfig,
    ModelConfig,
    ParallelConfig,
    SchedulerConfig,
    SpeculativeConfig,
    VllmConfig,
)
from vllm.lora.request import LoRARequest  # noqa: E402
from vllm.sampling_params import SamplingParams  # noqa: E402
from vllm.utils.hashing import get_hash_fn_by_name  # noqa: E402
from vllm.v1 import kv_cache_interface as specs  # noqa: E402
from vllm.v1.core import kv_cache_utils as kv  # noqa: E402
from vllm.v1.core.sched.interface import PauseState  # noqa: E402
from vllm.v1.core.single_type_kv_cache_manager import register_all_kvcache_specs  # noqa: E402
from vllm.v1.outputs import DraftTokenIds, ModelRunnerOutput  # noqa: E402
from vllm.v1.request import Request, RequestStatus  # noqa: E402
from vllm.v1.structured_output import StructuredOutputManager  # noqa: E402

logging.disable(logging.ERROR)  # advice on how to serve well
VERSION = vllm.__version__.split("+")[0]
RELEASE = int(VERSION.split(".")[1])
MODEL = pathlib.Path(__file__).resolve().parents[1] / "cases" / "tiny-qwen3"
EOS, STOP = 2, 3
TABLES_EVERY = 8  # steps
LONG_QUEUE = 64

DEFAULTS = dict(
    max_num_seqs=16,
    max_num_batched_tokens=256,
    max_model_len=512,
    block_size=16,
    enable_prefix_caching=True,
    enable_chunked_prefill=True,
    long_prefill_token_threshold=0,
    policy="fcfs",
    watermark=0.0,
    scheduler_reserve_full_isl=True,
    async_scheduling=False,
    num_spec_tokens=0,
    spec_method=None,
    max_num_scheduled_tokens=None,
    kv_events=False,
    prefill_schedule_interval=1,
    disable_hybrid_kv_cache_manager=False,
    mamba_cache_mode="none",
    max_num_partial_prefills=1,
    max_long_partial_prefills=1,
    retention_interval=None,  # None: the release's; "dense": every block
    max_num_active_seqs=None,
    long_prefill_token_threshold_adaptive=False,
    max_loras=None,
)


class Refused(Exception):
    """vLLM does not start with such a configuration."""


@contextlib.contextmanager
def starting():
    try:
        yield
    except (ValueError, NotImplementedError, AssertionError) as e:
        raise Refused(f"{type(e).__name__}: {e}") from e


# ---- tokens ----------------------------------------------------------------


def prompt_token(seed, j):
    return (seed * 7919 + j * 31 + (j * j) % 97) % 32000


def output_token(requests, i, k):
    r = requests[i]
    if k == r.get("eos_at"):
        return EOS
    if k == r.get("stop_at"):
        return STOP
    return 40000 + (i * 131 + k * 17) % 20000


def prompt_tokens(requests, i):
    out = []
    for part in requests[i]["prompt"]:
        if "s" in part:
            out += [prompt_token(part["s"], j) for j in range(part["n"])]
        else:
            out += [output_token(requests, part["out"], k) for k in range(part["n"])]
    return out


# ---- vLLM's configuration --------------------------------------------------


def fields_of(cls, values):
    """Those that this release knows."""
    known = {f.name for f in dataclasses.fields(cls)}
    return {k: v for k, v in values.items() if k in known}


@functools.cache
def model_config():
    return ModelConfig(
        model=str(MODEL),
        tokenizer=str(MODEL),
        skip_tokenizer_init=True,
        dtype="bfloat16",
        seed=0,
        max_model_len=2048,
    )


def scheduler_config(c):
    values = dict(
        max_num_seqs=c["max_num_seqs"],
        max_num_batched_tokens=c["max_num_batched_tokens"],
        max_num_scheduled_tokens=c["max_num_scheduled_tokens"],
        max_model_len=c["max_model_len"],
        enable_chunked_prefill=c["enable_chunked_prefill"],
        long_prefill_token_threshold=c["long_prefill_token_threshold"],
        long_prefill_token_threshold_adaptive=c["long_prefill_token_threshold_adaptive"],
        policy=c["policy"],
        watermark=c["watermark"],
        scheduler_reserve_full_isl=c["scheduler_reserve_full_isl"],
        async_scheduling=c["async_scheduling"],
        prefill_schedule_interval=c["prefill_schedule_interval"],
        disable_hybrid_kv_cache_manager=c["disable_hybrid_kv_cache_manager"],
        max_num_partial_prefills=c["max_num_partial_prefills"],
        max_long_partial_prefills=c["max_long_partial_prefills"],
        max_num_active_seqs=c["max_num_active_seqs"],
        is_encoder_decoder=False,
    )
    known = fields_of(SchedulerConfig, values)
    for name in ("max_model_len", "is_encoder_decoder"):  # of its constructor only
        known[name] = values[name]
    return SchedulerConfig(**known)


def spec_config(c):
    if not c["num_spec_tokens"]:
        return None
    s = SpeculativeConfig(
        method="ngram",
        num_speculative_tokens=c["num_spec_tokens"],
        prompt_lookup_max=2,
        prompt_lookup_min=1,
        target_model_config=model_config(),
        target_parallel_config=ParallelConfig(),
    )
    # A draft head would need weights; the scheduler asks only for the name.
    s.method = c["spec_method"]
    if c["async_scheduling"] and s.method == "ngram":
        s.method = "ngram_gpu"
    return s


def retention(c):
    """As the release is told: None is its default."""
    value = c["retention_interval"]
    if RELEASE < 29:
        os.environ.pop("VLLM_PREFIX_CACHE_RETENTION_INTERVAL", None)
        if value not in (None, "dense"):
            os.environ["VLLM_PREFIX_CACHE_RETENTION_INTERVAL"] = str(value)
        return {}
    return {} if value is None else {
        "prefix_cache_retention_interval": None if value == "dense" else value
    }


def vllm_config(c):
    m = copy.copy(model_config())
    m.max_model_len = c["max_model_len"]
    m.original_max_model_len = c["max_model_len"]
    cache = CacheConfig(
        block_size=c["block_size"],
        gpu_memory_utilization=0.9,
        cache_dtype="auto",
        enable_prefix_caching=c["enable_prefix_caching"],
        prefix_caching_hash_algo="sha256_cbor",
        **fields_of(CacheConfig, retention(c)),
    )
    v = VllmConfig(
        model_config=m,
        cache_config=cache,
        scheduler_config=scheduler_config(c),
        parallel_config=ParallelConfig(),
        device_config=DeviceConfig("cpu"),
        speculative_config=spec_config(c),
        lora_config=LoRAConfig(max_loras=c["max_loras"]) if c["max_loras"] else None,
        kv_events_config=KVEventsConfig(enable_kv_cache_events=True, publisher="null")
        if c["kv_events"]
        else None,
    )
    # What the CPU's platform has changed to its taste.
    v.cache_config.block_size = c["block_size"]
    v.cache_config.mamba_cache_mode = c["mamba_cache_mode"]
    v.cache_config.enable_prefix_caching = c["enable_prefix_caching"]
    v.scheduler_config = scheduler_config(c)
    if hasattr(v.cache_config, "kv_cache_layout"):
        v.cache_config.kv_cache_layout = "LBNHC"  # that of GPUs' attention
    return v


def layer_spec(c, layer):
    bs, heads, dim = c["block_size"], layer.get("heads", 1), layer.get("dim", 8)
    common = dict(block_size=bs, num_kv_heads=heads, head_size=dim, dtype=torch.bfloat16)
    kind = layer["type"]
    if kind == "full":
        return specs.FullAttentionSpec(**common)
    if kind == "mla":
        return specs.MLAAttentionSpec(**common)
    if kind == "sliding":
        return specs.SlidingWindowSpec(**common, sliding_window=layer["window"])
    if kind == "chunked":
        return specs.ChunkedLocalAttentionSpec(**common, attention_chunk_size=layer["chunk"])
    return specs.MambaSpec(
        block_size=bs if c["mamba_cache_mode"] != "none" else c["max_model_len"],
        shapes=((layer["state"],),),
        dtypes=(torch.bfloat16,),
        mamba_cache_mode=c["mamba_cache_mode"],
        num_speculative_blocks=c["num_spec_tokens"],
        **saving(layer),
    )


def saving(layer):
    """As Mamba 2 of 0.32 has it."""
    if not layer.get("saves"):
        return {}
    return dict(num_prefill_checkpoint_blocks=1, prefill_checkpoint_alignment=1)


def layer_specs(c):
    out = {}
    for layer in c["kv_layers"]:
        for _ in range(layer.get("n", 1)):
            out[f"model.layers.{len(out)}.attn"] = layer_spec(c, layer)
    return out


def kv_config(c, v):
    """As EngineCore does it."""
    register_all_kvcache_specs(v)
    configs = kv.get_kv_cache_configs(v, [layer_specs(c)], [c["available_memory"]])
    for one in configs:
        if hasattr(one, "kv_cache_layout"):
            one.kv_cache_layout = v.cache_config.kv_cache_layout
    out = kv.generate_scheduler_kv_cache_config(configs)
    v.cache_config.num_gpu_blocks = out.num_blocks
    v.cache_config.block_size = min(g.kv_cache_spec.block_size for g in out.kv_cache_groups)
    sizes = kv.resolve_kv_cache_block_sizes(out, v)
    if hasattr(kv, "resolve_cache_hit_alignment_tokens"):
        align = kv.resolve_cache_hit_alignment_tokens(out, v, *sizes)
        for one in (*configs, out):
            one.hash_block_size = sizes[1]
            one.cache_hit_alignment_tokens = align
    return out, sizes


def smallest_pool(c):
    """Blocks with which vLLM starts, the null block aside, and the bytes of one."""
    c = {**DEFAULTS, **c, "available_memory": 1 << 40}
    with starting():
        v = vllm_config(c)
        groups, _ = kv_config(c, v)
    page = c["available_memory"] // groups.num_blocks
    need = sum(
        -(-g.kv_cache_spec.max_memory_usage_bytes(v) // g.kv_cache_spec.page_size_bytes)
        for g in groups.kv_cache_groups
    )
    return need, page


KINDS = (  # an MLA spec is a full one too
    ("mla", specs.MLAAttentionSpec),
    ("full", specs.FullAttentionSpec),
    ("sliding", specs.SlidingWindowSpec),
    ("chunked", specs.ChunkedLocalAttentionSpec),
    ("mamba", specs.MambaSpec),
)


def group_record(c, v, group):
    s = group.kv_cache_spec
    if isinstance(s, specs.UniformTypeKVCacheSpecs):
        inner = next(iter(s.kv_cache_specs.values()))
    else:
        inner = s
    kind = next(name for name, cls in KINDS if isinstance(inner, cls))
    out = dict(type=kind, block_size=s.block_size, page_size_bytes=s.page_size_bytes)
    out["layers"] = [int(name.split(".")[2]) for name in group.layer_names]
    if getattr(inner, "sliding_window", None) is not None:
        out["sliding_window"] = inner.sliding_window
    if getattr(inner, "attention_chunk_size", None) is not None:
        out["attention_chunk_size"] = inner.attention_chunk_size
    if kind == "mamba":
        out["mamba_cache_mode"] = inner.mamba_cache_mode
        out["num_speculative_blocks"] = inner.num_speculative_blocks
    if kind in ("sliding", "chunked"):
        out["max_admission_blocks"] = inner.max_admission_blocks_per_request(
            max_in_flight_tokens=v.max_in_flight_tokens, max_model_len=c["max_model_len"]
        )
    out["eagle"] = int(c["use_eagle"])
    return out


# ---- a run -----------------------------------------------------------------


class Events:
    """Takes the place of the socket that events are published on."""

    def __init__(self):
        self.at, self.seen = 0, []

    def publish(self, batch):
        for e in batch.events:
            d = {k: plain(v) for k, v in msgspec.structs.asdict(e).items()}
            self.seen.append([self.at, {**d, "type": type(e).__name__}])

    def shutdown(self):
        pass


def plain(v):
    if isinstance(v, (list, tuple)):
        return [plain(x) for x in v]
    return v


class Run:
    def __init__(self, case):
        self.case = case
        self.c = c = {**DEFAULTS, **case["config"]}
        c["use_eagle"] = c["num_spec_tokens"] > 0 and c["spec_method"] == "eagle"
        self.reqs = case["requests"]
        self.v = vllm_config(c)
        groups, (block, hash_block) = kv_config(c, self.v)
        self.groups = groups
        cls = self.v.scheduler_config.get_scheduler_cls()
        self.s = cls(
            vllm_config=self.v,
            kv_cache_config=groups,
            structured_output_manager=StructuredOutputManager(self.v),
            block_size=block,
            hash_block_size=hash_block,
            log_stats=True,
        )
        self.events = Events()
        self.s.kv_event_publisher = self.events
        hash_fn = get_hash_fn_by_name("sha256_cbor")
        kv.init_none_hash(hash_fn)
        self.hasher = (
            kv.get_request_block_hasher(hash_block, hash_fn)
            if c["enable_prefix_caching"]
            else None
        )
        self.live, self.made = {}, []  # index: Request
        self.index = {r["id"]: i for i, r in enumerate(self.reqs)}
        self.flying = []  # (step, SchedulerOutput, who samples), the newest first
        self.steps = []
        self.note_config(block, hash_block)

    def note_config(self, block, hash_block):
        c, groups = self.c, self.groups
        c["num_blocks"] = groups.num_blocks
        c["scheduler_block_size"], c["hash_block_size"] = block, hash_block
        c["max_in_flight_tokens"] = self.v.max_in_flight_tokens
        c["long_prefill_token_threshold"] = (
            self.v.scheduler_config.long_prefill_token_threshold
        )
        c["kv_groups"] = [group_record(c, self.v, g) for g in groups.kv_cache_groups]
        c["retention_effective"] = self.s.kv_cache_manager.coordinator.retention_interval

    # -- what is done to it

    def add(self, i):
        r = self.reqs[i]
        params = SamplingParams(
            max_tokens=r["max_tokens"],
            min_tokens=r.get("min_tokens") or 0,
            stop_token_ids=[STOP],
            temperature=0.0,
            prompt_logprobs=1 if r.get("skip_cache") else None,
        )
        params.update_from_generation_config({}, EOS)
        lora = r.get("lora")
        q = Request(
            request_id=r["id"],
            prompt_token_ids=prompt_tokens(self.reqs, i),
            sampling_params=params,
            pooling_params=None,
            arrival_time=r["arrival_time"],
            priority=r["priority"],
            cache_salt=r.get("cache_salt"),
            lora_request=LoRARequest(f"lora{lora}", lora, f"/lora{lora}") if lora else None,
            block_hasher=self.hasher,
        )
        self.made.append((i, q))
        self.live[i] = q
        self.s.add_request(q)

    def abort(self, i):
        self.s.finish_requests([self.reqs[i]["id"]], RequestStatus.FINISHED_ABORTED)

    def act(self, what, rec):
        rec["action"] = what
        states = dict(
            pause_new=PauseState.PAUSED_NEW,
            pause_all=PauseState.PAUSED_ALL,
            unpause=PauseState.UNPAUSED,
        )
        if what in states:
            self.s.set_pause_state(states[what])
            return
        preempt = what.endswith("preempt")
        ran = [self.index[r.request_id] for r in self.s.running]
        rec["action_result"] = self.s.reset_prefix_cache(reset_running_requests=preempt)
        if preempt and ran:
            rec["action_preempt"] = ran[::-1]

    # -- what it says

    def indices(self, queue):
        return [self.index[r.request_id] for r in queue]

    def queues(self, rec):
        s = self.s
        waiting = list(s.waiting)
        aside = list(s.skipped_waiting if RELEASE < 31 else s.kv_holding_waiting)
        if self.c["max_loras"]:  # the order in which they will be looked at
            both = aside + waiting
            rec["queue"] = self.indices(sorted(both) if self.c["policy"] == "priority" else both)
            return
        rec["wait"] = self.indices(waiting)
        if len(waiting) > LONG_QUEUE:
            rec["wait"] = {"n": len(waiting), "head": rec["wait"][:LONG_QUEUE]}
        if aside:
            rec["skip"] = self.indices(aside)

    def tables(self):
        m = self.s.kv_cache_manager
        return [
            [self.index[r.request_id], [list(b) for b in m.get_block_ids(r.request_id)]]
            for r in self.s.running
        ]

    def free(self):
        return self.s.kv_cache_manager.block_pool.get_num_free_blocks()

    def plan(self, step, rec):
        s, c = self.s, self.c
        interval = c["prefill_schedule_interval"]
        o = s.schedule(interval > 1 and step % interval != 0)
        ids = self.index
        rec["sched"] = [[ids[r], n] for r, n in o.num_scheduled_tokens.items()]
        rec["total"] = o.total_num_scheduled_tokens
        rec["new"] = [
            [ids[r.req_id], r.num_computed_tokens, [list(b) for b in r.block_ids]]
            for r in o.scheduled_new_reqs
        ]
        d = o.scheduled_cached_reqs
        rec["cached"] = [
            [ids[r], int(r in d.resumed_req_ids), d.num_computed_tokens[k],
             None if d.new_block_ids[k] is None else [list(b) for b in d.new_block_ids[k]]]
            for k, r in enumerate(d.req_ids)
        ]  # fmt: skip
        if self.preempted:
            rec["preempt"] = self.preempted
        if o.finished_req_ids:
            rec["finished_sent"] = sorted(ids[r] for r in o.finished_req_ids)
        if o.scheduled_spec_decode_tokens:
            rec["spec"] = [[ids[r], len(t)] for r, t in o.scheduled_spec_decode_tokens.items()]
        if any(getattr(o, "num_common_prefix_blocks", [])):
            rec["common_prefix_blocks"] = list(o.num_common_prefix_blocks)
        rec["run"] = self.indices(s.running)
        self.queues(rec)
        rec["free"] = self.free()
        if step % TABLES_EVERY == TABLES_EVERY - 1 or self.preempted:
            rec["tables"] = self.tables()
        return o

    @contextlib.contextmanager
    def watch_preemptions(self):
        """Their order, which the output has as a set."""
        self.preempted, real = [], self.s._preempt_request

        def watched(request, *args, **kwargs):
            self.preempted.append(self.index[request.request_id])
            return real(request, *args, **kwargs)

        self.s._preempt_request = watched
        try:
            yield
        finally:
            del self.s._preempt_request

    def samplers(self, o):
        """Those that have a token to come from this step."""
        return [r for r in o.num_scheduled_tokens if not self.live[self.index[r]].is_prefill_chunk]

    def sample(self, o, samplers):
        """What the made-up model returns: it goes on where a request's output ends now."""
        out = {r: [] for r in o.num_scheduled_tokens}
        for r in samplers:
            i = self.index[r]
            n = self.live[i].num_output_tokens
            drafts = len(o.scheduled_spec_decode_tokens.get(r, ()))
            k = 1 + ((i * 7 + n * 3) % (drafts + 1) if drafts else 0)
            out[r] = [output_token(self.reqs, i, n + j) for j in range(k)]
        return out

    def update(self):
        step, o, samplers = self.flying.pop()
        ids, tokens = list(o.num_scheduled_tokens), self.sample(o, samplers)
        result = ModelRunnerOutput(
            req_ids=ids,
            req_id_to_index={r: k for k, r in enumerate(ids)},
            sampled_token_ids=[tokens[r] for r in ids],
            logprobs=None,
            prompt_logprobs_dict={},
            pooler_output=[],
        )
        self.events.at = len(self.steps)
        by_client = self.s.update_from_output(o, result)
        outs = [x for e in by_client.values() for x in e.outputs]
        stats = next(e.scheduler_stats for e in by_client.values() if e.scheduler_stats)
        if self.c["num_spec_tokens"] and not self.c["async_scheduling"]:
            self.draft(ids, tokens)
        return self.update_record(step, outs, stats)

    def draft(self, ids, tokens):
        some = [r for r in ids if tokens[r] and not self.live[self.index[r]].is_finished()]
        k = self.c["num_spec_tokens"]
        self.s.update_draft_token_ids(DraftTokenIds(some, [[1] * k for _ in some]))

    def update_record(self, step, outs, stats):
        s = self.s
        aside = s.skipped_waiting if RELEASE < 31 else s.kv_holding_waiting
        both = bool(self.c["max_loras"])
        return {
            "of_step": step,
            "out": [
                [self.index[x.request_id], list(x.new_token_ids),
                 None if x.finish_reason is None else int(x.finish_reason), x.stop_reason]
                for x in outs
            ],
            "prefill": [
                [self.index[x.request_id], prefill_record(x.prefill_stats)]
                for x in outs if x.prefill_stats is not None
            ],
            "run": len(s.running),
            "wait": len(s.waiting) + (len(aside) if both else 0),
            "skip": 0 if both else len(aside),
            "free": self.free(),
            "usage": stats.kv_cache_usage,
            "pc": stats_record(stats.prefix_cache_stats),
        }  # fmt: skip

    # -- the loop of an engine

    def step(self, n):
        rec = {"step": n}
        arrive = [i for i, r in enumerate(self.reqs) if r["arrival_step"] == n]
        gone = [i for i, r in enumerate(self.reqs)
                if r.get("abort_step") == n and i in self.live]  # fmt: skip
        for i in arrive:
            self.add(i)
        for i in gone:
            self.abort(i)
        if arrive:
            rec["add"] = arrive
        if gone:
            rec["abort"] = gone
        for a in self.case.get("actions", []):
            if a["step"] == n:
                self.act(a["do"], rec)
        if self.pending(n):
            with self.watch_preemptions():
                o = self.plan(n, rec)
            self.flying.insert(0, (n, o, self.samplers(o)))
            ahead = self.c["async_scheduling"] and len(self.flying) < 2
            rec["upd"] = None if ahead and rec["total"] > 0 else self.update()
        else:
            rec["upd"], rec["idle"] = self.update(), 1
        self.steps.append(rec)

    def pending(self, n):
        last = [r["arrival_step"] for r in self.reqs]
        last += [a["step"] for a in self.case.get("actions", [])]
        return n <= max(last) or self.s.has_requests()

    def all(self, most):
        n = 0
        while self.pending(n) or self.flying:
            if n == most:
                return
            self.step(n)
            n += 1


def prefill_record(p):
    names = ("num_prompt_tokens", "num_computed_tokens", "num_cached_tokens",
             "num_local_cached_tokens", "num_external_cached_tokens",
             "num_cache_creation_tokens")  # fmt: skip
    return {n: getattr(p, n) for n in names}


def stats_record(p):
    names = ("reset", "requests", "queries", "hits",
             "preempted_requests", "preempted_queries", "preempted_hits")  # fmt: skip
    out = {n: getattr(p, n) if p is not None else 0 for n in names}
    out["reset"] = bool(out["reset"])
    if RELEASE >= 32:
        out["hits_by_source"] = dict(p.hits_by_source) if p is not None else {}
    return out


def record(case, most):
    """The case with what vLLM did in so many steps at most: a recording. Raises Refused, or
    what vLLM raises on the way."""
    with starting():
        run = Run(copy.deepcopy(case))
    try:
        run.all(most)
    finally:
        run.s.shutdown()
    out = {
        "format": "vllm-sched-oracle/2",
        "vllm_version": VERSION,
        "case": case["case"],
        "config": run.c,
        "eos_token_id": EOS,
        "stop_token_ids": [STOP],
        "requests": run.reqs,
        "actions": case.get("actions", []),
    }
    if run.c["kv_events"]:
        out["kv_events"] = run.events.seen
        out["none_hash"] = kv.NONE_HASH.hex()
        out["hash_algo"] = "sha256_cbor"
        out["PYTHONHASHSEED"] = os.environ["PYTHONHASHSEED"]
        out["block_hashes"] = {str(i): [h.hex() for h in q.block_hashes] for i, q in run.made}
    out["steps"] = run.steps
    return out
