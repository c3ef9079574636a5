"""Facts of a processor at hand follow from what Linux tells of it, here of made-up machines."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from perfmodel.device.cpuid import IDENTITIES, identified
from perfmodel.device.facts import DeviceFacts, architectures, device_facts
from perfmodel.device.processor_here import facts_called_here, facts_here

AVX512 = "fpu avx avx2 avx512f"
ZEN_5 = {"vendor_id": "AuthenticAMD", "cpu family": "26", "model": "2", "model name": "AMD EPYC", "flags": AVX512}
XEON = {"vendor_id": "GenuineIntel", "cpu family": "6", "flags": AVX512}
GOLD = XEON | {"model": "85", "model name": "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz"}
SAPPHIRE = XEON | {"model": "143", "model name": "Intel Xeon Processor (SapphireRapids)"}
ARM = {"BogoMIPS": "243.75", "Features": "fp asimd sve", "CPU implementer": "0x41", "CPU part": "0xd40"}


def facts(
    folder: Path,
    told: Mapping[str, str],
    cores: int = 2,
    threads: int = 1,
    files: Mapping[str, str] | None = None,
    usable: range | None = None,
) -> DeviceFacts | None:
    """Returns the facts of a machine whose cores are alike, with files in its folder of devices."""
    processors = range(cores * threads)
    places = [{"processor": n, "physical id": 0, "core id": n % cores} for n in processors]
    blocks = ["\n".join(f"{name}\t: {value}" for name, value in {**each, **told}.items()) for each in places]
    description, system = folder / "cpuinfo", folder / "devices"
    description.write_text("\n\n".join(blocks) + "\n\n")
    for path, text in (files or {}).items():
        (system / path).parent.mkdir(parents=True, exist_ok=True)
        (system / path).write_text(f"{text}\n")
    return facts_here(description, system, processors if usable is None else usable)


def found(*args: object, **options: object) -> DeviceFacts:
    known = facts(*args, **options)  # type: ignore[arg-type]
    assert known is not None
    return known


def caches(first: str, second: str, last: str, sharing: str) -> dict[str, str]:
    told = {0: ("1", "Data", first), 1: ("1", "Instruction", "32K"), 2: ("2", "Unified", second)}
    folder, files = "system/cpu/cpu0/cache", dict[str, str]()
    for index, each in (told | {3: ("3", "Unified", last)}).items():
        names = zip(("level", "type", "size"), each, strict=True)
        files |= {f"{folder}/index{index}/{name}": text for name, text in names}
    return files | {f"{folder}/index3/shared_cpu_list": sharing}


def test_a_processor_whose_name_says_little_has_its_architectures_facts(tmp_path: Path) -> None:
    here = found(tmp_path, ZEN_5 | {"cpu MHz": "2596.124"}, files=caches("48K", "1024K", "32768K", "0-1"))
    assert (here.name, here.key, here.architecture, here["units"]) == ("AMD EPYC", "amd-epyc", "zen5", 2)
    assert (here["l1_bytes"], here["l2_bytes"], here["l3_bytes"]) == (48 << 10, 1 << 20, 32 << 20)
    alike = device_facts("epyc_9755")
    assert here["clock"] == alike["clock"]
    assert here["dram_bandwidth"] == alike["dram_bandwidth"]
    assert set(here.guessed()) == {"clock", "dispatch", "dram_bandwidth", "launch", "wake"}
    assert {here.facts[name].source for name in ("units", "l1_bytes", "l3_bytes")} == {"driver"}


def test_a_processor_that_is_known_by_name_has_its_own_facts(tmp_path: Path) -> None:
    here, known = found(tmp_path, GOLD, cores=20, threads=2), device_facts("xeon_gold_6148")
    assert here["units"] == 20
    assert here.facts == {**known.facts, "units": (20, "driver")}
    assert here.name == GOLD["model name"]
    part = found(tmp_path, GOLD, cores=20, threads=2, usable=range(4))
    assert part["units"] == 4
    assert part["dram_bandwidth"] == known["dram_bandwidth"]


def test_a_name_of_another_architecture_is_not_believed(tmp_path: Path) -> None:
    """An E5-2670 is a Sandy Bridge that is known, its third version is not."""
    third = XEON | {"model": "63", "model name": "Intel(R) Xeon(R) CPU E5-2670 v3 @ 2.30GHz", "flags": "avx avx2"}
    here = found(tmp_path, third, cores=12)
    assert here.architecture == "haswell"
    assert "clock" in here.guessed()


def test_the_clock_is_what_linux_lets_it_reach(tmp_path: Path) -> None:
    assert found(tmp_path, SAPPHIRE).facts["clock"] == (2.9e9, "guess")
    assert found(tmp_path, SAPPHIRE | {"cpu MHz": "3100.000"}).facts["clock"] == (3.1e9, "guess")
    fastest = {"system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "3800000"}
    assert found(tmp_path, SAPPHIRE, files=fastest).facts["clock"] == (3.8e9, "driver")
    assert found(tmp_path, GOLD, files=fastest)["clock"] == device_facts("xeon_gold_6148")["clock"]


def test_what_cores_share_is_that_of_all(tmp_path: Path) -> None:
    chiplets = caches("48K", "1024K", "16384K", "0-7,32-39")
    assert found(tmp_path, ZEN_5, cores=32, threads=2, files=chiplets)["l3_bytes"] == 64 << 20
    assert found(tmp_path, ZEN_5, cores=32, threads=2, files=chiplets, usable=range(4))["l3_bytes"] == 16 << 20
    assert found(tmp_path, SAPPHIRE, files=caches("48K", "2048K", "480M", "0-1"))["l3_bytes"] == 128 << 20
    assert found(tmp_path, SAPPHIRE, files=caches("48K", "2M", "unknown", ""))["l3_bytes"] < 16 << 20


def test_of_two_kinds_of_cores_the_fast_ones_count(tmp_path: Path) -> None:
    two = XEON | {"model": "151", "model name": "12th Gen Intel(R) Core(TM) i5-12600K", "flags": "avx avx2"}
    here = found(tmp_path, two, cores=10, files={"cpu_core/cpus": "0-5"})
    assert (here.architecture, here["units"]) == ("raptor_lake", 6)


@pytest.mark.parametrize(
    ("told", "architecture"),
    [
        (ZEN_5 | {"model": "192"}, "zen5"),
        (ZEN_5 | {"flags": "avx avx2"}, "zen3"),  # as a virtual machine may hide vectors
        (XEON | {"cpu family": "19", "model": "1", "model name": "Intel(R) Xeon(R)"}, "granite_rapids"),
        (XEON | {"model": "250", "flags": "avx avx2"}, "arrow_lake"),
    ],
)
def test_an_unknown_number_is_its_makers_newest_that_has_such_vectors(
    told: dict[str, str], architecture: str, tmp_path: Path
) -> None:
    here = found(tmp_path, told)
    assert here.architecture == architecture
    assert set(here.guessed()) == set(here.facts) - {"units"}


@pytest.mark.parametrize(
    "told", [ARM, ZEN_5 | {"vendor_id": "Another"}, ZEN_5 | {"flags": "fpu sse2"}, ZEN_5 | {"model": "two"}, {}]
)
def test_of_others_nothing_is_known(told: dict[str, str], tmp_path: Path) -> None:
    assert facts(tmp_path, told) is None


def test_where_nobody_tells_nothing_is_known(tmp_path: Path) -> None:
    assert facts_here(tmp_path / "cpuinfo", tmp_path) is None
    (tmp_path / "cpuinfo").write_bytes(b"\xff\xfe : \x00\n\nprocessor\n")
    assert facts_here(tmp_path / "cpuinfo", tmp_path) is None


def test_the_processor_is_called_by_its_name_and_by_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    here = device_facts("epyc_9755")
    monkeypatch.setattr("perfmodel.device.processor_here.name_here", lambda: "Intel(R) Xeon(R) Gold 1 @ 2GHz")
    monkeypatch.setattr("perfmodel.device.processor_here.facts_here", lambda: here)
    for name in ("intel(r) xeon(r) gold 1 @ 2GHz", "intel-xeon-gold-1", "intel-xeon-gold-1-0b3c4a"):
        assert facts_called_here(name) is here
    for name in ("xeon", "intel-xeon-gold-1-0b3c4a/1", "intel-xeon-gold-12", ""):
        assert facts_called_here(name) is None
    monkeypatch.setattr("perfmodel.device.processor_here.name_here", lambda: "")
    assert facts_called_here("") is None


def test_identities_are_of_known_architectures_and_each_number_is_of_one() -> None:
    assert set(IDENTITIES) <= set(architectures())
    numbers = [(each.vendor, each.family, model) for each in IDENTITIES.values() for model in each.models]
    assert len(set(numbers)) == len(numbers)
    for key, each in IDENTITIES.items():
        for model in each.models:
            assert identified(each.vendor, each.family, model, {"avx", "avx2", "avx512f"}) == (key, False)
