"""Requests and engines that fail on purpose."""
import asyncio

from peers import PairTest, PlayTest, STEADY, main, until


class AlwaysFailing(PlayTest):
    play_flags = (*STEADY, "--failure-injection-rate", "1")

    async def test_every_request_is_a_500_and_the_frontend_stays_up(self):
        answers = await asyncio.gather(*(self.http.complete(max_tokens=4) for _ in range(20)))
        self.assertEqual([a.status for a in answers], [500] * 20)
        self.assertEqual((await self.http.get("/health")).status, 200)
        await self.idle()


class FailingByLength(PlayTest):
    play_flags = (*STEADY, "--failure-injection-rate", "1", "--failure-types", "length")

    async def test_requests_end_early_by_length(self):
        answer = await self.http.complete(max_tokens=4)
        self.assertEqual((answer.status, answer.choice["finish_reason"]), (200, "length"))
        self.assertEqual(answer.json["usage"]["completion_tokens"], 0)


class FailingSometimes(PlayTest):
    play_flags = (*STEADY, "--failure-injection-rate", "0.3", "--seed", "5")

    async def test_about_that_share_fails(self):
        answers = await asyncio.gather(*(self.http.complete(max_tokens=2) for _ in range(200)))
        failed = sum(a.status == 500 for a in answers)
        self.assertEqual(sum(a.status == 200 for a in answers), 200 - failed)
        self.assertGreater(failed, 30)
        self.assertLess(failed, 90)


class FailingFirst(PlayTest):
    play_flags = (*STEADY, "--fail-first", "2")

    async def test_the_first_two_fail_then_none(self):
        got = [(await self.http.complete(max_tokens=4)).status for _ in range(6)]
        self.assertEqual(got, [500, 500, 200, 200, 200, 200])


class FailingFirstOfEach(PlayTest):
    play_flags = (*STEADY, "--fail-first", "1", "--fail-first-by-id")

    async def test_a_retry_with_the_same_id_succeeds(self):
        for name in ("a", "b"):
            got = [(await self.http.complete(headers={"X-Request-Id": name}, max_tokens=2)).status
                   for _ in range(3)]
            self.assertEqual(got, [500, 200, 200])


class Dying(PairTest):
    async def test_a_dead_engine_fails_what_runs_and_turns_health_to_503(self):
        frontend, play = await self.pair("--die-after", "3")
        running = [asyncio.create_task(frontend.http.stream_complete(max_tokens=2000,
                                                                     ignore_eos=True))
                   for _ in range(2)]
        await until("two requests run", lambda: play.log().count("request cmpl-") == 2)
        self.assertEqual((await frontend.http.complete(max_tokens=4)).status, 500)
        for s in await asyncio.gather(*running):
            self.assertIsNone(s.finish)

        async def sick():
            return (await frontend.http.get("/health")).status == 503
        await until("/health is 503", sick, 2)
        self.assertEqual((await frontend.http.complete(max_tokens=4)).status, 500)
        self.assertEqual(play.child.wait(10), 3)
        self.assertIn("the engine dies at request 3", play.log())


if __name__ == "__main__":
    main()
