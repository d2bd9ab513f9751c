"""Two engines behind one frontend: dense ones, and ranks of a mixture of experts, which
start and stop together in waves."""
import asyncio
import re

from peers import Play, PlayTest, STEADY, main, mixture_of_experts, until


class TwoEngines(PlayTest):
    engines = 2

    async def burst(self, n=40):
        streams = await asyncio.gather(*(
            self.http.stream_chat(f"question {i}", max_tokens=20, ignore_eos=True)
            for i in range(n)))
        for s in streams:
            self.assertEqual((s.status, s.finish), (200, "length"), s.error)
            self.assertEqual(s.usage["completion_tokens"], 20)

    async def share_bursts(self, rest):
        """Two bursts and a rest between: both engines have their share of each."""
        before = await self.http.metrics()
        for bursts in (1, 2):
            await self.burst()
            await self.idle()
            m = await self.http.metrics()
            for engine in "01":
                tokens = (m("generation_tokens_total", engine=engine) -
                          before("generation_tokens_total", engine=engine))
                self.assertGreaterEqual(tokens, bursts * 10 * 20, f"engine {engine}")
            await asyncio.sleep(rest)


class Dense(TwoEngines):
    async def test_both_serve_bursts(self):
        await self.share_bursts(rest=0.1)

    async def test_utilities_reach_both(self):
        self.assertEqual((await self.http.post("/pause")).status, 200)
        held = [asyncio.create_task(self.http.complete(max_tokens=3)) for _ in range(4)]
        await asyncio.sleep(0.2)
        self.assertFalse(any(task.done() for task in held))
        self.assertEqual((await self.http.post("/resume")).status, 200)
        for answer in await asyncio.gather(*held):
            self.assertEqual(answer.status, 200)

    async def test_streams_can_be_given_up(self):
        await asyncio.gather(*(self.http.stream_chat(max_tokens=2000, ignore_eos=True, cut_after=2)
                               for _ in range(10)))
        await self.idle()


class Experts(TwoEngines):
    @classmethod
    def setUpClass(cls):
        cls.model = mixture_of_experts()
        super().setUpClass()

    def waves(self):
        """Those that the frontend's coordinator saw begin and end."""
        log = self.frontend.log()
        return (re.findall(r"starting DP wave .* current_wave=(\d+)", log),
                re.findall(r"DP wave finished.* wave=(\d+)", log))


class Waves(Experts):
    async def test_both_serve_bursts_with_a_second_of_rest(self):
        self.assertIn("coordinator_mode=Some(InProc)", self.frontend.log())
        await self.share_bursts(rest=1)

    async def test_single_requests_with_rests_between(self):
        for _ in range(4):
            answer = await self.http.complete(max_tokens=3, ignore_eos=True)
            self.assertEqual(answer.json["usage"]["completion_tokens"], 3)
            await asyncio.sleep(0.1)

    async def test_a_wave_ends_when_all_rest_and_the_next_request_begins_another(self):
        def at_rest_after(n):
            begun, ended = self.waves()
            return len(begun) >= n and begun == ended

        for _ in range(3):
            before = len(self.waves()[0])
            await self.burst(4)
            await until("the wave ends", lambda: at_rest_after(before + 1), 2)
        begun, _ = self.waves()
        self.assertEqual(begun, [str(i) for i in range(len(begun))])

    async def test_streams_can_be_given_up(self):
        await asyncio.gather(*(self.http.stream_chat(max_tokens=2000, ignore_eos=True, cut_after=2)
                               for _ in range(10)))
        await self.idle()


class NoWaves(Experts):
    """Engines that take no part in waves, though the frontend would have them."""

    play_flags = (*STEADY, "--no-wave-coordination")

    async def test_both_serve_bursts(self):
        await self.share_bursts(rest=0.2)
        self.assertEqual(self.waves(), (["0"], []))


class DenseWaves(TwoEngines):
    """Engines that would take part in waves, but there is no coordinator."""

    play_flags = (*STEADY, "--wave-coordination")

    async def test_both_serve_bursts(self):
        await self.share_bursts(rest=0.2)


class TwoProcesses(TwoEngines):
    @classmethod
    def start_play(cls):
        return [Play(cls.frontend.handshake, *cls.play_flags, "--engine-start-index", str(i),
                     model=cls.model) for i in (1, 0)]

    async def test_both_serve_bursts(self):
        await self.share_bursts(rest=0.2)


class TwoProcessesOfExperts(TwoProcesses, Experts):
    play_flags = (*STEADY, "--wave-coordination")


if __name__ == "__main__":
    main()
