"""What became of each packet sent is known exactly once, in bounded memory, whatever a peer says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfu.core.media.delivery import FEWEST, MOST, Delivered, Delivery
from shared.rtc.transport_cc import TransportFeedback


def sent(delivery: Delivery, count: int, *, now: float = 10.0, size: int = 1000) -> None:
    for _ in range(count):
        delivery.sent(size=size, ssrc=5, now=now)


def feedback(base: int, *arrivals: int | None, reference: int = 100) -> TransportFeedback:
    return TransportFeedback(sender=1, media=2, base=base & 0xFFFF, reference=reference, count=0, arrivals=arrivals)


def test_each_packet_has_the_next_number_across_the_wrap() -> None:
    delivery = Delivery()
    sent(delivery, 65535)
    assert delivery.sequence == 65535
    sent(delivery, 1)
    assert delivery.sequence == 0
    assert delivery.heard(feedback(65535, 3, None)) == [Delivered(10.0, (100 * 256 + 3) / 4000, 1000, 5)]


def test_arrivals_and_losses_are_told_in_order_with_their_times() -> None:
    delivery = Delivery()
    sent(delivery, 1, now=10.0, size=100)
    sent(delivery, 2, now=10.1, size=200)
    assert delivery.heard(feedback(0, 4, None, 12)) == [
        Delivered(10.0, 6.401, 100, 5),
        Delivered(10.1, None, 200, 5),
        Delivered(10.1, 6.403, 200, 5),
    ]
    assert (delivery.acknowledged, delivery.acknowledged_bytes, delivery.lost) == (2, 300, 1)


def test_a_repeated_feedback_tells_nothing_new() -> None:
    delivery = Delivery()
    sent(delivery, 3)
    delivery.heard(feedback(0, 4, None, 12))
    assert delivery.heard(feedback(0, 4, None, 12)) == []
    assert (delivery.acknowledged, delivery.lost, delivery.feedbacks) == (2, 1, 2)


def test_a_loss_is_taken_back_by_a_late_arrival() -> None:
    delivery = Delivery()
    sent(delivery, 3)
    delivery.heard(feedback(0, 4, None, 12))
    assert [each.arrived_at for each in delivery.heard(feedback(1, 40, 12))] == [6.41]
    assert (delivery.acknowledged, delivery.lost) == (3, 0)


def test_a_feedback_out_of_order_tells_only_arrivals() -> None:
    delivery = Delivery()
    sent(delivery, 6)
    delivery.heard(feedback(3, 1, 1, 1))
    assert [each.arrived_at is None for each in delivery.heard(feedback(0, 1, None, 1))] == [False, False]
    assert (delivery.acknowledged, delivery.lost) == (5, 0)


def test_what_was_never_sent_is_never_acknowledged() -> None:
    delivery = Delivery()
    assert delivery.heard(feedback(0, 1, None, 1)) == []
    sent(delivery, 2)
    assert len(delivery.heard(feedback(0, 1, 1, 1, None))) == 2
    sent(delivery, 1)
    assert len(delivery.heard(feedback(2, 1))) == 1


def test_reference_time_goes_on_across_its_wrap() -> None:
    delivery = Delivery()
    sent(delivery, 2)
    (first,) = delivery.heard(feedback(0, 0, reference=0xFFFFFF))
    (second,) = delivery.heard(feedback(1, 0, reference=1))
    assert first.arrived_at is not None
    assert second.arrived_at is not None
    assert second.arrived_at - first.arrived_at == pytest.approx(2 * 0.064)


def test_memory_grows_only_for_what_feedback_will_tell_of() -> None:
    silent, slow = Delivery(), Delivery()
    sent(silent, 1000)
    assert len(silent.heard(feedback(0, *[1] * 1000))) == FEWEST
    sent(slow, 1)
    slow.heard(feedback(0, 1))
    sent(slow, 1000)
    assert len(slow.heard(feedback(1, *[1] * 1000))) == 1000
    sent(slow, 2 * MOST)
    assert len(slow.heard(feedback(1001 + MOST, *[1] * MOST))) == MOST


def test_what_is_old_or_told_makes_room() -> None:
    delivery = Delivery()
    for number in range(4 * FEWEST):
        sent(delivery, 1, now=10.0 + number / 10)
        if number % 2:
            delivery.heard(feedback(number, 1))
    assert len(delivery.heard(feedback(0, *[1] * 4 * FEWEST))) <= FEWEST


def test_rate_is_of_arrival_by_the_peers_clock() -> None:
    delivery = Delivery()
    sent(delivery, 101, now=10.0)
    assert delivery.receive_rate_bps is None
    delivery.heard(feedback(0, *range(0, 1000, 40)))
    assert delivery.receive_rate_bps is None, "a quarter of a second is too short"
    delivery.heard(feedback(25, *range(1000, 4040, 40)))
    assert delivery.receive_rate_bps == 1000 * 8 * 100, "a packet of 1000 bytes each 10 ms"


def test_a_clock_that_goes_back_harms_nothing() -> None:
    delivery = Delivery()
    sent(delivery, 200)
    delivery.heard(feedback(0, 5000, reference=9000))
    delivery.heard(feedback(1, *range(0, 4040, 40), reference=50))
    assert delivery.receive_rate_bps == 800_000


@given(
    st.lists(
        st.tuples(
            st.integers(0, 400), st.integers(-700, 700), st.lists(st.one_of(st.none(), st.integers(0, 99)), max_size=99)
        ),
        max_size=30,
    )
)
def test_counts_add_up_whatever_is_told(history: list[tuple[int, int, list[int | None]]]) -> None:
    delivery = Delivery()
    known: dict[float, list[bool]] = {}
    for step, (count, offset, arrivals) in enumerate(history):
        for number in range(count):
            delivery.sent(size=1, ssrc=5, now=10.0 + step + number / 1000)
        for each in delivery.heard(feedback(delivery.packets + offset, *arrivals)):
            known.setdefault(each.sent_at, []).append(each.arrived_at is not None)
    for told in known.values():
        assert told in ([True], [False], [False, True])
    assert delivery.acknowledged == delivery.acknowledged_bytes == sum(told[-1] for told in known.values())
    assert delivery.lost == sum(not told[-1] for told in known.values())
    assert delivery.acknowledged + delivery.lost <= delivery.packets
