"""Kernel Tuner's files: `kernel_tuner/` holds what version 1.5.0 wrote for `scale.cl` on a CPU device.

Four configurations were timed, five runs each; four ask for more local memory than there is.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import perfmodel as pm
from perfmodel.basics.errors import KernelError, StoreError
from perfmodel.cli.command_line import main
from perfmodel.device import Device
from perfmodel.measuring.protocol import PROTOCOLS, Protocol
from perfmodel.measuring.store import Counts, Measurement, Store, measurement_key
from perfmodel.tuning.kernel_tuner_files import import_kernel_tuner
from tests.covering import examples

FILES = Path(__file__).parent / "kernel_tuner"
CACHE, RESULTS, SOURCE = FILES / "cache.json", FILES / "results.json", FILES / "scale.cl"
ENTRIES: dict[str, dict[str, Any]] = json.loads(CACHE.read_text())["cache"]
TIMED = [entry for entry in ENTRIES.values() if "time" in entry]
N = 4096


def scale(configuration: dict[str, Any]) -> pm.Kernel:
    options = [f"-D{name}={value}" for name, value in configuration.items()]
    work, local = configuration["work"], str(configuration["block_size_x"])
    return pm.Kernel.from_opencl(SOURCE, "scale", f"n//{work}", local, {"a": "n"}, options, n=N)


def rows(path: Path, **options: Any) -> list[Measurement]:
    with Store() as store:
        import_kernel_tuner(store, path, **options)
        return list(store)


# --- what the files hold


@pytest.mark.parametrize("path", [CACHE, RESULTS])
def test_times_are_seconds_and_failures_have_their_reason(path: Path) -> None:
    with Store() as store:
        done = import_kernel_tuner(store, path, device="Some GPU")
        assert done.counts == Counts(added=4, failures=4, known=0)
        assert done.protocol == Protocol("kernel-tuner", trials=5, dropped=0, statistic="mean")
        for row, entry in zip(store, TIMED, strict=True):
            assert row.trials == pytest.approx([milliseconds / 1e3 for milliseconds in entry["times"]], rel=1e-15)
            assert row.seconds == pytest.approx(entry["time"] / 1e3, rel=1e-12)
            assert row.tags == {name: str(entry[name]) for name in ("block_size_x", "work", "scratch")}
            assert row.created == entry["timestamp"][:19].replace(" ", "T") + "+00:00"
            assert row.conditions["kernel_tuner"]["GB/s"] == entry["GB/s"]
        failed = store.failures().values()
        assert {row.reason for row in failed} == {"Kernel Tuner: it failed when it ran"}
        assert {row.tags["scratch"] for row in failed} == {str(1 << 20)}
        assert import_kernel_tuner(store, path, device="Some GPU").counts == Counts(0, 0, 8)
        assert store.check() == []


def test_what_a_cache_says_of_itself_is_taken_over() -> None:
    (row, *_) = rows(CACHE)
    assert row.kernel == "scale"
    assert row.sizes == {"problem_size_x": N}
    assert row.device["name"] == "Intel(R) Xeon(R) Processor"
    device = Device.from_fingerprint(row.device)
    assert device.key.startswith("intel-r-xeon-r-processor-")
    assert (device.driver, device.compute_units) == ("", 0)
    assert rows(CACHE, name="mine")[0].kernel == "mine"
    assert rows(RESULTS, device="GPU")[0].kernel == "results"


def test_a_results_file_does_not_know_its_device() -> None:
    with (
        Store() as store,
        pytest.raises(StoreError, match="does not say of which device it is: give the device's name"),
    ):
        import_kernel_tuner(store, RESULTS)


def test_a_device_that_is_known_is_taken(cpu: Device) -> None:
    assert Device.from_fingerprint(rows(CACHE, device=cpu.key)[0].device) == cpu
    assert Device.from_fingerprint(rows(CACHE, device=cpu.name)[0].device).name == cpu.name
    with Store() as store:
        first = import_kernel_tuner(store, CACHE, device="Some GPU").device
        assert import_kernel_tuner(store, RESULTS, device=first.key).device == first


# --- as measurements of kernels


@pytest.mark.parametrize("path", [CACHE, RESULTS])
def test_a_model_is_fitted_to_times_of_a_tuner(path: Path, tmp_path: Path) -> None:
    """The device is not on this machine: every time is one that was imported."""
    with Store(tmp_path / "times.sqlite") as store:
        done = import_kernel_tuner(store, path, kernel=scale, device="Far GPU")
    kernels = [scale({name: entry[name] for name in ("block_size_x", "work", "scratch")}) for entry in TIMED]
    model = pm.Model("f_cl_wall_time", "p_launch * f_sync_kernel_launch + p_item * f_thread_groups")
    table = pm.measure(kernels, model, device=done.device.key, store=tmp_path / "times.sqlite", protocol=done.protocol)
    expected = [statistics.fmean(entry["times"]) / 1e3 for entry in TIMED]
    assert list(table["f_cl_wall_time"]) == pytest.approx(expected, rel=1e-12)
    assert list(table["flags"]) == [()] * 4
    calibration = model.fit(table)
    assert calibration.parameters["p_launch"] > 0
    with Store(tmp_path / "times.sqlite") as store:
        keys = [measurement_key(k.program.content, k.sizes, done.device.fingerprint(), done.protocol) for k in kernels]
        assert set(store.get_many(keys)) == set(table["key"])
        assert {row.kernel for row in store.failures().values()} == {"scale"}


def test_configurations_without_a_kernel_are_left_out() -> None:
    with Store() as store:
        kernel = lambda configuration: scale(configuration) if configuration["work"] == 4 else None  # noqa: E731
        assert import_kernel_tuner(store, CACHE, kernel=kernel).counts == Counts(added=2, failures=2, known=0)


def test_the_protocol_is_no_other_one() -> None:
    (row, *_) = rows(CACHE)
    others = {measurement_key(row.content, row.sizes, row.device, protocol) for protocol in PROTOCOLS.values()}
    assert row.key not in others
    assert measurement_key(row.content, row.sizes, row.device, row.protocol) == row.key


# --- files that a tuner still writes, or was killed over


def opened_cache(entries: int) -> str:
    """Returns a cache as Kernel Tuner leaves it open: without its last brackets, each entry with a comma behind it."""
    head, _, tail = CACHE.read_text().partition('"cache": {')
    lines = tail.rsplit("}\n}", 1)[0].strip().split("\n")
    return "\n".join([f'{head}"cache": {{', *(line.rstrip(",") + "," for line in lines[:entries])])


@pytest.mark.parametrize("entries", range(9))
def test_an_open_cache_has_the_entries_that_were_written(entries: int, tmp_path: Path) -> None:
    path = tmp_path / "cache.json"
    path.write_text(opened_cache(entries))
    with Store() as store:
        counts = import_kernel_tuner(store, path).counts
    assert counts.added + counts.failures == entries


@given(st.data())
@settings(max_examples=examples(30), deadline=None)
def test_a_cache_that_was_cut_off_anywhere_has_its_whole_entries(data: st.DataObject) -> None:
    text = opened_cache(8)
    start = text.index('"cache": {') + len('"cache": {')
    length = data.draw(st.integers(0, len(text)))
    cut = text[:length]
    with tempfile.TemporaryDirectory() as folder, Store() as store:
        path = Path(folder, "cache.json")
        path.write_text(cut)
        if length < start:
            with pytest.raises(StoreError, match="is no cache or results file of Kernel Tuner"):
                import_kernel_tuner(store, path)
            return
        counts = import_kernel_tuner(store, path).counts
        whole = sum(line.rstrip().endswith(("},", "}")) for line in cut[start:].split("\n"))
        assert counts.added + counts.failures == whole


# --- earlier versions, other values


def cache(*entries: dict[str, Any], **document: Any) -> str:
    whole = {"device_name": "GPU", "kernel_name": "k", "problem_size": [64, 32], "tune_params_keys": ["b"]}
    return json.dumps({**whole, "cache": {str(i): entry for i, entry in enumerate(entries)}, **document})


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"time": "InvalidConfig"}, "does not allow"),
        ({"time": "CompilationFailedConfig"}, "did not compile"),
        ({"time": 1e20}, "it failed"),
        ({"__error__": "ErrorConfig", "time": 1.0}, "it failed"),
    ],
)
def test_failures_as_earlier_versions_wrote_them(entry: dict[str, Any], words: str, tmp_path: Path) -> None:
    path = tmp_path / "cache.json"
    path.write_text(cache({"b": 1, **entry}))
    with Store() as store:
        assert import_kernel_tuner(store, path).counts == Counts(0, 1, 0)
        (row,) = store.failures().values()
    assert words in row.reason
    assert row.sizes == {"problem_size_x": 64, "problem_size_y": 32}


def test_a_time_without_its_runs_is_their_mean(tmp_path: Path) -> None:
    path = tmp_path / "cache.json"
    path.write_text(cache({"b": 1, "time": 2.5}, {"b": 2, "time": 3.5}))
    with Store() as store:
        assert import_kernel_tuner(store, path).protocol.trials == 7
        assert [row.trials for row in store] == [(0.0025,), (0.0035,)]
        assert import_kernel_tuner(store, path, iterations=32).protocol.trials == 32


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Expecting value"),
        ("[]", "no JSON object"),
        ("{}", "neither a cache nor results"),
        ("[" * 100_000, ""),
        (cache({"b": 1}), "times of 0 are not all positive"),
        (cache({"b": 1, "time": 0}), "times of 0 are not all positive"),
        (cache({"b": 1, "time": -1.0}), "times of 0 are not all positive"),
        (cache({"b": 1, "time": float("nan")}), "times of 0 are not all positive"),
        (cache({"b": 1, "time": True}), "times of 0 are not all positive"),
        (cache({"b": 1, "time": "slow"}), "times of 0 are not all positive"),
        (cache({"b": 1, "time": 1.0, "times": [1.0, "x"]}), "times of 0 are not all positive"),
        (cache({"time": 1.0}), "entry '0' has not a value for each of b"),
        (cache({"b": {}, "time": 1.0}), "neither a number nor a text"),
        (cache({"b": 1, "time": 1.0}, device_name=5), "device_name is no text"),
        (cache({"b": 1, "time": 1.0}, tune_params_keys="b"), "tune_params_keys is no text"),
        (json.dumps({"results": [{"configuration": {}}]}), "results[0] has not"),
        (json.dumps({"results": [], "metadata": {"timeunit": "seconds"}}), "not milliseconds"),
        (
            json.dumps({"results": [{"configuration": {}, "times": {}, "invalidity": "odd", "measurements": []}]}),
            "invalidity 'odd'",
        ),
    ],
)
def test_what_is_no_file_of_kernel_tuner_is_one_sentence(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text(text)
    with Store() as store:
        with pytest.raises(StoreError, match=r"file\.json is no cache or results file") as error:
            import_kernel_tuner(store, path, device="GPU")
        assert len(store) == 0
    assert words in str(error.value)
    assert "\n" not in str(error.value)


# --- the command line


def test_the_command_gives_the_kernel_by_its_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = str(tmp_path / "times.sqlite")
    described = ["--source", str(SOURCE), "--global", "n//{work}", "--local", "{block_size_x}"]
    described += ["--arg", f"n={N}", "--arg", "a=n", "--arg", "f=1.5"]
    assert main(["store", "import", store, str(CACHE), "--json", "--device", "Far GPU", *described]) == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["added"], done["failures"], done["known"]) == (4, 4, 0)
    kernels = [scale({name: entry[name] for name in ("block_size_x", "work", "scratch")}) for entry in TIMED]
    model = pm.Model("f_cl_wall_time", "p_launch * f_sync_kernel_launch")
    table = pm.measure(kernels, model, device=done["device"], store=store, protocol=Protocol(**done["protocol"]))
    assert table["f_cl_wall_time"].notna().all()


def test_a_parameter_that_is_not_tuned_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "times.sqlite"
    described = ["--source", str(SOURCE), "--global", "n", "--local", "{block_size}", "--arg", f"n={N}"]
    assert main(["store", "import", str(store), str(CACHE), *described]) == 2
    shown = capsys.readouterr().err
    assert "{block_size} in '{block_size}' is no parameter of the tuning; did you mean 'block_size_x'?" in shown
    assert not store.exists()


@pytest.mark.parametrize("value", ["1 -DEVIL=1", "", "a;b", "\n"])
def test_a_value_is_one_word_to_the_compiler(value: str, tmp_path: Path) -> None:
    import argparse

    from perfmodel.cli.tuned_source import tuned_kernel

    parsed = argparse.Namespace(
        **dict.fromkeys(("grid", "block_size", "kernel")),
        **{key: [] for key in ("arg", "option", "statistic", "include")},
        global_size="n",
        local_size="16",
        assume="",
    )
    with pytest.raises(KernelError, match="which no macro can be"):
        tuned_kernel(str(SOURCE), parsed)({"block_size_x": value})
