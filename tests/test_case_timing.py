"""Series of timings that must not be reported as they are, and what is said of each."""

from __future__ import annotations

import pytest

from configurator.bench.clock import Samples, Timer, judge, take

PEAK = 4.8e12  # bytes per second
L2 = 52_428_800

# name, bytes read, samples in ms, median after three, what is said
SERIES = [
    (
        "compile-first", 1_073_741_824, [812.0, 3.1, 0.52, 0.5, 0.51, 0.5, 0.49, 0.51], 0.5, (),
    ),
    (
        "no-sync", 536_870_912, [0.022, 0.021, 0.021, 0.021, 0.022, 0.021, 0.021, 0.021], 0.021,
        (
            "implied rate 25.6e12 B/s is above the device limit: "
            "timing not synchronised, or data not read",
        ),
    ),
    (
        "in-cache", 16_777_216, [0.02, 0.005, 0.0042, 0.004, 0.004, 0.0041, 0.004, 0.004], 0.004,
        ("working set smaller than the last-level cache: not a memory-bandwidth figure",),
    ),
    ("steady", 1_073_741_824, [0.31, 0.3, 0.29, 0.28, 0.28, 0.29, 0.28, 0.28], 0.28, ()),
]  # fmt: skip


@pytest.mark.parametrize(("name", "bytes_", "samples", "median_ms", "flags"), SERIES)
def test_series(name, bytes_, samples, median_ms, flags):
    found = judge(
        [ms / 1e3 for ms in samples],
        warmup=3,
        bytes_read=bytes_,
        limit_bytes_per_s=PEAK,
        cache_bytes=L2,
    )
    assert found.median_s == pytest.approx(median_ms / 1e3)
    assert found.flags == flags
    assert found.ok == (not flags)


def test_steady_series_implies_a_bandwidth():
    # 1,073,741,824 bytes in 0.28 ms = 3,834,792,228,571 B/s
    found = judge([0.28e-3] * 4, warmup=3, bytes_read=1_073_741_824, limit_bytes_per_s=PEAK)
    assert int(found.bytes_per_s) == 3_834_792_228_571


def test_the_mean_with_compilation_is_not_reported():
    # (812,000 + 3100 + 520 + 500 + 510 + 500 + 490 + 510) / 8 us = 102,266 us
    samples = [s / 1e3 for s in SERIES[0][2]]
    assert judge(samples, warmup=3).median_s < sum(samples) / len(samples) / 100


def test_rotating_through_more_than_the_cache_is_not_flagged():
    found = judge([4e-5] * 4, bytes_read=16_777_216, cache_bytes=L2, working_set_bytes=2 * L2)
    assert found.ok


def test_flops_above_the_peak_are_flagged():
    found = judge([1e-3] * 4, flops=2e9, limit_flops_per_s=1e12)
    assert "2.0e12 FLOP/s are above the device limit" in found.flags[0]


def test_a_series_of_warm_up_alone_is_refused():
    with pytest.raises(ValueError, match="3 samples leave nothing after a warm-up of 3"):
        judge([1.0, 1.0, 1.0])


BAD = [float("nan"), float("inf"), -1e-3]


@pytest.mark.parametrize("bad", BAD)
def test_a_sample_that_is_no_time_is_left_out_and_said(bad):
    found = judge([1e-3, bad, 2e-3, 2e-3, 3e-3], warmup=0, bytes_read=1000)
    assert (found.median_s, found.best_s, found.samples) == (2e-3, 1e-3, 4)
    assert found.flags[0] == "1 of 5 samples are no time: left out"
    with pytest.raises(ValueError, match="leave nothing"):
        judge([bad, bad], warmup=0)


def test_times_shorter_than_the_clock_can_tell_give_no_rate():
    found = judge([0.0] * 4, warmup=0, bytes_read=1000, flops=1000)
    assert (found.bytes_per_s, found.flops_per_s) == (None, None)
    assert found.flags == ("samples of 0 s: shorter than the clock can tell",)


def test_two_speeds_are_said_and_one_outlier_is_not():
    assert "two speeds" in judge([1e-3, 2e-3] * 5, warmup=0).flags[0]
    assert judge([1e-3] * 9 + [1.0], warmup=0).ok


class Simulated:
    """A device whose calls take what a script says, on a clock of its own."""

    def __init__(self, seconds, disturbed=()):
        self.seconds, self.disturbed = seconds, set(disturbed)
        self.clock, self.calls, self.interruptions = 0.0, [], 0

    def timer(self):
        return Timer(measure=self.measure, now=lambda: self.clock, disturbances=self.count)

    def count(self):
        return self.interruptions

    def measure(self, call, i):
        call(i)
        n = len(self.calls)
        seconds = self.seconds[min(n, len(self.seconds) - 1)]
        if n in self.disturbed:
            self.interruptions += 1
            seconds *= 10
        self.calls.append(i)
        self.clock += seconds
        return seconds


def test_compilation_is_kept_apart_and_warm_up_lasts_until_steady():
    device = Simulated([30.0, 0.008, 0.004, 0.002, 0.001, 0.001, 0.001, 0.001, 0.001])
    found = take(lambda i: None, device.timer(), limit_s=1.0)
    assert found.first_s == 30.0
    assert found.warmup >= 6  # 8, 4, 2, 1, 1, 1: halves agree only once the slow ones are over
    assert found.steady
    assert set(found.seconds) == {0.001}


def test_inputs_rotate():
    device = Simulated([0.01])
    take(lambda i: None, device.timer(), limit_s=0.5)
    assert device.calls == list(range(len(device.calls)))


def test_interrupted_samples_are_left_out_where_enough_others_are_there():
    device = Simulated([0.001], disturbed=range(8, 12))
    found = take(lambda i: None, device.timer(), limit_s=0.5, min_samples=7)
    assert sum(found.disturbed) == 4
    assert set(found.trusted()) == {0.001}
    assert found.flags() == ()


def test_a_busy_machine_is_named():
    device = Simulated([0.001], disturbed=range(1000))
    found = take(lambda i: None, device.timer(), limit_s=0.2)
    assert found.trusted() == found.seconds
    assert "other programs ran" in found.flags()[-1]


def test_a_slow_call_ends_soon_after_its_limit():
    device = Simulated([5.0])
    found = take(lambda i: None, device.timer(), limit_s=1.0)
    assert len(device.calls) == 3  # first, one to warm up, one sample
    assert found.trusted() == [5.0]
    assert "too few samples" in found.flags()[-1]


def test_unsteady_series_are_flagged():
    device = Simulated([0.001 * 1.5**n for n in range(40)])
    found = take(lambda i: None, device.timer(), limit_s=0.5)
    assert found.flags()[0] == "did not become steady within the time allowed"


def test_few_undisturbed_samples_are_not_enough():
    found = Samples(first_s=1, warmup=4, seconds=[1, 2, 3], disturbed=[False, True, True])
    assert found.trusted() == [1, 2, 3]
