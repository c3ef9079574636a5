"""Makes the OpenCL drivers of this machine visible, and tells why one gives no device.

An OpenCL loader reads ``.icd`` files, one line each that names a driver's library, from one system folder. Drivers
that come as Python packages are not listed there, and a container often has NVIDIA's library without its file. The
loader takes one folder through an environment variable, so a folder with everything that is there is made for it.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfmodel.basics.errors import DeviceError

LOADER_VARIABLES = ("OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH")
SYSTEM_FOLDER = Path("/etc/OpenCL/vendors")
INTEL_PACKAGE = "intel-opencl-rt"
NVIDIA_LIBRARY = "libnvidia-opencl.so.1"


@dataclass(frozen=True)
class Driver:
    """A driver that the loader is told of: its library, and the file, package or variable that names it."""

    library: str
    source: str


@dataclass(frozen=True)
class DriverFault:
    """The reason why a driver that should be visible gives no device."""

    library: str
    source: str
    reason: str

    def __str__(self) -> str:
        return f"{self.source}: {self.reason}"


def opencl() -> Any:
    """Returns the pyopencl module, with every driver of this machine visible to its loader.

    Raises:
        DeviceError: pyopencl is not installed or does not load.
    """
    drivers()
    # Compiled binaries kept on disk outlive changes of the runtime's own settings; programs are kept per process.
    os.environ.setdefault("PYOPENCL_NO_CACHE", "1")
    return pyopencl_module()


def pyopencl_module() -> Any:
    """Returns pyopencl as it is; errors as in `opencl`."""
    try:
        import pyopencl  # which may not load
    except Exception as error:
        raise DeviceError(
            f"pyopencl does not load ({type(error).__name__}: {error}): install it again with `pip install pyopencl`"
        ) from error
    return pyopencl


@functools.cache
def drivers() -> tuple[Driver, ...]:
    """Returns the drivers that the loader is told of; the first call tells it, unless the user has set its variable."""
    for variable in LOADER_VARIABLES:
        if value := os.environ.get(variable):
            return tuple(_drivers_of_variable(variable, value))
    if sys.platform != "linux":  # elsewhere the loader knows the system's own drivers and reads no such variable
        return ()
    found = tuple(_drivers_of_machine())
    os.environ["OCL_ICD_VENDORS"] = str(_folder_naming(found))
    return found


def driver_faults() -> list[DriverFault]:
    """Returns the reason why each driver that should be visible, but gives no device, does not.

    Loads every driver's library, so it is asked only when somebody wants to know.

    Raises:
        DeviceError: pyopencl is not installed or does not load.
    """
    cl = opencl()
    without_devices = {platform.int_ptr for platform in platforms(cl) if not platform.get_devices()}
    reasons = ((driver, _reason(driver.library, without_devices)) for driver in drivers())
    return [DriverFault(driver.library, driver.source, reason) for driver, reason in reasons if reason]


def platforms(cl: Any) -> list[Any]:
    """Returns the platforms that pyopencl lists, none where its loader finds no driver."""
    try:
        return list(cl.get_platforms())
    except cl.Error:  # the loader reports "no platform" as an error
        return []


def _drivers_of_variable(variable: str, value: str) -> Iterator[Driver]:
    path = Path(value)
    if path.is_dir():
        yield from _drivers_of_folder(path)
    elif path.suffix == ".icd":
        yield Driver(_library_named_by(path), str(path))
    else:
        yield Driver(value, variable)


def _drivers_of_machine() -> Iterator[Driver]:
    intel_files = _files_of_intel_package()
    listed = [*_drivers_of_folder(SYSTEM_FOLDER), *_drivers_of_folder(Path(sys.prefix, "etc/OpenCL/vendors"))]
    # The wheel's own .icd files name a path of the machine that it was built on.
    listed = [driver for driver in listed if Path(driver.source) not in intel_files]
    libraries = {os.path.realpath(driver.library) for driver in listed}
    yield from listed
    for path in intel_files:
        if path.name == "libintelocl.so" and os.path.realpath(path) not in libraries:
            yield Driver(str(path), INTEL_PACKAGE)
    if not any("nvidia-opencl" in driver.library for driver in listed) and _loads(NVIDIA_LIBRARY):
        yield Driver(NVIDIA_LIBRARY, "the system's libraries")


def _files_of_intel_package() -> list[Path]:
    import importlib.metadata  # keeps start-up quick

    try:
        files = importlib.metadata.files(INTEL_PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    # normpath keeps symbolic links: a driver finds its helpers beside the path that it is loaded from.
    return [Path(os.path.normpath(file.locate())) for file in files if file.suffix in (".icd", ".so")]


def _drivers_of_folder(folder: Path) -> list[Driver]:
    return [Driver(_library_named_by(path), str(path)) for path in sorted(folder.glob("*.icd"))]


def _library_named_by(icd: Path) -> str:
    try:
        lines = icd.read_text(errors="replace").split("\n")
    except OSError:
        return ""
    return lines[0].strip()


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _folder_naming(listed: tuple[Driver, ...]) -> Path:
    """Returns a folder with one ``.icd`` file a driver: in the user's cache under its content's hash, or a private one.

    Several processes may make it at once: it is filled under another name and renamed, so it is complete or absent.
    """
    texts = {f"{index:02}.icd": driver.library + "\n" for index, driver in enumerate(listed)}
    name = hashlib.sha256(repr(texts).encode()).hexdigest()[:16]
    import platformdirs  # slow to import

    target = Path(platformdirs.user_cache_dir("perfmodel", appauthor=False), "opencl-vendors", name)
    if _holds(target, texts):
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=target.parent))
        _write(folder, texts)
        try:
            folder.rename(target)
        except OSError:  # another process was first, or somebody has spoilt the folder
            shutil.rmtree(folder)
        if _holds(target, texts):
            return target
    except OSError:  # no cache that can be written
        pass
    # A shared temporary folder under a known name could be filled by another user: this one is private.
    private = Path(tempfile.mkdtemp(prefix="perfmodel-opencl-"))
    atexit.register(shutil.rmtree, private, ignore_errors=True)
    _write(private, texts)
    return private


def _write(folder: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        (folder / name).write_text(text)


def _holds(folder: Path, texts: dict[str, str]) -> bool:
    try:
        return {path.name: path.read_text() for path in folder.iterdir()} == texts
    except OSError:
        return False


def _reason(library: str, without_devices: set[int]) -> str | None:
    """Returns what is wrong with a driver's library; `without_devices` are the platforms (addresses) that list no
    device."""
    if not library:
        return "the file names no library or cannot be read"
    try:
        loaded = ctypes.CDLL(library)
        find_function = loaded.clGetExtensionFunctionAddress
    except OSError as error:
        return f"the library does not load ({error})"
    except AttributeError:
        return f"{library} is no OpenCL driver (it has no clGetExtensionFunctionAddress)"
    find_function.restype = ctypes.c_void_p
    find_function.argtypes = [ctypes.c_char_p]
    address = find_function(b"clIcdGetPlatformIDsKHR")
    if not address:
        return f"{library} is no OpenCL driver that a loader can use (it has no clIcdGetPlatformIDsKHR)"
    prototype = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_uint, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_uint)
    )
    get_platforms = prototype(address)
    count = ctypes.c_uint()
    status = get_platforms(0, None, ctypes.byref(count))
    if status != 0 or count.value == 0:
        return f"{library} loads but reports no platform (status {status}): its hardware is absent or not accessible"
    addresses = (ctypes.c_void_p * count.value)()
    get_platforms(count.value, addresses, None)
    if without_devices.issuperset(address for address in addresses if address is not None):
        return f"{library} loads but its platform lists no device: its hardware is absent or not accessible"
    return None
