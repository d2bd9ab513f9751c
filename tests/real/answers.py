"""answers.py URL - what clients get from a real frontend with the twin behind it."""
import asyncio
import sys
import time

from client import CHAT, COMPLETIONS, TEXT, Server, chat, completion, expect, pieces, run, total


async def start(s):
    models = await s.get("/v1/models")
    expect(models["data"][0]["id"] == "tiny" and models["data"][0]["max_model_len"] == 2048, models)
    version = await s.get("/version")
    return f"vLLM {version['version']}"


async def whole_completion(s):
    a = await s.post(COMPLETIONS, completion())
    choice, usage = a["choices"][0], a["usage"]
    prompt = await s.post("/tokenize", {"model": "tiny", "prompt": TEXT})
    expect(choice["finish_reason"] == "length" and choice["text"], choice)
    expect(usage["completion_tokens"] == 8 and usage["prompt_tokens"] == prompt["count"], usage)


async def streamed_completion(s):
    body = completion(max_tokens=24, stream_options={"include_usage": True})
    chunks, times = await s.stream(COMPLETIONS, body)
    text, reason = pieces(chunks)
    expect(text and reason == "length", text, reason)
    expect(chunks[-1]["usage"]["completion_tokens"] == 24, chunks[-1])
    # One token a step and milliseconds between steps: they do not come in one lump.
    expect(len(chunks) > 3 and times[-1] - times[0] > 0.05, len(chunks), times[-1] - times[0])


async def whole_chat(s):
    a = await s.post(CHAT, chat())
    choice = a["choices"][0]
    expect(choice["message"]["role"] == "assistant" and choice["message"]["content"], choice)
    expect(a["usage"]["completion_tokens"] == 8 and choice["finish_reason"] == "length", a)


async def streamed_chat(s):
    chunks, _ = await s.stream(CHAT, chat(max_tokens=24))
    text, reason = pieces(chunks)
    expect(text and reason == "length" and chunks[0]["choices"][0]["delta"]["role"] == "assistant", chunks[0])


async def two_choices(s):
    a = await s.post(COMPLETIONS, completion(n=2, max_tokens=16, temperature=0.9, seed=3))
    expect([c["index"] for c in a["choices"]] == [0, 1] and a["usage"]["completion_tokens"] == 32, a)
    expect(a["choices"][0]["text"] != a["choices"][1]["text"], "both choices are the same")
    chunks, _ = await s.stream(CHAT, chat(n=2, max_tokens=16))
    expect(all(pieces(chunks, i)[1] == "length" for i in (0, 1)), "a choice has no end")


async def several_prompts(s):
    a = await s.post(COMPLETIONS, completion(prompt=[TEXT, "Blocks", "of tokens"]))
    expect(len(a["choices"]) == 3 and a["usage"]["completion_tokens"] == 24, a["usage"])


async def token_ids(s):
    a = await s.post(COMPLETIONS, completion(prompt=[11, 22, 33, 44], return_token_ids=True))
    choice = a["choices"][0]
    expect(choice["prompt_token_ids"] == [11, 22, 33, 44] and len(choice["token_ids"]) == 8, choice)


async def logprobs(s):
    a = await s.post(COMPLETIONS, completion(logprobs=2))
    l = a["choices"][0]["logprobs"]
    expect(len(l["tokens"]) == len(l["token_logprobs"]) == len(l["top_logprobs"]) == 8, l)
    expect(all(p <= 0 for p in l["token_logprobs"]) and all(1 <= len(t) <= 3 for t in l["top_logprobs"]), l)
    a = await s.post(CHAT, chat(logprobs=True, top_logprobs=3))
    content = a["choices"][0]["logprobs"]["content"]
    expect(len(content) == 8 and all(len(c["top_logprobs"]) == 3 for c in content), content)
    chunks, _ = await s.stream(CHAT, chat(logprobs=True, top_logprobs=2))
    told = [c["logprobs"]["content"] for x in chunks for c in x["choices"] if c.get("logprobs")]
    expect(sum(len(t) for t in told) == 8, told)


async def prompt_logprobs(s):
    a = await s.post(COMPLETIONS, completion(prompt_logprobs=2))
    of_prompt = a["choices"][0]["prompt_logprobs"]
    expect(len(of_prompt) == a["usage"]["prompt_tokens"] and of_prompt[0] is None, of_prompt)
    expect(all(2 <= len(p) <= 3 for p in of_prompt[1:]), of_prompt)
    long = [(i * 7) % 4000 + 5 for i in range(1500)] # in several frames
    a = await s.post(COMPLETIONS, completion(prompt=long, prompt_logprobs=1))
    of_prompt = a["choices"][0]["prompt_logprobs"]
    expect(len(of_prompt) == 1500 and all(str(t) in p for t, p in zip(long[1:], of_prompt[1:])), "not the prompt's")


async def echo(s):
    a = await s.post(COMPLETIONS, completion(echo=True, logprobs=1))
    choice = a["choices"][0]
    expect(choice["text"].startswith(TEXT), choice["text"])
    expect(len(choice["logprobs"]["tokens"]) == a["usage"]["total_tokens"], choice["logprobs"])


async def stop_strings(s):
    stops = ["e", "a", "t"] # one of them is soon among random tokens
    for body in completion(stop=stops, max_tokens=400), completion(stop=stops, max_tokens=400, min_tokens=6):
        a = await s.post(COMPLETIONS, body)
        choice = a["choices"][0]
        expect(choice["finish_reason"] == "stop" and choice["stop_reason"] in stops, choice)
        expect(a["usage"]["completion_tokens"] < 400, a["usage"])
    chunks, _ = await s.stream(COMPLETIONS, completion(stop=stops, max_tokens=400))
    text, reason = pieces(chunks)
    expect(reason == "stop" and not any(x in text for x in stops), text)
    await s.quiet()


async def stop_tokens(s):
    # Random tokens end nothing, unless a request allows only few and its stop is one of them.
    few, stops = list(range(100, 120)), [117, 118, 119]
    body = completion(allowed_token_ids=few, stop_token_ids=stops, max_tokens=400, return_token_ids=True)
    choice = (await s.post(COMPLETIONS, body))["choices"][0]
    ids = choice["token_ids"]
    expect(choice["finish_reason"] == "stop" and choice["stop_reason"] == ids[-1] and ids[-1] in stops, choice)
    expect(set(ids[:-1]) <= set(few) - set(stops), ids)
    choice = (await s.post(COMPLETIONS, {**body, "min_tokens": 60}))["choices"][0]
    expect(choice["finish_reason"] == "stop" and 60 <= len(choice["token_ids"]) < 400, choice)


async def end_of_sequence(s):
    # The tokenizer's own EOS is told without a stop_reason, the generation config's with.
    for eos, told in (4091, None), (4089, 4089):
        body = completion(allowed_token_ids=[eos, 100, 101], max_tokens=200, return_token_ids=True)
        choice = (await s.post(COMPLETIONS, {**body, "ignore_eos": False}))["choices"][0]
        expect(choice["finish_reason"] == "stop" and choice["stop_reason"] == told, choice)
        expect(choice["token_ids"][-1] == eos, choice)
        choice = (await s.post(COMPLETIONS, body))["choices"][0]
        expect(choice["finish_reason"] == "length" and len(choice["token_ids"]) == 200, choice)


async def same_again(s):
    for body in completion(temperature=0), completion(temperature=0.8, seed=42):
        one, other = [(await s.post(COMPLETIONS, body))["choices"][0]["text"] for _ in range(2)]
        expect(one == other, body, one, other)


async def structured(s):
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    await s.post(CHAT, chat(response_format=form))
    await s.post(CHAT, chat(response_format={"type": "json_object"}))
    await s.post(COMPLETIONS, completion(structured_outputs={"choice": ["red", "green"]}))
    await s.post(COMPLETIONS, completion(structured_outputs={"regex": "[0-9]{3}"}))
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    await s.post(CHAT, chat(tools=[tool], tool_choice="none"))


async def other_parameters(s):
    await s.post(COMPLETIONS, completion(presence_penalty=0.5, repetition_penalty=1.1, logit_bias={"50": 5.0}))
    await s.post(COMPLETIONS, completion(allowed_token_ids=[10, 20, 30], bad_words=["foo"], min_p=0.1))
    await s.post(COMPLETIONS, completion(priority=3, cache_salt="salt", kv_transfer_params={"do_remote_decode": True}))
    await s.post("/v1/responses", {"model": "tiny", "input": "hi", "max_output_tokens": 6})
    await s.post("/v1/messages", {"model": "tiny", "max_tokens": 6, "messages": [{"role": "user", "content": "hi"}]})


async def one_prefix(s):
    before = await s.metrics()
    for tail in "first", "second":
        await s.post(COMPLETIONS, completion(prompt=TEXT * 20 + tail))
    after = await s.metrics()
    hits = total(after, "vllm:prefix_cache_hits_total") - total(before, "vllm:prefix_cache_hits_total")
    expect(hits >= 100, hits, "tokens found in the cache")


async def concurrent_streams(s):
    body = completion(max_tokens=40, stream_options={"include_usage": True})
    begun = time.monotonic()
    answers = await asyncio.gather(*(s.stream(COMPLETIONS, {**body, "prompt": f"{i} {TEXT}"}) for i in range(32)))
    for chunks, _ in answers:
        expect(chunks[-1]["usage"]["completion_tokens"] == 40 and pieces(chunks)[1] == "length", chunks[-1])
    first_end = min(times[-1] for _, times in answers)
    expect(all(times[0] < first_end for _, times in answers), "they did not run together")
    return f"32 streams in {time.monotonic() - begun:.1f} s"


async def disconnects(s):
    body = completion(max_tokens=1900)
    await asyncio.gather(*(s.stream(COMPLETIONS, body, leave_after=5) for _ in range(4)))
    await s.stream(CHAT, chat(n=2, max_tokens=1900), leave_after=5)
    try:
        await asyncio.wait_for(s.post(COMPLETIONS, body), 1)
        expect(False, "1900 tokens within a second")
    except asyncio.TimeoutError:
        pass
    seconds = await s.quiet(8) # by themselves they would end after ten
    after = await s.metrics()
    expect(total(after, "vllm:kv_cache_usage_perc") == 0, "blocks are still held")
    return f"idle again after {seconds:.1f} s"


async def bad_requests(s):
    await s.post(COMPLETIONS, completion(temperature=-1), status=400)
    await s.post(COMPLETIONS, completion(prompt=[5] * 3000), status=400)
    await s.post(COMPLETIONS, completion(model="nobody"), status=404)


async def still_healthy(s):
    expect((await s.http.get("/health")).status_code == 200, "/health")
    await whole_completion(s)


if __name__ == "__main__":
    run([start, whole_completion, streamed_completion, whole_chat, streamed_chat, two_choices, several_prompts,
         token_ids, logprobs, prompt_logprobs, echo, stop_strings, stop_tokens, end_of_sequence, same_again,
         structured, other_parameters, one_prefix, concurrent_streams, disconnects, bad_requests, still_healthy],
        Server(sys.argv[1]))
