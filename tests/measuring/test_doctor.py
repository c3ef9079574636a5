"""Devices with planted faults are examined by a simulated clock: each fault is named, and a sound device passes."""

from __future__ import annotations

import json
import math
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from perfmodel.basics.errors import MeasurementError
from perfmodel.cli.command_line import main
from perfmodel.device import Device
from perfmodel.kernels.arguments import Scalar
from perfmodel.kernels.launch import Launch
from perfmodel.measuring.doctor import Diagnosis, Finding, Quantity, Severity, examine
from perfmodel.measuring.doctor.clock_step import clock_step
from perfmodel.measuring.doctor.gpu_state import GpuState
from perfmodel.measuring.doctor.machine_load import MachineLoad
from perfmodel.measuring.protocol import Protocol, Timing
from perfmodel.report.diagnosis_table import WIDTH, as_text

DEVICE = Device(
    key="simulated-000000",
    name="Simulated",
    platform="Simulation",
    vendor="Nobody",
    driver="1",
    opencl_version="OpenCL 3.0",
    kind="gpu",
    compute_units=4,
    clock_mhz=0,
    global_memory=2**30,
    max_allocation=2**28,
    local_memory=2**15,
    max_work_group_size=1024,
    max_work_item_sizes=(1024, 1024, 64),
    sub_group_size=32,
    double_precision=True,
    half_precision=False,
)


def never_slow(now: float) -> float:
    return 1.0


def as_it_is(seconds: float) -> float:
    return seconds


@dataclass
class Simulated:
    """A device and its host in simulated time.

    Attributes:
        overhead_s: seconds of a launch.
        round_s: seconds of a round of the doctor's loop.
        step_s: seconds of the profiling clock's step.
        noise: by which part of themselves runs differ, at random.
        slowness: how many times as long a run takes that begins at some time.
        told: what events say of a run of so many seconds.
        gap_s: seconds of the host between runs.
    """

    overhead_s: float = 5e-6
    round_s: float = 8e-9
    step_s: float = 1e-9
    noise: float = 1e-3
    slowness: Callable[[float], float] = never_slow
    told: Callable[[float], float] = as_it_is
    gap_s: float = 2e-5
    seed: int = 0
    clock: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def now(self) -> float:
        return self.clock

    def time(self, launch: Launch, protocol: Protocol) -> Timing:
        trials = []
        self.clock += 1e-3  # of a call
        for _ in range(protocol.trials):
            rounds = sum(int(argument.number) for argument in launch.arguments if isinstance(argument, Scalar))
            seconds = self.overhead_s * (1 + 0.05 * self._random.random()) + rounds * self.round_s
            seconds *= self.slowness(self.clock) * (1 + self.noise * self._random.random())
            begin, end = self.clock, self.clock + self.told(seconds)
            self.clock += seconds + self.gap_s
            steps = math.floor(end / self.step_s) - math.floor(begin / self.step_s)
            nanoseconds = round(steps * self.step_s * 1e9)
            if not nanoseconds:
                raise MeasurementError("the profiling clock of simulated-000000 gave 0 ns for kernel 'k': use another")
            trials.append(nanoseconds * 1e-9)
        return Timing(tuple(trials), protocol.dropped, protocol.statistic)

    def examined(self, watch_s: float = 5.0) -> Diagnosis:
        return examine(DEVICE, self.time, watch_s=watch_s, now=self.now)


def severities(diagnosis: Diagnosis) -> dict[str, str]:
    """Returns the severity of each finding that is not as it should be."""
    return {f.name: str(f.severity) for f in diagnosis.findings if f.severity != Severity.OK}


def value(diagnosis: Diagnosis, finding: str, quantity: str) -> float:
    found = diagnosis.finding(finding).value(quantity)
    assert found is not None
    return found


# --- sound devices


@given(
    overhead_s=st.floats(1e-7, 5e-5),
    round_s=st.floats(1e-9, 1e-6),
    noise=st.floats(0, 0.01),
    seed=st.integers(0, 1000),
)
@settings(max_examples=15, deadline=None)
def test_a_sound_device_is_trusted(overhead_s: float, round_s: float, noise: float, seed: int) -> None:
    diagnosis = Simulated(overhead_s, round_s, noise=noise, seed=seed).examined()
    assert diagnosis.trusted
    assert severities(diagnosis) == {}
    assert value(diagnosis, "launch overhead", "median") == pytest.approx(overhead_s * 1.025, rel=0.02)
    assert value(diagnosis, "proportionality", "four times") == pytest.approx(4, rel=0.01)
    assert value(diagnosis, "events and host clock", "events per host time") == pytest.approx(1, rel=0.01)
    assert [promise.precision for promise in diagnosis.promises][-1] <= 0.01
    assert diagnosis.promises[0].from_s >= 3 * overhead_s
    assert diagnosis.verdict.startswith("Times above ")


def test_the_times_that_are_promised_are_as_precise_as_promised() -> None:
    """Nine of ten times of such a kernel differ by no more, and as much again for clock and launch; 80 of 100 do."""
    device = Simulated(noise=0.02)
    promises = device.examined().promises
    assert [promise.precision == 0.01 for promise in promises] == [True, False]
    for promise in promises:
        rounds = (promise.from_s - device.overhead_s) / device.round_s
        launch = Launch(
            source="",
            kernel_name="k",
            global_size=(1,),
            local_size=(1,),
            arguments=(Scalar("rounds", "int32", round(rounds)),),
        )
        times = [device.time(launch, Protocol("unified", 30, 4, "min")).seconds for _ in range(100)]
        middle = sorted(times)[50]
        assert sum(abs(seconds / middle - 1) <= 2 * promise.precision for seconds in times) >= 80


# --- faults, each named


@pytest.mark.parametrize(("step_s", "severity"), [(1e-6, "ok"), (5e-6, "doubtful"), (1e-3, "bad"), (1.5625e-2, "bad")])
def test_a_coarse_clock_is_found_with_its_step(step_s: float, severity: str) -> None:
    diagnosis = Simulated(step_s=step_s).examined()
    assert value(diagnosis, "event resolution", "step") == pytest.approx(step_s, rel=1e-6)
    assert diagnosis.finding("event resolution").severity == severity
    assert diagnosis.trusted == (severity != "bad")
    assert severities(diagnosis).keys() <= {"event resolution"}
    assert all(promise.from_s >= step_s / promise.precision for promise in diagnosis.promises)


def test_a_driver_that_claims_a_finer_step_is_shown_beside_what_was_measured() -> None:
    device = Simulated(step_s=1e-3)
    diagnosis = examine(DEVICE, device.time, watch_s=1.0, now=device.now, claimed_step_s=1e-9)
    assert value(diagnosis, "event resolution", "claimed") == 1e-9
    assert "steps of 1 ms" in diagnosis.verdict


def test_jitter_makes_times_imprecise() -> None:
    diagnosis = Simulated(noise=3.0).examined()
    assert severities(diagnosis)["precision of a time"] != "ok"
    assert severities(diagnosis)["competing load"] == "doubtful"
    calm = Simulated(noise=0.3).examined()
    assert calm.trusted  # minima of 26 agree, and a verdict says how well
    assert calm.finding("competing load").severity == "doubtful"
    assert 0.005 < calm.promises[-1].precision < 0.05


def test_throttling_after_a_second_is_a_drift() -> None:
    diagnosis = Simulated(slowness=lambda now: 1.3 if now > 1 else 1.0).examined()
    assert not diagnosis.trusted
    assert value(diagnosis, "clock stability", "drift") == pytest.approx(0.3, abs=0.01)
    assert diagnosis.finding("clock stability").severity == "bad"
    assert "its times grew by 30 %" in diagnosis.verdict


@given(seconds=st.floats(0.8, 2.5), factor=st.floats(1.1, 4))
@settings(max_examples=10, deadline=None)
def test_a_warm_up_is_found_with_its_length(seconds: float, factor: float) -> None:
    diagnosis = Simulated(slowness=lambda now: factor if now < seconds else 1.0).examined()
    assert severities(diagnosis) == {"clock stability": "doubtful"}
    assert value(diagnosis, "clock stability", "warm-up") == pytest.approx(seconds, abs=0.15)
    assert diagnosis.trusted
    assert "run something on it for that long" in diagnosis.finding("clock stability").advice


@given(part=st.floats(0.2, 0.5), burst_s=st.floats(5e-3, 1.2e-2))
@settings(max_examples=10, deadline=None)
def test_bursts_of_load_are_found_with_their_share(part: float, burst_s: float) -> None:
    """Bursts shorter than a measurement leave its minimum alone."""
    diagnosis = Simulated(slowness=lambda now: 2.0 if random.Random(now // burst_s).random() < part else 1.0).examined()
    # Runs that are slow take twice as long, so that they are half as many as the time is long.
    expected = part / 2 / (part / 2 + 1 - part)
    assert value(diagnosis, "competing load", "slow runs") == pytest.approx(expected, abs=0.08)
    assert severities(diagnosis)["competing load"] == "doubtful"
    assert "take minima" in diagnosis.finding("competing load").advice


def test_load_that_outlasts_measurements_leaves_no_trust() -> None:
    diagnosis = Simulated(slowness=lambda now: 2.0 if now % 0.5 < 0.25 else 1.0).examined()
    assert not diagnosis.trusted
    assert diagnosis.finding("precision of a time").severity == "bad"
    assert value(diagnosis, "competing load", "longest burst") == pytest.approx(0.25, rel=0.2)


@pytest.mark.parametrize(("factor", "words"), [(1e-3, "another unit"), (1e3, "another unit"), (3 / 125, "leave out")])
def test_events_in_a_wrong_unit_are_found(factor: float, words: str) -> None:
    diagnosis = Simulated(told=lambda seconds: seconds * factor).examined()
    assert not diagnosis.trusted
    assert severities(diagnosis)["events and host clock"] == "bad"
    assert value(diagnosis, "events and host clock", "events per host time") == pytest.approx(factor, rel=0.02)
    assert words in diagnosis.finding("events and host clock").advice
    assert diagnosis.finding("proportionality").severity == "ok"


def test_events_that_measure_nothing_of_the_work_are_found() -> None:
    diagnosis = Simulated(told=lambda seconds: 4e-6).examined()
    assert not diagnosis.trusted
    found = severities(diagnosis)
    assert found["events and host clock"] == found["proportionality"] == "bad"
    assert value(diagnosis, "proportionality", "four times") == pytest.approx(1, abs=0.01)


def test_events_that_give_no_time_at_all_are_found() -> None:
    diagnosis = Simulated(told=lambda seconds: 0.0).examined()
    assert not diagnosis.trusted
    assert diagnosis.promises == ()
    assert severities(diagnosis) == {"event resolution": "bad"}
    assert "give no time" in diagnosis.verdict
    assert diagnosis.findings[0].advice.endswith("use another driver")


@pytest.mark.parametrize(("overhead_s", "severity"), [(5e-3, "doubtful"), (5e-2, "bad")])
def test_a_huge_launch_overhead_is_found(overhead_s: float, severity: str) -> None:
    diagnosis = Simulated(overhead_s=overhead_s).examined()
    assert severities(diagnosis)["launch overhead"] == severity
    assert value(diagnosis, "launch overhead", "a tenth from") == pytest.approx(10.25 * overhead_s, rel=0.01)
    assert diagnosis.promises[0].from_s >= 3 * overhead_s


def test_times_that_grow_faster_than_the_work_are_found() -> None:
    """A clock that falls under longer kernels, as under a limit of power."""
    diagnosis = Simulated(told=lambda seconds: seconds**1.5 * 30).examined()
    assert not diagnosis.trusted
    assert value(diagnosis, "proportionality", "twice the work") == pytest.approx(2**1.5, rel=0.05)


# --- the step of a clock


def events(step_ns: float, count: int, seed: int) -> list[float]:
    """Returns times of kernels from 2 µs to 10 ms as differences of time stamps that are whole nanoseconds."""
    chance = random.Random(seed)
    times = []
    for _ in range(count):
        begin = chance.uniform(0, 1e6)
        end = begin + 2e3 * (1e7 / 2e3) ** chance.random()
        stamps = [math.floor(math.floor(stamp / step_ns) * step_ns) for stamp in (begin, end)]
        times.append((stamps[1] - stamps[0]) * 1e-9)
    return times


@given(st.integers(1, 5000), st.integers(0, 1000))
def test_any_step_of_whole_nanoseconds_is_recovered(step_ns: int, seed: int) -> None:
    assert clock_step(events(step_ns, 400, seed)) == pytest.approx(step_ns * 1e-9, rel=1e-9)


@given(st.floats(10, 5000), st.integers(0, 1000))
@example(337.4, 999)  # counts a nanosecond off to both sides, and none between
def test_any_step_is_recovered_though_time_stamps_are_rounded(step_ns: float, seed: int) -> None:
    assert clock_step(events(step_ns, 400, seed)) == pytest.approx(step_ns * 1e-9, rel=1e-3)


# --- what surrounds a device


class Files:
    """A tree of files such as Linux shows, in which a second of sleep changes things."""

    def __init__(self, root: Path, cores: int = 2) -> None:
        self.root = root
        self.ticks = dict.fromkeys(("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"), 0)
        (root / "proc/self").mkdir(parents=True)
        (root / "sys/fs/cgroup/a/b").mkdir(parents=True)
        (root / "proc/self/cgroup").write_text("0::/a/b\n")
        self.write("0.10", 0)

    def write(self, load: str, throttled_us: int) -> None:
        (self.root / "proc/stat").write_text(f"cpu  {' '.join(map(str, self.ticks.values()))} 0 0\ncpu0 1 2\n")
        (self.root / "proc/loadavg").write_text(f"{load} 0.2 0.3 1/82 28984\n")
        (self.root / "sys/fs/cgroup/a/cpu.stat").write_text(
            f"usage_usec 5\nnr_throttled 1\nthrottled_usec {throttled_us}\n"
        )


@pytest.mark.parametrize(
    ("in_quiet", "under_load", "load", "throttled_us", "words"),
    [
        ({"idle": 200}, {"user": 1000}, "0.10", 0, ""),
        ({"idle": 150, "user": 50}, {"user": 1000}, "0.10", 0, "other processes use 25 % of the cores; end them"),
        ({"idle": 200}, {"user": 900, "steal": 100}, "0.10", 0, "the host gives 8 % of the cores to other machines"),
        ({"idle": 200}, {"user": 1000}, "999.5", 0, "999.5 processes wanted"),
        ({"idle": 200}, {"user": 1000}, "0.10", 3 * 10**6, "a quota stops this process for 50 % of the time; raise"),
    ],
)
def test_what_linux_tells_of_others_is_found(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    in_quiet: dict[str, int],
    under_load: dict[str, int],
    load: str,
    throttled_us: int,
    words: str,
) -> None:
    # This process itself takes none, whatever other tests' children have taken when they are reaped meanwhile.
    monkeypatch.setattr(os, "times", lambda: os.times_result((0.0,) * 5))
    files = Files(tmp_path)
    files.write(load, 0)
    clock = [0.0]

    def sleep(seconds: float) -> None:
        clock[0] += seconds
        files.ticks |= {kind: files.ticks[kind] + ticks for kind, ticks in in_quiet.items()}
        files.write(load, 0)

    witness = MachineLoad(tmp_path, sleep, lambda: clock[0])
    witness.before()
    clock[0] += 5
    files.ticks |= {kind: files.ticks[kind] + ticks for kind, ticks in under_load.items()}
    files.write(load, throttled_us)
    witness.under_load(lambda: None)
    finding = witness.finding()
    assert finding
    assert finding.severity == ("doubtful" if words else "ok")
    assert words in finding.advice


def test_a_machine_that_tells_nothing_gives_no_finding(tmp_path: Path) -> None:
    witness = MachineLoad(tmp_path, lambda seconds: None)
    witness.before()
    witness.under_load(lambda: None)
    assert witness.finding() is None


class Tool:
    """nvidia-smi as two drivers have it."""

    def __init__(self, idle: str, loaded: str, programs: str = "", is_new: bool = True) -> None:
        self.answers = [idle, idle, loaded] if ", 80, " in idle else [idle, loaded]
        self.programs = programs
        self.is_new = is_new

    def __call__(self, arguments: Sequence[str]) -> str | None:
        if "compute-apps" in arguments[0]:
            return self.programs
        if ("event_reasons" in arguments[0]) != self.is_new:
            return None
        return self.answers.pop(0)


QUIET = "00000000:0F:00.0, 0, 345, 1980, 0x0000000000000001\n"
OTHER = "00000000:1F:00.0, 90, 345, 1980, 0x0000000000000008\n"


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize(
    ("idle", "loaded", "words"),
    [
        (QUIET, "00000000:0F:00.0, 100, 1980, 1980, 0x0000000000000000\n", ""),
        (QUIET, "00000000:0F:00.0, [N/A], 1980, 1980, [N/A]\n", ""),
        (QUIET, "00000000:0F:00.0, 100, 1200, 1980, 0x0000000000000060\n", "its temperature lowers its clock"),
        (QUIET.replace(" 0,", " 80,"), "00000000:0F:00.0, 100, 1980, 1980, 0x0\n", "others kept it busy for 80 %"),
    ],
)
def test_what_nvidia_smi_tells_is_found(idle: str, loaded: str, words: str, is_new: bool) -> None:
    tool = Tool(OTHER + idle, OTHER + loaded, "00000000:1F:00.0, 7\n00000000:0F:00.0, 1\n", is_new)
    slept: list[float] = []
    witness = GpuState((0, 0x0F, 0), tool, slept.append)
    witness.before()
    assert bool(slept) == ("busy" in words)
    witness.under_load(lambda: None)
    finding = witness.finding()
    assert finding
    assert finding.severity == ("doubtful" if words else "ok")
    assert words in finding.advice
    assert finding.value("other programs") == 1
    assert finding.value("of") == 1980


def test_without_the_tool_or_a_known_gpu_nothing_is_said() -> None:
    for witness in (GpuState(None, lambda arguments: None), GpuState(None, Tool(QUIET + OTHER, QUIET + OTHER))):
        witness.before()
        witness.under_load(lambda: None)
        assert witness.finding() is None


def test_witnesses_look_before_and_after_and_never_condemn() -> None:
    device = Simulated()
    looks: list[float] = []

    class Passer:
        def before(self) -> None:
            looks.append(device.now())

        def under_load(self, keep_busy: Callable[[], None]) -> None:
            looks.append(device.now())
            keep_busy()
            looks.append(device.now())

        def finding(self) -> Finding:
            return Finding(
                name="passer",
                severity=Severity.DOUBTFUL,
                measured=(Quantity("seen", 1.0),),
                fault="somebody passed",
                remedy="wait",
            )

    diagnosis = examine(DEVICE, device.time, watch_s=2.0, now=device.now, witnesses=[Passer()])
    assert looks[0] == 0
    assert looks[1] > 2
    assert looks[2] - looks[1] == pytest.approx(0.01, rel=0.5)
    assert diagnosis.trusted
    assert diagnosis.verdict.endswith("Look at what is doubtful: passer.")


# --- how it is shown


@pytest.mark.parametrize("told", [as_it_is, lambda seconds: seconds / 1000])
def test_the_report_is_as_wide_as_a_terminal_and_has_all(told: Callable[[float], float]) -> None:
    diagnosis = Simulated(told=told).examined(1.0)
    text = as_text(diagnosis)
    assert max(map(len, text.splitlines())) <= WIDTH
    assert all(f"{finding.name} " in text for finding in diagnosis.findings)
    assert " ".join(text.split()).endswith(diagnosis.verdict)
    data = json.loads(json.dumps(diagnosis.as_json()))
    assert data["trusted"] == bool(data["promises"]) == diagnosis.trusted


def test_the_command_examines_the_cpu(capsys: pytest.CaptureFixture[str]) -> None:
    """Status, verdict and form agree; it isn't up to the test whether this machine is quiet."""
    status = main(["doctor", "--device", "cpu,cpu", "--seconds", "0.5", "--json"])
    assert status in (0, 1)
    data = json.loads(capsys.readouterr().out)
    assert data["trusted"] == (status == 0)
    assert data["device"]["key"]
    names = [finding["name"] for finding in data["findings"]]
    assert names[:4] == ["event resolution", "launch overhead", "events and host clock", "proportionality"]
    step = data["findings"][0]["measured"]["step"]
    assert step["unit"] == "s"
    assert 0 < step["value"] < 1e-3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--device", "no-such-device"], "no device is called 'no-such-device'"),
        (["--device", "cpu", "--seconds", "0"], "can't be watched for 0 s; give --seconds above 0"),
        (["--device", "cpu", "--seconds", "nan"], "can't be watched for nan s"),
    ],
)
def test_wrong_input_is_one_sentence(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", *arguments]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert len(told.strip().splitlines()) == 1
