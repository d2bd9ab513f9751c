"""Engines and frontends that go and come back, or are told to stop."""
import asyncio
import signal
import time

from peers import (Frontend, OTHER, PairTest, Play, STEADY, VERSION, free_port, main, until)


class EngineRestarts(PairTest):
    async def test_a_killed_engine_goes_on_with_its_frontend(self):
        frontend, play = await self.pair("--session-file", "session")
        await self.serves(frontend)
        for _ in range(2):
            lost = await self.streaming(frontend, max_tokens=1000)
            play.end(signal.SIGKILL)
            play = Play(frontend.handshake, *STEADY, "--session-file", "session")
            await until("it goes on", lambda: "going on" in play.log(), 5)
            await self.serves(frontend)
            self.assertEqual((await frontend.http.get("/health")).status, 200)
            for task in lost:
                task.cancel()
        self.assertEqual(play.end(), 0)

    async def test_a_session_file_of_a_frontend_that_is_gone_does_no_harm(self):
        frontend, play = await self.pair("--session-file", "old-session")
        play.end()
        frontend.end(signal.SIGKILL)
        again = Frontend(handshake=frontend.handshake)
        play = Play(again.handshake, *STEADY, "--session-file", "old-session")
        await again.healthy()
        await self.serves(again)
        self.assertEqual(play.end(), 0)

    async def test_an_engine_may_come_first(self):
        handshake = free_port()
        play = Play(handshake, *STEADY)
        await asyncio.sleep(0.3)
        frontend = Frontend(handshake=handshake)
        await frontend.healthy()
        await self.serves(frontend)
        self.assertEqual(play.end(), 0)


class FrontendRestarts(PairTest):
    async def test_the_next_frontend_may_be_of_another_version(self):
        frontend, play = await self.pair()
        for version in (OTHER, VERSION):
            await self.serves(frontend)
            frontend.end(signal.SIGKILL)
            frontend = Frontend(handshake=frontend.handshake, version=version)
            await frontend.healthy()
        await self.serves(frontend)
        self.assertEqual(play.end(), 0)

    async def test_the_same_engine_serves_the_next_frontend(self):
        frontend, play = await self.pair()
        for how in (signal.SIGKILL, signal.SIGTERM):
            await self.serves(frontend)
            cut = await self.streaming(frontend, max_tokens=2000)
            frontend.end(how)
            await asyncio.gather(*cut, return_exceptions=True)
            frontend = Frontend(handshake=frontend.handshake)
            await frontend.healthy()
            await self.serves(frontend)

            async def knows_only_those():
                m = await frontend.http.metrics()
                return m("num_requests_running") == 0 and m("generation_tokens_total") == 25
            await until("the new frontend's requests are all there are", knows_only_those, 2)
        self.assertEqual(play.end(), 0)
        self.assertEqual(play.summary()["aborted"], 10)

    async def test_a_frontend_that_comes_late_finds_the_engine_waiting(self):
        frontend, play = await self.pair()
        frontend.end(signal.SIGKILL)
        await until("it is missed", lambda: "the frontend is gone" in play.log(), 5)
        frontend = Frontend(handshake=frontend.handshake)
        await frontend.healthy()
        await self.serves(frontend)
        self.assertEqual(play.end(), 0)


class Shutdown(PairTest):
    async def test_sigterm_aborts_streams_and_ends_at_once(self):
        frontend, play = await self.pair()
        streams = await self.streaming(frontend, max_tokens=2000)
        began = time.monotonic()
        self.assertEqual(play.end(signal.SIGTERM), 0)
        self.assertLess(time.monotonic() - began, 2)
        for s in await asyncio.gather(*streams):
            self.assertEqual(s.finish, "abort")

    async def test_sigterm_with_a_timeout_lets_streams_end(self):
        frontend, play = await self.pair("--shutdown-timeout", "20")
        streams = await self.streaming(frontend, max_tokens=300)
        play.send(signal.SIGTERM)
        await until("it drains", lambda: "5 requests may go on" in play.log(), 2)
        late = await frontend.http.stream_complete(max_tokens=10)
        self.assertEqual(late.finish, "abort")
        for s in await asyncio.gather(*streams):
            self.assertEqual((s.finish, len(s.tokens)), ("length", 300))
        self.assertEqual(play.child.wait(2), 0)
        self.assertEqual(play.summary()["finished"], 5)

    async def test_the_timeout_ends_what_takes_longer(self):
        frontend, play = await self.pair("--shutdown-timeout", "0.5")
        streams = await self.streaming(frontend, max_tokens=2000)
        began = time.monotonic()
        self.assertEqual(play.end(signal.SIGTERM), 0)
        self.assertGreater(time.monotonic() - began, 0.5)
        self.assertLess(time.monotonic() - began, 3)
        for s in await asyncio.gather(*streams):
            self.assertEqual(s.finish, "abort")


if __name__ == "__main__":
    main()
