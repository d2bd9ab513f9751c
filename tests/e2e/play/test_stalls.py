"""Peers that stand still for a while."""
import asyncio
import signal
import time

from peers import PairTest, main, measured


class Stalls(PairTest):
    async def test_a_frontend_that_stands_still_catches_up(self):
        await measured(self.stop_frontend, tries=3)

    async def stop_frontend(self):
        frontend, play = await self.pair()
        streams = await self.streaming(frontend)
        frontend.send(signal.SIGSTOP)
        await asyncio.sleep(2)
        frontend.send(signal.SIGCONT)
        for s in await asyncio.gather(*streams):
            self.assertEqual((s.finish, len(s.tokens)), ("length", 100))
        await self.serves(frontend)
        self.assertEqual(play.end(), 0)
        # The engine never noticed.
        self.assertLess(play.summary()["late_us"]["p50"], 20000)

    async def test_an_engine_that_stands_still_catches_up(self):
        frontend, play = await self.pair()
        streams = await self.streaming(frontend, max_tokens=400)
        play.send(signal.SIGSTOP)
        await asyncio.sleep(2)
        play.send(signal.SIGCONT)
        began = time.monotonic()
        for s in await asyncio.gather(*streams):
            self.assertEqual((s.finish, len(s.tokens)), ("length", 400))
        # Deadlines are absolute: they had all passed meanwhile.
        self.assertLess(time.monotonic() - began, 1.2)
        await self.serves(frontend)
        self.assertEqual(play.end(), 0)


if __name__ == "__main__":
    main()
