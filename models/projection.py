"""Online performance projection (Panwar et al.): which device runs each of eight applications fastest."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from perfmodel import report
from perfmodel.basics.errors import DeviceError, MeasurementError
from perfmodel.device import Device, devices, find_device
from perfmodel.measuring.campaign import protocol_called
from perfmodel.measuring.isolation import start
from perfmodel.measuring.store import Store, looked_into
from perfmodel.models.projection_study import (
    FIGURE_6,
    FIGURE_7,
    LONGEST_EMULATION,
    Application,
    DeviceStudy,
    ProjectionFindings,
)
from perfmodel.models.projection_tables import text, write
from perfmodel.recipes.study import Study, StudyOptions

WORKERS = "CL_CONFIG_CPU_TBB_NUM_WORKERS"
"""The environment variable of Intel's OpenCL driver: how many threads work, the calling one among them."""

# Table II; sizes around the table's, which is marked. Generators of this project stand for the AMD samples.
APPLICATIONS = (
    Application(
        name="FloydWarshall",
        tags="floyd_warshall dtype:int32 lsizes:16x16",
        size="n",
        sizes=(48, 96, 192, 384, 768, 1536),
        table=192,
    ),
    Application(
        name="FastWalshTrans.",
        tags="fast_walsh dtype:float32 lsize_0:256 step:512",
        size="n",
        sizes=(2**14, 2**16, 2**18, 2**20, 2**22, 2**24),
        table=2**20,
    ),
    Application(
        name="MatMul (gmem)",
        tags="matmul_sq tiled_prefetch:False dtype:float32 lsizes:16x16",
        size="n",
        sizes=(64, 128, 256, 512, 768, 1024),
        table=1024,
    ),
    Application(
        name="MatMul (lmem)",
        tags="matmul_sq tiled_prefetch:True dtype:float32 lsizes:16x16",
        size="n",
        sizes=(64, 128, 256, 512, 768, 1024, 1536),
        table=1024,
    ),
    Application(
        name="Reduction",
        tags="reduction dtype:float32 lsize_0:256",
        size="n",
        sizes=(2**14, 2**16, 2**18, 2**20, 2**22, 2**24),
        table=2**20,
    ),
    Application(
        name="NBody",
        tags="nbody dtype:float32 lsize_0:256",
        size="n",
        sizes=(1024, 4096, 8192, 16384, 32768, 65536),
        table=32768,
    ),
    # 1536 x 512 pixels of four bytes.
    Application(
        name="AESEncryptDecr.",
        tags="table_cipher table:constant rounds:10 lsize_0:256",
        size="n",
        sizes=(1536, 12288, 49152, 98304, 196608, 393216),
        table=196608,
    ),
    Application(
        name="Matrix Transpose",
        tags="transpose dtype:float32 lsizes:16x16",
        size="n",
        sizes=(64, 256, 512, 1024, 2048, 4096),
        table=1024,
    ),
)

PUBLISHED = {
    "chosen": [7, 8],
    "penalty": 0.3372,
    "relative_error_one_group": 0.198,
    "relative_error_all_groups": 0.167,
    # Table III: the whole emulation by that of one work-group, on four devices.
    "emulation_ratio": {
        "FastWalshTrans.": [2882.1, 2772.7, 2761.0, 2606.9],
        "FloydWarshall": [172.7, 182.6, 248.5, 229.3],
        "MatMul (gmem)": [267.9, 337.4, 219.1, 217.7],
        "NBody": [3.9, 4.1, 4.7, 4.0],
        "AESEncryptDecr.": [710.4, 784.0, 623.4, 581.4],
        "Reduction": [1710.7, 1709.0, 2629.1, 2700.0],
        "MatMul (lmem)": [240.7, 196.6, 201.5, 209.6],
        "Matrix Transpose": [554.2, 556.1, 469.2, 457.1],
    },
}


class Projection(Study):
    """Reproduces Table III, Figures 4, 6 and 7, and device selection, on the devices at hand and those of the store."""

    name = "projection"
    summary = "device selection by emulating one work-group (Panwar et al.)"

    def reproduce(self, options: StudyOptions) -> None:
        reproduce(APPLICATIONS, PUBLISHED, options)


def reproduce(applications: Sequence[Application], published: Mapping[str, Any], options: StudyOptions) -> None:
    """Measures what is missing, projects, prints the tables, and writes results and plots."""
    protocol_called(options.protocol)
    with looked_into(options.store) as known:
        chosen = chosen_devices(options.devices, known)
    report.prepared(options.out)
    with Store(options.store) as store:
        study = DeviceStudy(applications, store, options.protocol)
        for device in chosen:
            if _is_part(device) and not options.measure_only:
                _in_own_process(device, options.store, options.protocol)
        times, profiles, notes = {}, {}, []
        for device in chosen:
            print(f"{device.key}: {device.name}{'' if device.is_here else ', known from the store only'} …", flush=True)
            profile = study.profile(device)
            found = study.measured(device)
            if missing := len(study.kernels) - len(found):
                notes.append(f"{missing} of {len(study.kernels)} times are missing on {device.key}")
            times[device.key], profiles[device.key] = found, profile
        if options.measure_only:
            print(f"{sum(map(len, times.values()))} times are in {options.store}")
            return
        if len(chosen) < 2:
            raise DeviceError(
                f"there is nothing to choose with {chosen[0].key} alone; give more devices, as {chosen[0].key}/1 for a "
                "part of it, or a store that has times of another one"
            )
        cases = study.cases(times, profiles)
        findings = ProjectionFindings(
            devices={device.key: device.fingerprint() for device in chosen},
            profiles={name: profile.source for name, profile in profiles.items()},
            cases=tuple(cases),
            emulated=tuple(study.emulation(cases, profiles, LONGEST_EMULATION)),
            costs=study.costs(dict.fromkeys((*FIGURE_6, FIGURE_7))),  # type: ignore[arg-type]
            notes=tuple(notes),
        )
    shown = text(findings, published)
    print(f"\n{shown}\n")
    for path in write(findings, published, options.command, options.protocol, options.out, shown):
        print(f"written: {path}")


def chosen_devices(selectors: str | None, store: Store) -> list[Device]:
    """Returns the devices that are named, separated by commas; or all here, parts of processors, and all of the
    store."""
    stored = store.devices()
    if selectors:
        return list(dict.fromkeys(find_device(each, stored) for each in selectors.split(",") if each))
    found: dict[str, Device] = {}
    for device in [*devices(), *stored]:
        found.setdefault(device.key, device)
        if device.kind == "cpu" and device.is_here and not _is_part(device):
            units = device.compute_units // 2
            while units >= 1:
                part = device.with_units(units)
                found.setdefault(part.key, part)
                units //= 2
    return list(found.values())


def _is_part(device: Device) -> bool:
    return "/" in device.key


def _in_own_process(device: Device, store: str, protocol: str) -> None:
    """Measures on a part of a processor with as many threads as it has compute units."""
    arguments = ["reproduce", "projection", "--device", device.key, "--store", store, "--protocol", protocol]
    done = subprocess.run(
        start.command("perfmodel", *arguments, "--measure-only"),
        env=start.environment() | {WORKERS: str(device.compute_units)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise MeasurementError(f"measuring on {device.key} failed: {done.stderr.strip().splitlines()[-1:]}; see above")
