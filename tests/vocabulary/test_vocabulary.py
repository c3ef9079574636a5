"""Names become features: a model's own, registered ones, and those of families of installed packages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import loopy as lp
import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import FeatureError, KernelError, ModelStringError
from perfmodel.vocabulary import named_features as vocabulary


def kernel() -> pm.Kernel:
    program = lp.make_kernel(
        "{[i, j]: 0 <= i < n and 0 <= j < m}",
        "o[i, j] = 2*a[i, j] + 1",
        [lp.GlobalArg("a, o", np.float32, shape="n, m"), lp.ValueArg("n, m", np.int32)],
        lang_version=(2018, 2),
    )
    return pm.Kernel(program)


class Volume:
    """n times m, and how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def eval(self, knl: pm.Kernel) -> float:
        self.asked += 1
        return knl.sizes["n"] * knl.sizes["m"]


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    names: dict[str, Any] = {}
    monkeypatch.setattr(vocabulary, "_registered", names)
    return names


def test_a_models_own_feature_is_used_for_its_name() -> None:
    own = Volume()
    model = pm.Model("f_cl_wall_time", "p_a * f_volume + p_b", features={"f_volume": own})
    assert model.features["f_volume"] is own
    assert model.features["f_volume"].eval(kernel().at(n=3, m=5)) == 15


def test_a_models_own_feature_comes_before_those_of_the_families() -> None:
    own = Volume()
    assert pm.Model("f_cl_wall_time", "p_a * f_thread_groups", {"f_thread_groups": own}).features == {
        "f_thread_groups": own
    }


def test_an_own_feature_may_be_the_output() -> None:
    own = Volume()
    assert pm.Model("f_energy", "p_a * f_work_items", {"f_energy": own}).output is own


def test_an_own_feature_that_the_string_does_not_use_is_an_error() -> None:
    with pytest.raises(
        FeatureError, match="'f_other' is given but not used in the model; name it there or leave it out"
    ):
        pm.Model("f_cl_wall_time", "p_a * f_volume", {"f_volume": Volume(), "f_other": Volume()})


@pytest.mark.parametrize("wrong", [3.0, None, Volume, lambda knl: 1.0, type("Odd", (), {"eval": 3})()])
def test_an_object_without_eval_is_no_feature(wrong: Any, registered: dict[str, Any]) -> None:
    with pytest.raises(ModelStringError, match="cannot be feature 'f_volume'; give an object that has a method eval"):
        pm.Model("f_cl_wall_time", "p_a * f_volume", {"f_volume": wrong})
    with pytest.raises(FeatureError, match="cannot be feature 'f_volume'; give an object that has a method eval"):
        pm.register("f_volume", wrong)
    assert not registered


def test_a_registered_feature_is_known_to_every_model(registered: dict[str, Any]) -> None:
    own = Volume()
    pm.register("f_volume", own)
    assert pm.feature("f_volume") is own
    assert pm.Model("f_cl_wall_time", "p_a * f_volume").features["f_volume"] is own


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("volume", "those start with 'f_'"),
        ("f_", "ends too early"),
        ("f_a b", "cannot be read at 'a b'"),
        ("f_volume", "'f_volume' is taken; choose another"),
        ("f_thread_groups", "'f_thread_groups' is taken; choose another"),
        ("f_op_of_mine", "'f_op_of_mine' is taken; choose another"),
    ],
)
def test_names_that_cannot_be_registered(name: str, words: str, registered: dict[str, Any]) -> None:
    pm.register("f_volume", Volume())
    with pytest.raises(FeatureError, match=words):
        pm.register(name, Volume())
    assert list(registered) == ["f_volume"]


def test_a_misspelt_registered_name_is_suggested(registered: dict[str, Any]) -> None:
    pm.register("f_volume", Volume())
    with pytest.raises(FeatureError, match="did you mean 'f_volume'"):
        pm.feature("f_volumes")


def test_features_are_evaluated_over_arrays_of_sizes() -> None:
    knl = kernel()
    n, m = np.array([[1], [2], [3]]), np.array([4, 5])
    bound = knl.bind({"n": n, "m": m})
    own = Volume()
    for found in (own, pm.feature("f_op_float32_madd")):
        assert vocabulary.evaluate(found, knl, bound).tolist() == (n * m).tolist()
    assert own.asked == 6
    single = vocabulary.evaluate(own, knl, knl.bind({"n": 2, "m": 3}))
    assert single.shape == ()
    assert single == 6


def test_a_count_without_sizes_still_has_the_sizes_shape() -> None:
    knl = kernel()
    launches = vocabulary.evaluate(pm.feature("f_sync_kernel_launch"), knl, knl.bind({"n": np.arange(1, 4), "m": 1}))
    assert launches.tolist() == [1, 1, 1]


def test_a_custom_feature_without_sizes_says_so() -> None:
    with pytest.raises(KernelError, match="needs a value for n, m; give them as n=…, m=…"):
        pm.feature("f_op").eval(kernel())


# --- families of installed packages, each in a process of its own, as families are found once

FAMILY = """
from perfmodel.vocabulary.named_features import FeatureFamily, unknown_word

class Cells:
    def __init__(self, factor):
        self.factor = factor

    def eval(self, knl):
        return self.factor * knl.sizes["n"]

class CellFamily(FeatureFamily):
    prefix = {prefix}
    summary = "cells of a mesh"
    examples = ("f_mesh_cells",)

    def parse(self, name, words):
        if words and words[0].key not in ("double",):
            raise unknown_word(name, words[0], ("double",))
        return Cells(2 if words else 1)
"""


def with_package(folder: Path, point: str, script: str, prefix: str = '("mesh", "cells")') -> str:
    """Returns what the script prints, or the last line of its error, where a package offers `point` as features."""
    (folder / "meshes.py").write_text(FAMILY.format(prefix=prefix))
    info = folder / "meshes-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: meshes\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[perfmodel.features]\nmeshes = {point}\n")
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); import perfmodel as pm\n{script}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return (done.stdout or done.stderr).strip().splitlines()[-1]


def test_a_packages_family_is_found_by_its_entry_point(tmp_path: Path) -> None:
    script = (
        "print(pm.feature('f_mesh_cells_double').factor, pm.Model('f_cl_wall_time', 'p_a*f_mesh_cells').parameters)"
    )
    assert with_package(tmp_path, "meshes", script) == "2 ('p_a',)"


def test_a_packages_family_is_suggested_and_explains_its_words(tmp_path: Path) -> None:
    assert "did you mean 'f_mesh_cells'" in with_package(tmp_path, "meshes", "pm.feature('f_mesh_cell')")


def test_a_packages_family_explains_its_words(tmp_path: Path) -> None:
    assert "unknown word 'doubel'; did you mean 'double'" in with_package(
        tmp_path, "meshes", "pm.feature('f_mesh_cells_doubel')"
    )


@pytest.mark.parametrize(
    ("point", "prefix", "words"),
    [
        ("meshes", '("op",)', "both define 'f_op'; rename one of them"),
        (
            "missing_module",
            '("mesh",)',
            "entry point 'meshes' of meshes does not load (No module named 'missing_module')",
        ),
        ("meshes:CellFamily", '("mesh",)', "does not load (meshes:CellFamily is no module); update or remove"),
    ],
)
def test_a_packages_faults_are_named(tmp_path: Path, point: str, prefix: str, words: str) -> None:
    assert words in with_package(tmp_path, point, "pm.feature('f_work_items')", prefix)
