"""Ctrl-C is noted, and the handler that was there decides whether it is an interrupt."""

import signal
import threading

import pytest

from skcontrast._runtime import recorded_interrupts  # private: the guards around calls into torch

press = signal.raise_signal

pytestmark = pytest.mark.usefixtures("interruptible")


def test_an_interrupt_is_noted_and_raised():
    with pytest.raises(KeyboardInterrupt), recorded_interrupts() as interrupts:
        press(signal.SIGINT)
    assert interrupts
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_keyboard_interrupt_of_other_origin_is_not_noted():
    with pytest.raises(KeyboardInterrupt), recorded_interrupts() as interrupts:
        raise KeyboardInterrupt
    assert not interrupts


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_a_handler_of_the_users_own_decides_whether_there_is_an_interrupt(error):
    def handler(number, frame):
        if error is not None:
            raise error

    signal.signal(signal.SIGINT, handler)
    try:
        with recorded_interrupts() as interrupts:
            press(signal.SIGINT)
    except KeyboardInterrupt:
        pass
    assert bool(interrupts) is (error is KeyboardInterrupt)
    assert signal.getsignal(signal.SIGINT) is handler


def test_in_other_threads_and_where_ctrl_c_is_ignored_nothing_is_installed():
    def enter():
        with recorded_interrupts():
            handlers.append(signal.getsignal(signal.SIGINT))

    handlers = []
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    enter()
    assert handlers == [signal.default_int_handler, signal.SIG_IGN]
