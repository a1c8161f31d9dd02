"""Reply cache: a retried request executes at most once."""

from __future__ import annotations

import threading
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from estimatorkit.core.errors import AbortedError, CancelledError
from estimatorkit.distribute.tasks.reply_cache import Channels, ReplyCache

attempts = st.lists(st.sampled_from(["question lost", "answer lost"]), max_size=4)
"""What happens to a question before its answer arrives."""


@given(st.lists(attempts, max_size=10))
def test_each_request_executes_once(questions: list[list[str]]) -> None:
    answers, worked_on = ReplyCache(), []

    def ask(number: int) -> int:
        def work() -> int:
            worked_on.append(number)
            return 10 * number

        return answers.execute_once(number, work)

    for number, lost in enumerate(questions, 1):
        for what in lost:
            if what == "answer lost":
                ask(number)
        assert ask(number) == 10 * number
    assert worked_on == list(range(1, len(questions) + 1))


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=6))
def test_concurrent_retries_get_one_reply(streams: list[int]) -> None:
    """Question after question, asked by so many streams, one of which is the newest."""
    answers, worked_on = ReplyCache(), []
    for number, count in enumerate(streams, 1):
        begin = threading.Barrier(count)
        got: list[int] = []

        def ask(number: int = number, begin: Any = begin, got: list[int] = got) -> None:
            def work() -> int:
                worked_on.append(number)
                return 10 * number

            begin.wait()
            got.append(answers.execute_once(number, work))

        threads = [threading.Thread(target=ask) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert got == [10 * number] * count
    assert worked_on == list(range(1, len(streams) + 1))


def test_reply_in_progress_is_waited_for() -> None:
    answers = ReplyCache()
    at_work, go_on = threading.Event(), threading.Event()
    got: list[str] = []

    def slow() -> str:
        at_work.set()
        assert go_on.wait(60)
        return "the first's"

    first = threading.Thread(target=lambda: got.append(answers.execute_once(1, slow)))
    first.start()
    assert at_work.wait(60)
    second = threading.Thread(target=lambda: got.append(answers.execute_once(1, lambda: "another")))
    second.start()
    with pytest.raises(AbortedError):
        answers.execute_once(2, lambda: "too early")
    assert not got
    go_on.set()
    first.join(60)
    second.join(60)
    assert got == ["the first's", "the first's"]


def test_waiting_retry_executes_if_first_gave_up() -> None:
    answers = ReplyCache()
    at_work, go_on = threading.Event(), threading.Event()
    raised: list[Exception] = []

    def given_up() -> str:
        at_work.set()
        assert go_on.wait(60)
        raise CancelledError(None, None, "gone")

    def first() -> None:
        try:
            answers.execute_once(1, given_up)
        except CancelledError as error:
            raised.append(error)

    got: list[str] = []
    threads = [threading.Thread(target=first)]
    threads[0].start()
    assert at_work.wait(60)
    threads.append(
        threading.Thread(target=lambda: got.append(answers.execute_once(1, lambda: "done")))
    )
    threads[1].start()
    go_on.set()
    for thread in threads:
        thread.join(60)
    assert len(raised) == 1
    assert got == ["done"]


@given(st.integers(0, 5), st.integers(0, 8))
def test_only_last_and_next_request_are_accepted(asked: int, number: int) -> None:
    answers = ReplyCache()
    for each in range(1, asked + 1):
        answers.execute_once(each, lambda each=each: each)
    if number in (asked, asked + 1) and number:
        assert answers.execute_once(number, lambda: number) == number
    elif number:
        with pytest.raises(AbortedError, match=f"Request {number} arrived after request {asked}"):
            answers.execute_once(number, lambda: number)


events = st.lists(
    st.tuples(st.sampled_from(["opened", "closed", "broke", "later"]), st.sampled_from("ab")),
    max_size=30,
)


@given(events)
def test_channels_are_kept_while_in_use(happened: list[tuple[str, str]]) -> None:
    """`streams` and `broken` are what must be so; each second of 'later' counts."""
    channels, now, patience = Channels(), 0.0, 2.0
    streams: dict[bytes, int] = {}
    broken: dict[bytes, float] = {}
    kept: dict[bytes, ReplyCache] = {}
    for event, name in happened:
        channel = name.encode()
        if event == "opened":
            answers = channels.opened(channel)
            assert kept.setdefault(channel, answers) is answers
            streams[channel] = streams.get(channel, 0) + 1
        elif event == "later":
            now += 1
        elif streams.get(channel):
            if event == "closed":
                channels.closed(channel)
                for each in (streams, broken, kept):
                    each.pop(channel, None)
            else:
                channels.broke(channel, now + patience)
                streams[channel] -= 1
                broken[channel] = now + patience
        some_left = channels.forget_broken(now)
        for each in [each for each in broken if not streams[each] and broken[each] <= now]:
            for held in (streams, broken, kept):
                del held[each]
        assert {each for each in (b"a", b"b") if each in channels} == set(kept)
        assert some_left == any(not streams[each] for each in broken)
        assert len(channels) == len(kept)
