"""What the comparison of streams sees: all that is said, not how it is cut into events."""
import json
import unittest

from shapes import answer


def stream(*events):
    return "".join(f"data: {json.dumps(e)}\n\n" for e in events) + "data: [DONE]\n\n"


def chunk(tokens, finish=None, **more):
    logprobs = {"tokens": ["t"] * tokens, "token_logprobs": [-0.5] * tokens}
    return {"id": "cmpl-0123456789abcdef", "object": "text_completion", "choices": [
        {"index": 0, "text": "t" * tokens, "logprobs": logprobs, "finish_reason": finish}], **more}


def seen(*events, by_chunk=False):
    return answer(200, "text/event-stream; charset=utf-8", stream(*events), by_chunk)


class Streams(unittest.TestCase):
    one_by_one = [chunk(1), chunk(1), chunk(1), chunk(1, "length", system_fingerprint="x")]

    def test_two_tokens_in_one_event_say_the_same(self):
        twos = [chunk(1), chunk(2), chunk(1, "length", system_fingerprint="x")]
        self.assertEqual(seen(*self.one_by_one), seen(*twos))
        self.assertNotEqual(seen(*self.one_by_one, by_chunk=True), seen(*twos, by_chunk=True))

    def test_all_tokens_in_one_event_say_the_same(self):
        self.assertEqual(seen(*self.one_by_one),
                         seen(chunk(4, "length", system_fingerprint="x")))

    def test_a_token_less_is_seen(self):
        self.assertNotEqual(seen(*self.one_by_one),
                            seen(chunk(3, "length", system_fingerprint="x")))

    def test_another_end_is_seen(self):
        self.assertNotEqual(seen(*self.one_by_one),
                            seen(chunk(4, "stop", system_fingerprint="x")))

    def test_a_key_less_is_seen(self):
        self.assertNotEqual(seen(*self.one_by_one), seen(chunk(4, "length")))

    def test_the_role_of_a_chat_may_come_with_its_first_token(self):
        def chat(**delta):
            return {"object": "chat.completion.chunk", "choices": [
                {"index": 0, "delta": delta, "finish_reason": None}]}
        self.assertEqual(seen(chat(role="assistant", content=""), chat(content="a")),
                         seen(chat(role="assistant", content="a")))

    def test_named_events_that_grow_a_text_are_not_counted(self):
        def named(n):
            return "".join(f"event: {kind}\ndata: {json.dumps({'type': kind, 'delta': 'a'})}\n\n"
                           for kind in ["begin", *["grow"] * n, "end"])
        one, four, none = (answer(200, "text/event-stream", named(n), False) for n in (1, 4, 0))
        self.assertEqual(one, four)
        self.assertNotEqual(one, none)


if __name__ == "__main__":
    unittest.main()
