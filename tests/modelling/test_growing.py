"""Times of large sizes follow power laws: those of known functions, and where another cost takes over."""

from __future__ import annotations

import math

import pytest

from perfmodel.modelling.growing import Growth, Point, growth


def grown(costs: dict[str, tuple[float, float]], value: int, most: int = 10**9, step: int = 1) -> Growth | None:
    """Returns how the maximum of costs, each a factor and an exponent, grows with a size that `step` divides."""

    def at(n: int) -> Point | None:
        if n > most or n % step:
            return None
        found = {name: factor * n**exponent for name, (factor, exponent) in costs.items()}
        return Point(n, max(found.values()), dict(sorted(found.items(), key=lambda each: -each[1])))

    here = at(value)
    assert here is not None
    return growth(here, "n", lambda values: [at(each) for each in values])


CUBE = {"launch": (3e-6, 0.0), "products": (1e-12, 3.0)}


@pytest.mark.parametrize("value", [8, 64, 128, 256, 4096])
def test_the_law_and_its_beginning_are_found_from_both_sides(value: int) -> None:
    found = grown(CUBE, value)
    assert found is not None
    law = found.law
    if law is None:  # the launch still limits the time six doublings on
        assert value == 8
        return
    assert (law.exponent, law.limit) == (3, "products")
    assert law.seconds == pytest.approx(1e-12)
    if value < 4096:
        assert law.start == pytest.approx(3e6 ** (1 / 3), rel=0.05)
        assert str(law) == "as n grows: 1e-12 s · n³ (products); below n = 140 launch"


def test_what_limits_all_sizes_has_no_beginning() -> None:
    found = grown({"products": (2e-9, 1.0)}, 1024)
    assert found is not None
    assert str(found.law) == "as n grows: 2e-09 s · n (products)"
    assert found.sentences("products")[0] == "twice n takes 2 times as long"


def test_a_time_that_stays_is_said_as_one() -> None:
    found = grown({"launch": (3e-6, 0.0)}, 64)
    assert found is not None
    assert str(found.law) == "as n grows: 3 us (launch)"


def test_no_power_is_no_law() -> None:
    found = grown({"odd": (1e-9, 1.5)}, 1024)
    assert found is not None
    assert found.law is None
    assert found.exponent == pytest.approx(1.5)


def test_sizes_that_are_not_possible_are_left_out() -> None:
    assert grown(CUBE, 64, most=100) is None
    found = grown(CUBE, 1024, step=256)
    assert found is not None
    assert found.law is not None
    assert found.law.start is None  # nothing smaller than 256 can be looked at


@pytest.mark.parametrize(
    ("value", "most", "change"), [(50, 10**9, 400), (50, 400, 400), (50, 200, None), (20, 640, 320)]
)
def test_another_limit_begins_at_the_first_doubling_that_has_it(value: int, most: int, change: int | None) -> None:
    found = grown({"launch": (3e-6, 0.0), "waits": (1e-8, 1.0)}, value, most=most)
    assert found is not None
    assert found.change == (change and (change, "waits"))


@pytest.mark.parametrize("value", [-4, 0])
def test_what_is_no_positive_number_does_not_grow(value: int) -> None:
    assert grown({"launch": (3e-6, 0.0), "products": (1e-7, 2.0)}, value) is None


def test_the_words_for_another_limit() -> None:
    found = grown({"launch": (3e-6, 0.0), "waits": (1e-8, 1.0)}, 250)
    assert found is not None
    assert math.isclose(found.times, 5e-6 / 3e-6)
    assert found.sentences("launch")[0] == "twice n takes 1.67 times as long; limited by waits then"
