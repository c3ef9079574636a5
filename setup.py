"""Maps the catalogues' top-level folders to sub-packages of perfmodel; everything else is in pyproject.toml."""

from setuptools import find_packages, setup

CATALOGUES = ("features", "generators", "models")

packages = find_packages(include=["perfmodel", "perfmodel.*"])
for catalogue in CATALOGUES:
    packages.append(f"perfmodel.{catalogue}")
    packages.extend(f"perfmodel.{catalogue}.{name}" for name in find_packages(catalogue))

setup(
    packages=packages,
    package_dir={"": ".", **{f"perfmodel.{catalogue}": catalogue for catalogue in CATALOGUES}},
    package_data={
        "perfmodel": [
            "py.typed",
            "report/page.*",
            "report/browsing/page.*",
            "device/*.json",
            "projection/device_profiles/*.json",
        ],
        "perfmodel.models": ["*.json"],
    },
)
