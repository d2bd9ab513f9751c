"""real_servers.py - the servers of an installed vLLM, given tokens instead of an engine.

For make_out_cases.py. Objects are made without their constructors, which want an engine,
and get just what answering needs.
"""
import asyncio
import inspect
import os
import time
from types import SimpleNamespace

os.environ.setdefault("VLLM_LOGGING_LEVEL", "CRITICAL")

import numpy as np
import torch
from fastapi.responses import JSONResponse
from vllm.entrypoints.anthropic.protocol import AnthropicMessagesRequest
from vllm.entrypoints.anthropic.serving import AnthropicServingMessages
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.entrypoints.openai.chat_completion.serving import OpenAIServingChat
from vllm.entrypoints.openai.completion.protocol import CompletionRequest
from vllm.entrypoints.openai.completion.serving import OpenAIServingCompletion
from vllm.entrypoints.openai.responses import api_router
from vllm.entrypoints.openai.responses.context import SimpleContext
from vllm.entrypoints.openai.responses.protocol import ResponsesRequest
from vllm.entrypoints.openai.responses.serving import OpenAIServingResponses
from vllm.parser.parser_manager import ParserManager
from vllm.sampling_params import RequestOutputKind
from vllm.tokenizers import get_tokenizer
from vllm.v1.engine import EngineCoreOutput, EngineCoreRequest, FinishReason
from vllm.v1.engine.output_processor import OutputProcessor
from vllm.v1.outputs import LogprobsLists, LogprobsTensors


async def items(values, *before):
    for v in values:
        yield (*before, v) if before else v


async def joined(events):
    return "".join([e async for e in events])


def as_json(tree):
    return JSONResponse(content=tree).body.decode()


def logprobs_of(k, tokens):
    if k is None:
        return None
    ids = [[t] + [100 + j if 100 + j != t else 99 for j in range(k)] for t in tokens]
    values = [[-1.5] + [-0.5 - j for j in range(k)] for _ in tokens]
    return LogprobsLists(np.array(ids, dtype=np.int32), np.array(values, dtype=np.float32),
                         np.ones(len(tokens), dtype=np.int32))  # fmt: skip


def prompt_logprobs_of(k, prompt):
    if k is None:
        return None
    rows = prompt[1:]
    known = {
        "logprob_token_ids": torch.tensor([[t] + [100 + j for j in range(k)] for t in rows]),
        "logprobs": torch.tensor([[-2.5] + [-0.5 - j for j in range(k)] for _ in rows]),
        "selected_token_ranks": torch.tensor([7] * len(rows)),
    }
    return LogprobsTensors(**{f: known[f] for f in LogprobsTensors._fields if f in known})


class Servers:
    def __init__(self, model, fingerprint, created):
        self.model, self.fingerprint, self.created = model, fingerprint, created
        self.tokenizer = get_tokenizer(model)
        self.metadata = SimpleNamespace(final_usage_info=None)

    def server(self, cls, case):
        tools = bool(case["request"].get("tools"))
        config = SimpleNamespace(model_type="qwen3")
        asked = dict(tool_parser_name="hermes" if tools else None, reasoning_parser_name="",
                     enable_auto_tools=tools, model_name=self.model, is_harmony=False,
                     tokenizer=self.tokenizer)  # fmt: skip
        known = inspect.signature(ParserManager.get_parser).parameters
        parser = ParserManager.get_parser(**{k: v for k, v in asked.items() if k in known})
        s = object.__new__(cls)
        vars(s).update(
            request_logger=None, return_tokens_as_token_ids=False, response_role="assistant",
            enable_auto_tools=tools, parser_cls=parser, parser=parser,
            enable_prompt_tokens_details=case.get("details", False), tool_server=None,
            enable_force_include_usage=False, enable_per_request_metrics=False,
            enable_log_outputs=False, enable_log_deltas=False, use_harmony=False,
            _include_reasoning_tokens_details=False, system_fingerprint=self.fingerprint,
            model_config=SimpleNamespace(model=self.model, hf_text_config=config,
                                         hf_config=config, hf_overrides=None),
            stop_reason_map={"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"},
            _effective_chat_template_kwargs=lambda request: {})  # fmt: skip
        return s

    def outputs(self, case, params):
        """What the output processor gives for the tokens, group by group."""
        stream = bool(case["request"].get("stream"))
        params.output_kind = RequestOutputKind.DELTA if stream else RequestOutputKind.FINAL_ONLY
        processor, tokens, at, out = OutputProcessor(self.tokenizer, log_stats=False), case["tokens"], 0, []
        processor.add_request(EngineCoreRequest(
            request_id="r", prompt_token_ids=case["prompt_ids"], mm_features=None,
            sampling_params=params, pooling_params=None, arrival_time=time.time(),
            lora_request=None, cache_salt=None, data_parallel_rank=None,
            external_req_id="r"), None)  # fmt: skip
        for n in case["groups"] or [1] * len(tokens):
            first, new, at = at == 0, tokens[at : at + n], at + n
            core = EngineCoreOutput(
                request_id="r", new_token_ids=new,
                new_logprobs=logprobs_of(params.logprobs, new),
                new_prompt_logprobs_tensors=prompt_logprobs_of(
                    params.prompt_logprobs if first else None, case["prompt_ids"]))  # fmt: skip
            if at >= len(tokens) and case["end"] != "stop_string":
                core.finish_reason = FinishReason.LENGTH if case["end"] == "length" else FinishReason.STOP
                core.stop_reason = case.get("stop_reason")
            got = processor.process_outputs([core])
            out += got.request_outputs
            if got.reqs_to_abort:
                break
        for o in out:
            o.prompt = self.tokenizer.decode(case["prompt_ids"])
            o.num_cached_tokens = case.get("cached", 0)
        return out

    def answer(self, case):
        kind = {"/v1/completions": self.completions, "/v1/responses": self.responses}
        return kind.get(case["path"], self.chat)(case)

    def completions(self, case):
        s, request = self.server(OpenAIServingCompletion, case), CompletionRequest(**case["request"])
        out = self.outputs(case, request.to_sampling_params(request.max_tokens, {}))
        if request.stream:
            return asyncio.run(joined(s.completion_stream_generator(
                request, [{}], items(out, 0), case["id"], self.created, "tiny", num_prompts=1,
                tokenizer=self.tokenizer, request_metadata=self.metadata)))  # fmt: skip
        return as_json(s.request_output_to_completion_response(
            [out[-1]], request, case["id"], self.created, "tiny", self.tokenizer,
            self.metadata).model_dump())  # fmt: skip

    def chat_request(self, case):
        if case["path"] == "/v1/chat/completions":
            return ChatCompletionRequest(**case["request"])
        cls = AnthropicServingMessages
        convert = getattr(cls, "to_chat_completion_request", None) or cls._convert_anthropic_to_openai_request
        return convert(AnthropicMessagesRequest(**case["request"]))

    def chat(self, case):
        messages = case["path"] == "/v1/messages"
        s = self.server(AnthropicServingMessages if messages else OpenAIServingChat, case)
        request, parser = self.chat_request(case), None
        if s.parser_cls:
            parser = s.parser_cls(self.tokenizer, request.tools, model_config=s.model_config)
            request = parser.adjust_request(request)
        out = self.outputs(case, request.to_sampling_params(
            request.max_completion_tokens or request.max_tokens, {}))  # fmt: skip
        common = (case["id"], "tiny", case["request"]["messages"], self.tokenizer, self.metadata)
        if request.stream:
            events = s.chat_completion_stream_generator(request, items(out), *common)
            return asyncio.run(joined(s.message_stream_converter(events) if messages else events))
        full = asyncio.run(s.chat_completion_full_generator(request, items(out), *common, parser=parser))
        if messages:
            return as_json(s.messages_full_converter(full).model_dump(exclude_none=True))
        return as_json(full.model_dump())

    def responses(self, case):
        s, request = self.server(OpenAIServingResponses, case), ResponsesRequest(**case["request"])
        request.request_id, request.store = case["id"], False
        parser = s.parser(self.tokenizer, request.tools) if s.parser else None
        if parser:
            request = parser.adjust_request(request)
        params = request.to_sampling_params(request.max_output_tokens, {})
        out, context = self.outputs(case, params), SimpleContext()
        context.response_parser = parser

        async def contexts():
            for o in out:
                context.append_output(o)
                yield context

        common = (request, params, contexts(), context, "tiny", self.tokenizer, self.metadata)
        if request.stream:
            events = s.responses_stream_generator(*common, created_time=self.created)
            return asyncio.run(joined(api_router._convert_stream_to_sse_events(events)))
        full = asyncio.run(s.responses_full_generator(*common, created_time=self.created))
        return as_json(full.model_dump(mode="json", by_alias=True))
