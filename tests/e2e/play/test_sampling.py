"""What clients may ask of one completion: when it ends, what is in it, what is said of it."""
import asyncio
import re

from peers import FAST, PlayTest, STEADY, main, until

EOS = 4091


class Ends(PlayTest):
    play_flags = FAST

    async def ask(self, **fields):
        answer = await self.http.complete(return_token_ids=True, **fields)
        self.assertEqual(answer.status, 200, answer)
        return answer.choice, answer.json["usage"]

    async def test_max_tokens_ends_it_by_length(self):
        for n in (1, 2, 17):
            choice, usage = await self.ask(max_tokens=n)
            self.assertEqual(choice["finish_reason"], "length")
            self.assertEqual(len(choice["token_ids"]), n)
            self.assertEqual(usage["completion_tokens"], n)

    async def test_without_max_tokens_it_is_16(self):
        choice, _ = await self.ask()
        self.assertEqual(len(choice["token_ids"]), 16)

    async def test_the_models_length_ends_it_by_length(self):
        choice, usage = await self.ask(prompt=list(range(4000)), max_tokens=500)
        self.assertEqual((choice["finish_reason"], usage["total_tokens"]), ("length", 4096))

    async def test_a_stop_token_ends_it_and_is_named(self):
        choice, _ = await self.ask(max_tokens=400, allowed_token_ids=[10, 20, 30],
                                   stop_token_ids=[20])
        self.assertEqual((choice["finish_reason"], choice["stop_reason"]), ("stop", 20))
        self.assertEqual(choice["token_ids"].index(20), len(choice["token_ids"]) - 1)

    async def test_min_tokens_puts_off_the_stop_token(self):
        choice, usage = await self.ask(max_tokens=40, min_tokens=25, allowed_token_ids=[20],
                                       stop_token_ids=[20])
        self.assertEqual((choice["finish_reason"], usage["completion_tokens"]), ("stop", 25))

    async def test_an_eos_ends_it_unless_ignored(self):
        asked = dict(max_tokens=30, allowed_token_ids=[EOS])
        choice, usage = await self.ask(**asked)
        self.assertEqual((choice["finish_reason"], choice["stop_reason"]), ("stop", None))
        self.assertEqual(usage["completion_tokens"], 1)
        choice, usage = await self.ask(**asked, ignore_eos=True)
        self.assertEqual((choice["finish_reason"], usage["completion_tokens"]), ("length", 30))

    async def test_random_output_holds_no_special_token_and_no_markup(self):
        choice, _ = await self.ask(max_tokens=2000, temperature=1.0)
        self.assertEqual(len(choice["token_ids"]), 2000)
        self.assertLess(max(choice["token_ids"]), 4089)
        self.assertGreater(len(set(choice["token_ids"])), 1000)

    async def test_allowed_tokens_are_the_only_ones(self):
        choice, _ = await self.ask(max_tokens=50, allowed_token_ids=[11, 12, 13])
        self.assertEqual(set(choice["token_ids"]), {11, 12, 13})


class Repeats(PlayTest):
    play_flags = FAST

    async def tokens(self, **fields):
        answer = await self.http.complete(max_tokens=20, return_token_ids=True, **fields)
        self.assertEqual(answer.status, 200, answer)
        return answer.choice["token_ids"]

    async def test_the_same_seed_gives_the_same_tokens(self):
        first = await self.tokens(seed=7, temperature=1.0)
        self.assertEqual(first, await self.tokens(seed=7, temperature=1.0))
        self.assertNotEqual(first, await self.tokens(seed=8, temperature=1.0))
        self.assertNotEqual(first, await self.tokens(seed=7, temperature=1.0, prompt="other"))

    async def test_temperature_0_gives_the_same_tokens(self):
        first = await self.tokens(temperature=0)
        self.assertEqual(first, await self.tokens(temperature=0))
        self.assertNotEqual(first, await self.tokens(temperature=0, prompt="other"))

    async def test_without_a_seed_tokens_differ(self):
        self.assertNotEqual(await self.tokens(temperature=1.0), await self.tokens(temperature=1.0))


class Logprobs(PlayTest):
    play_flags = FAST
    frontend_flags = ("--max-logprobs", "-1")

    async def test_completions_tell_each_token_and_the_best(self):
        for top in (0, 1, 5):
            answer = await self.http.complete(max_tokens=6, logprobs=top, temperature=0)
            told = answer.choice["logprobs"]
            self.assertEqual(len(told["tokens"]), 6)
            self.assertEqual("".join(told["tokens"]), answer.choice["text"])
            self.assertTrue(all(p <= 0 for p in told["token_logprobs"]))
            for token, p, best in zip(told["tokens"], told["token_logprobs"],
                                      told["top_logprobs"] or []):
                self.assertGreaterEqual(len(best), min(top, 1))
                self.assertLessEqual(len(best), top + 1)
                self.assertAlmostEqual(best[token], p, places=5)
                self.assertEqual(max(best.values()), best[token])  # greedy takes the best

    async def test_chats_tell_each_token_and_the_best_also_in_streams(self):
        asked = dict(max_tokens=6, logprobs=True, top_logprobs=3, temperature=0)
        content = (await self.http.chat(**asked)).choice["logprobs"]["content"]
        self.assertEqual(len(content), 6)
        for one in content:
            self.assertEqual(len(one["top_logprobs"]), 3)
            self.assertLessEqual(one["logprob"], 0)
            values = [t["logprob"] for t in one["top_logprobs"]]
            self.assertEqual(values, sorted(values, reverse=True))
        s = await self.http.stream_chat(**asked)
        self.assertEqual((s.finish, s.usage["completion_tokens"]), ("length", 6))

    async def test_sampled_tokens_need_not_be_the_best(self):
        answer = await self.http.complete(max_tokens=50, logprobs=1, temperature=1.0, seed=1)
        told = answer.choice["logprobs"]
        behind = [p < max(best.values()) for p, best in
                  zip(told["token_logprobs"], told["top_logprobs"])]
        self.assertTrue(any(behind))

    async def test_prompt_logprobs_tell_each_prompt_token_but_the_first(self):
        answer = await self.http.complete([5, 6, 7, 8], max_tokens=2, prompt_logprobs=2)
        told = answer.choice["prompt_logprobs"]
        self.assertEqual((len(told), told[0]), (4, None))
        for one in told[1:]:
            self.assertIn(len(one), (2, 3))

    async def test_echo_puts_the_prompts_before_the_outputs(self):
        answer = await self.http.complete("one two three", max_tokens=4, logprobs=1, echo=True)
        told = answer.choice["logprobs"]
        self.assertEqual(len(told["tokens"]), answer.json["usage"]["total_tokens"])
        self.assertIsNone(told["token_logprobs"][0])
        self.assertNotIn(None, told["token_logprobs"][1:])

    async def test_logprobs_of_the_whole_vocabulary(self):
        answer = await self.http.complete(max_tokens=3, logprobs=-1)
        if answer.status == 400:  # the frontend's limit
            return
        for best in answer.choice["logprobs"]["top_logprobs"]:
            self.assertGreater(len(best), 3000)


class Several(PlayTest):
    async def test_n_above_1_is_the_frontends_to_refuse(self):
        answer = await self.http.complete(max_tokens=4, n=2)
        if answer.status != 400:
            self.assertEqual(len(answer.json["choices"]), 2)
            self.assertEqual(answer.json["usage"]["completion_tokens"], 8)


class Priorities(PlayTest):
    play_flags = (*STEADY, "--max-num-seqs", "1", "--scheduling-policy", "priority")

    async def test_the_lower_number_goes_first(self):
        def ask(name, **fields):
            return asyncio.create_task(self.http.complete(headers={"X-Request-Id": name},
                                                          ignore_eos=True, **fields))

        async def all_wait():
            return (await self.http.metrics())("num_requests_waiting") == 4

        first = ask("first", max_tokens=200, priority=-5)
        await self.runs(1)
        rest = [ask(f"p{p}", max_tokens=10, priority=p) for p in (9, 3, 6, 0)]
        await until("four wait", all_wait, 1)
        await asyncio.gather(first, *rest)
        ended = re.findall(r"finished cmpl-(\w+)-", self.play.log())
        self.assertEqual(ended, ["first", "p0", "p3", "p6", "p9"])


if __name__ == "__main__":
    main()
