"""Campaigns by Dask workers: what they advertise, what is lost with one, and what is said when there is none."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import psutil
import pytest
from distributed import Client, LocalCluster

import perfmodel as pm
from benchmarks.campaigns import cluster, killed_workers
from perfmodel.basics.errors import DeviceError, PerfmodelError, PerfmodelWarning
from perfmodel.cli.command_line import main
from perfmodel.device import Device
from perfmodel.measuring.campaign import UNMEASURED, Campaign
from perfmodel.measuring.campaign.cluster import Cluster, resource, resources
from perfmodel.measuring.isolation.locks import FOLDER_VARIABLE
from tests.simulated_campaign import PROTOCOL, all_kernels, expected_rows
from tests.simulated_kernels import kernels
from tests.simulated_timers import BROKEN_VARIABLE, expected

STEADY = "tests.simulated_timers:steady"


@pytest.fixture(scope="module")
def bare() -> Iterator[Client]:
    """Yields a client of a scheduler without workers."""
    with LocalCluster(n_workers=0, dashboard_address=":0") as local, Client(local, set_as_default=False) as client:
        yield client


def test_resources_name_devices_and_drivers(cpu: Device) -> None:
    name = resource(cpu)
    assert name.startswith(f"{cpu.key}@")
    assert re.fullmatch(r"[^\s,=]+", name)
    assert resources()[name] == 1.0
    assert resource(replace(cpu, driver="another one")) != name


def test_a_campaign_loses_nothing_with_a_worker(tmp_path: Path) -> None:
    """`python -m benchmarks.campaigns` does the same with eight workers, two of which are killed."""
    assert killed_workers(workers=3, kills=1, count=120, folder=tmp_path) == []


def test_a_cluster_of_this_machine(cpu: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "locks"))
    with pm.Store() as store:
        chosen = Campaign(all_kernels(40), protocol=PROTOCOL, store=store, scheduler="local", timer=STEADY)
        assert [share.device for share in chosen.plan().shares] == [cpu]
        (found,) = chosen.run(progress=False).devices
        assert found.new == 40
        rows = {row.key: row.trials for row in store} | dict.fromkeys(store.failures(), ())
        assert rows == expected_rows(40, cpu)
        assert all(row.versions["perfmodel"] for row in store)


def test_a_cluster_of_this_machine_takes_nobody_elses_code(
    cpu: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its scheduler is in this process and listens nowhere; what serves a dashboard, if anything, knows no page."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "locks"))
    before = set(listening())
    local = Cluster("local")
    try:
        assert local.client.scheduler.address.startswith("inproc://")
        opened = set(listening()) - before
        assert {host for host, _ in opened} <= {"127.0.0.1"}
        for host, port in opened:
            for page in ("/status", "/info/main/workers.html", "/json/identity.json", "/metrics"):
                with pytest.raises(HTTPError, match="404"):
                    urlopen(f"http://{host}:{port}{page}", timeout=10)
    finally:
        local.close(False)
    assert set(listening()) == before


def listening() -> list[tuple[str, int]]:
    """Returns the addresses at which this process, and those that it started, wait for others."""
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return [
        (each.laddr.ip, each.laddr.port)
        for process in processes
        for each in process.net_connections()
        if each.status == psutil.CONN_LISTEN
    ]


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "127.0.0.1:9", "ucx://127.0.0.1:9", "ws://127.0.0.1:9"])
def test_a_scheduler_without_tls_gets_a_warning(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfmodel.measuring.campaign.cluster.CONNECT_SECONDS", 0.1)
    words = f"whoever reaches {address} can run any code .* give a tls://"
    with pytest.warns(PerfmodelWarning, match=words) as warned, pytest.raises(PerfmodelError):
        Cluster(address)
    assert "\n" not in str(warned[0].message)


def test_a_worker_of_a_scheduler_without_tls_gets_a_warning(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "execve", lambda *_: None)
    assert main(["worker", "tcp://127.0.0.1:9"]) == 0
    assert capsys.readouterr().err.startswith("perfmodel: warning: whoever reaches tcp://127.0.0.1:9 can run any code")
    assert main(["worker", "tls://127.0.0.1:9"]) == 0
    assert capsys.readouterr().err == ""


def test_a_worker_whose_driver_fails_is_let_go_and_the_campaign_goes_on(
    cpu: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perfmodel.measuring.campaign.run.LOST_SECONDS", 1.0)
    monkeypatch.setenv(BROKEN_VARIABLE, str(tmp_path / "broken"))
    with pm.Store() as store, cluster(1, tmp_path, 0.0) as (address, _):
        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=120)
        chosen = Campaign(kernels(5), protocol=PROTOCOL, store=store, scheduler=address, timer=STEADY)
        assert chosen.run(progress=False).is_complete
        (tmp_path / "broken").touch()
        more = Campaign(kernels(9), protocol=PROTOCOL, store=store, scheduler=address, timer=STEADY)
        result = more.run(progress=False)
        (found,) = result.devices
        assert not result.is_complete
        assert found.unmeasured >= 3
        assert set(found.results[-1].flags) <= UNMEASURED
        assert f"has {cpu.key} any more (the last one: " in found.stopped
        assert found.stopped.endswith("; start one and run again")
        assert [row.trials for row in store] == [expected(each.launch(), PROTOCOL) for each in kernels(5)]


def test_a_cluster_without_devices_says_how_to_get_some(bare: Client) -> None:
    with pytest.raises(
        DeviceError, match=r"no worker of the cluster of tcp://.* advertises .* `perfmodel worker tcp://"
    ):
        Campaign(kernels(1), scheduler=bare).plan()


def test_a_scheduler_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfmodel.measuring.campaign.cluster.CONNECT_SECONDS", 0.5)
    with pytest.raises(PerfmodelError, match=r"no Dask scheduler answers at 'tcp://127\.0\.0\.1:9'.*`dask scheduler`"):
        Campaign(kernels(1), scheduler="tcp://127.0.0.1:9").plan()


def test_without_distributed_a_sentence_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(PerfmodelError, match=r"`pip install 'perfmodel\[cluster\]'`"):
        Campaign(kernels(1), scheduler="local").plan()


def test_a_worker_has_the_options_of_dasks() -> None:
    command = [sys.executable, "-m", "perfmodel", "worker", "tcp://127.0.0.1:9", "--no-such-option"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "No such option" in ended.stderr
