"""Ctrl-C is noted whenever it comes, and raised when it is released."""

import signal
import threading
from contextlib import suppress

import pytest

from skcontrast._runtime._interrupts import NotedInterrupt

press = signal.raise_signal

pytestmark = pytest.mark.usefixtures("interruptible")


class EndsLate(NotedInterrupt):
    """A context in which a signal comes after its body and before its end."""

    def __exit__(self, *error):
        press(signal.SIGINT)
        super().__exit__(*error)


def test_a_burst_of_interrupts_leaves_no_handler_behind():
    with pytest.raises(KeyboardInterrupt), EndsLate() as noted:
        press(signal.SIGINT)
    assert noted.came
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_without_an_interrupt_nothing_happens():
    with NotedInterrupt() as held, NotedInterrupt() as noted, noted.released():
        pass
    assert not held.came and not noted.came
    with pytest.raises(ValueError, match="broken"), NotedInterrupt():
        raise ValueError("broken")


def test_a_noted_interrupt_is_raised_where_it_is_released():
    with NotedInterrupt() as noted:
        with pytest.raises(KeyboardInterrupt), noted.released():
            press(signal.SIGINT)
            pytest.fail("the interrupt was held")
        assert noted.came
        press(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            press(signal.SIGINT)


def test_an_interrupt_that_was_lost_on_its_way_has_come():
    # suppress does what Python does in __del__
    with NotedInterrupt() as noted, noted.released(), suppress(BaseException):
        press(signal.SIGINT)
    assert noted.came


def test_the_inner_of_two_contexts_decides_and_both_note():
    with NotedInterrupt() as outer, outer.released(), NotedInterrupt() as inner:
        press(signal.SIGINT)
        reached = True
    assert reached and inner.came and outer.came


class Patience(Exception):
    pass


@pytest.mark.parametrize("error, came", [(None, False), (KeyboardInterrupt, True)])
def test_a_handler_of_the_users_own_decides_whether_there_is_an_interrupt(error, came):
    def handler(number, frame):
        calls.append(number)
        if error is not None:
            raise error

    calls = []
    signal.signal(signal.SIGINT, handler)
    with NotedInterrupt() as noted:
        press(signal.SIGINT)
    assert noted.came is came and calls == [signal.SIGINT]
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_handler_that_is_set_within_the_context_stays():
    with NotedInterrupt():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    with NotedInterrupt() as held:
        press(signal.SIGINT)
    assert not held.came


def test_in_other_threads_nothing_happens():
    def enter():
        with NotedInterrupt():
            handlers.append(signal.getsignal(signal.SIGINT))

    handlers = []
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert handlers == [signal.default_int_handler]
