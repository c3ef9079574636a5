"""Tests the kernels that stand for published ones: they compute what their names say; tables hold their features."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import perfmodel as pm
from benchmarks import (
    devices_left_out,
    feature_tables,
    published_devices,
    published_searches,
    spaces_on_device,
    tuned_product,
)
from benchmarks.published import convolution, dedispersion, textbook
from benchmarks.published.space import load
from benchmarks.published.spaces import SPACES

BLOCKS = ("block_size_x", "block_size_y", "tile_size_x", "tile_size_y")
rng = np.random.default_rng(1)


def random(*shape: int) -> Any:
    return rng.random(shape, np.float32)


@pytest.mark.parametrize(
    "values",
    [(8, 8, 8, 8, 1, 1, 0, 0), (8, 16, 16, 8, 2, 1, 1, 0), (8, 16, 8, 8, 4, 2, 0, 1), (8, 8, 16, 8, 2, 4, 1, 1)],
)
def test_products_are_products(values: tuple[int, ...]) -> None:
    side, tile = 64, 32
    names = ("MDIMC", "NDIMC", "MDIMA", "NDIMB", "VWM", "VWN", "SA", "SB")
    configuration = {"MWG": tile, "NWG": tile, "KWG": 32, "KWI": 2, **dict(zip(names, values, strict=True))}
    a, b, c = (random(side, side) for _ in range(3))
    kernel = tuned_product.kernel(configuration, side)
    arrays = {"a": a, "b": b, "c": c.copy()}
    got = pm.emulate(kernel, arrays, groups=[(1, 1)]).array("c").reshape(side, side)
    np.testing.assert_allclose(got[tile:, tile:], (c + b.T @ a)[tile:, tile:], rtol=1e-4)


@pytest.mark.parametrize(
    ("blocks", "shared", "padded"),
    [((8, 4, 1, 1), 1, 0), ((2, 4, 3, 2), 1, 1), ((8, 2, 2, 3), 1, 1), ((4, 8, 2, 2), 0, 0), ((8, 2, 2, 3), 0, 0)],
)
def test_convolutions_are_convolutions(blocks: tuple[int, ...], shared: int, padded: int) -> None:
    side, width = 20, 5
    configuration = {**dict(zip(BLOCKS, blocks, strict=True)), "use_shmem": shared, "use_padding": padded}
    kernel = convolution.kernel(configuration, side, width)
    weights = random(width * width)
    kernel = kernel.at(**{f"filter_at_{i}": float(weight) for i, weight in enumerate(weights)})
    across = side + width - 1
    image = random(next(each.size for each in kernel.launch().arrays() if each.name == "in"))
    got = pm.emulate(kernel, {"in": image}, groups="all").array("out").reshape(side, side)
    windows = np.lib.stride_tricks.sliding_window_view(image[: across * across].reshape(across, across), (width, width))
    np.testing.assert_allclose(got, (windows * weights.reshape(width, width)).sum((2, 3)), rtol=1e-4)


def test_a_dedispersion_adds_up_what_is_late() -> None:
    measures, samples, channels = 10, 30, 5
    late = 40 * np.arange(measures)[:, None] * np.linspace(1, 0, channels)  # in samples
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dedispersion, "delays", lambda *_: late[:, 0].astype(np.float32))
        for strides in ((0, 1), (1, 0)):
            configuration = dict(zip(BLOCKS, (8, 2, 3, 2), strict=True))
            configuration |= {"tile_stride_x": strides[0], "tile_stride_y": strides[1]}
            kernel = dedispersion.kernel(configuration, measures, samples, channels)
            assert any(access.touched for access in kernel.counts.accesses)
            profile = pm.emulate(kernel, {"parts": np.linspace(1, 0, channels, dtype=np.float32)}, groups="all")
            given = profile.array("in").reshape(channels, -1).astype(float)
            expected = [
                np.sum([given[c, by : by + samples] for c, by in enumerate(each)], 0) for each in late.astype(int)
            ]
            np.testing.assert_allclose(profile.array("out").reshape(measures, samples), expected)


def test_rows_of_a_store_are_known_by_their_spaces_parameters() -> None:
    names = [*sorted(SPACES["dedispersion"].parameters)]
    rows = [
        SimpleNamespace(tags=dict.fromkeys(names, "2"), seconds=1.0),
        SimpleNamespace(tags={**dict.fromkeys(names, "2"), "block_size_x": "4"}, seconds=2.0),
        SimpleNamespace(tags={"n": "16"}, seconds=3.0),
    ]
    found = spaces_on_device.measured(rows)  # type: ignore[arg-type]
    assert list(found) == ["dedispersion"]
    assert {dict(program)["block_size_x"]: seconds for program, seconds in found["dedispersion"].items()} == {
        2: 1.0,
        4: 2.0,
    }


def test_channels_are_late_as_published() -> None:
    assert dedispersion.delays()[-1] == pytest.approx(648.2, abs=0.1)  # the data's rows have 650 samples to spare
    parts = dedispersion.shifts() / dedispersion.shifts()[0]
    assert np.abs(np.sort(parts) - np.linspace(0, 1, len(parts))).max() < 0.08  # nearly evenly


def emulated(case: str, launched: dict[str, Any], arguments: dict[str, Any], arrays: dict[str, Any]) -> Any:
    extents = {name: len(array) for name, array in arrays.items()}
    kernel = textbook.kernel(case, {"arrays": extents, "local": [4], **launched}, arguments)
    own = {argument.name for argument in kernel.launch().arrays()}
    return pm.emulate(kernel, {name: array.copy() for name, array in arrays.items() if name in own}, groups="all")


def test_clusters() -> None:
    points, centres = random(20, 3), random(4, 3)
    sizes = {"npoints": 20, "nfeatures": 3}
    launched = {"global": [20]}
    turned = emulated("kmeans/invert_mapping", launched, sizes, {"input": points.ravel(), "output": np.zeros(60, "f4")})
    np.testing.assert_array_equal(turned.array("output").reshape(3, 20), points.T)
    arrays = {"features": points.T.ravel(), "clusters": centres.ravel(), "membership": np.zeros(20, "i4")}
    got = emulated("kmeans/kmeansPoint", launched, {**sizes, "nclusters": 4}, arrays).array("membership")
    np.testing.assert_array_equal(got, ((points[:, None] - centres) ** 2).sum(2).argmin(1))


def test_factors_in_blocks() -> None:
    n = 48
    matrix = random(n, n) + n * np.eye(n, dtype=np.float32)
    m = matrix.ravel()
    for offset in range(0, n, 16):
        further = (n - offset) // 16 - 1
        arguments = {"matrix_dim": n, "offset": offset}
        m = emulated("lud/lud_diagonal", {"global": [16], "local": [16]}, arguments, {"m": m}).array("m")
        if further:
            along, square = {"global": [32 * further], "local": [32]}, {"global": [16 * further] * 2, "local": [16, 16]}
            m = emulated("lud/lud_perimeter", along, arguments, {"m": m}).array("m")
            m = emulated("lud/lud_internal", square, arguments, {"m": m}).array("m")
    factors = m.reshape(n, n).astype(float)
    lower, upper = np.tril(factors, -1) + np.eye(n), np.triu(factors)
    np.testing.assert_allclose(lower @ upper, matrix, atol=1e-3)


def lifted(x: Any) -> Any:
    """Returns the 5/3 transform along the last axis, low frequencies first."""
    size = x.shape[-1]

    def at(places: Any) -> Any:
        places = np.abs(places)
        return np.where(places < size, places, 2 * (size - 1) - places).clip(0, size - 1)

    def high(n: Any) -> Any:
        return x[..., at(2 * n + 1)] - ((x[..., at(2 * n)] + x[..., at(2 * n + 2)]) >> 1)

    n = np.arange((size + 1) // 2)
    low = x[..., 2 * n] + ((high(n - 1) + high(n) + 2) >> 2)
    return np.concatenate([low, high(np.arange(size // 2))], -1)


@pytest.mark.parametrize(("width", "height"), [(24, 32), (18, 14), (20, 27)])
def test_wavelets(width: int, height: int) -> None:
    image = rng.integers(-128, 128, (height, width)).astype("i4")
    groups = -(-width // 8), -(-height // 16)
    launched = {"global": [groups[0] * 8, groups[1]], "local": [8, 1], "local_bytes": {"buffer": 768}}
    arguments = {"sx": width, "sy": height, "steps": 2, "WIN_SIZE_X": 8, "WIN_SIZE_Y": 8}
    arrays = {"in": image.ravel(), "out": np.zeros(image.size, "i4")}
    got = emulated("dwt/cl_fdwt53Kernel", launched, arguments, arrays).array("out").reshape(height, width)
    np.testing.assert_array_equal(got, lifted(lifted(image).T).T)


def test_colours() -> None:
    pixels = rng.integers(0, 256, 3 * 10).astype("u1")
    arrays = {"cl_d_src": pixels, **{name: np.zeros(10, "i4") for name in ("d_r", "d_g", "d_b")}}
    got = emulated("dwt/c_CopySrcToComponents", {"global": [12]}, {"pixels": 10}, arrays)
    np.testing.assert_array_equal([got.array(name) for name in ("d_r", "d_g", "d_b")], pixels.reshape(10, 3).T - 128.0)


def test_a_search_reaches_every_node(tmp_path: Path) -> None:
    """Each level's data are what the level before leaves."""
    nodes = 64
    launched: dict[str, Any] = {"global": [64], "local": [16], "arguments": {"no_of_nodes": 64}}
    extents = dict.fromkeys(("g_graph_nodes", "g_graph_mask", "g_updating_graph_mask", "g_graph_visited"), nodes)
    levels: dict[str, dict[str, Any]] = {
        "bfs/kernel1": {**launched, "arrays": {**extents, "g_graph_edges": 384, "g_cost": nodes}},
        "bfs/kernel2": {**launched, "arrays": {**extents, "g_over": 1}},
    }
    named = {case: {"sizes": {"tiny": {**each, "each": {"level": "all"}}}} for case, each in levels.items()}
    file = tmp_path / "launches.json"
    file.write_text(json.dumps(named))
    every = list(textbook.launches(file))
    steps = [[each for each in every if each.case == case] for case in named]
    assert len(steps[0]) == len(steps[1]) > 2
    assert sum(each.weight for each in every) == pytest.approx(2)
    state = {name: np.zeros(nodes, "i4") for name in ("g_updating_graph_mask", "g_cost")}
    for first, second in zip(*steps, strict=True):
        got = pm.emulate(first.kernel, {**state, **first.arrays}, groups="all")
        state = {name: got.array(name) for name in state}
        reached = second.arrays["g_updating_graph_mask"]
        np.testing.assert_array_equal(got.array("g_graph_mask"), 0)
        np.testing.assert_array_equal(state["g_updating_graph_mask"], reached)
        visited = first.arrays["g_graph_visited"]
        given = {**second.arrays, "g_graph_visited": visited, "g_graph_mask": visited * 0}
        after = pm.emulate(second.kernel, given, groups="all")
        np.testing.assert_array_equal(after.array("g_graph_mask"), reached)
        np.testing.assert_array_equal(after.array("g_graph_visited"), visited | reached)
        state["g_updating_graph_mask"] = after.array("g_updating_graph_mask")


def put(array: Any, first: int, values: Any) -> Any:
    found = array.copy()
    found[first : first + len(values)] = values
    return found


MARKOV: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "init_ones_dev": ("ones_s_d", lambda d: put(d["ones_s_d"], 0, np.ones(3))),
    "init_alpha_dev": ("alpha_d", lambda d: put(d["alpha_d"], 0, d["pi_d"] * d["b_d"][5:10])),
    "calc_alpha_dev": ("alpha_d", lambda d: put(d["alpha_d"], 10, d["alpha_d"][10:15] * d["b_d"][5:10])),
    "scale_alpha_dev": ("alpha_d", lambda d: put(d["alpha_d"], 10, d["alpha_d"][10:15] / 2)),
    "init_beta_dev": ("beta_d", lambda d: put(d["beta_d"], 10, np.full(5, 0.5))),
    "calc_beta_dev": ("beta_d", lambda d: put(d["beta_d"], 5, d["b_d"][5:10] * d["beta_d"][10:15] / 4)),
    "calc_gamma_dev": ("gamma_sum_d", lambda d: d["gamma_sum_d"] + d["alpha_d"][5:10] * d["beta_d"][5:10]),
    "calc_xi_dev": (
        "xi_sum_d",
        lambda d: (
            d["xi_sum_d"]
            + (d["alpha_d"][5:10, None] * d["a_d"].reshape(5, 5) * d["b_d"][5:10] * d["beta_d"][10:15] / 8).ravel()
        ),
    ),
    "est_a_dev": (
        "a_d",
        lambda d: (
            d["xi_sum_d"].reshape(5, 5).T / (d["gamma_sum_d"] - d["alpha_d"][20:25] * d["beta_d"][20:25] / 8)
        ).T.ravel(),
    ),
    "scale_a_dev": ("a_d", lambda d: (d["a_d"].reshape(5, 5) / d["c_d"][:, None]).ravel()),
    "acc_b_dev": ("b_d", lambda d: put(d["b_d"], 5, d["b_d"][5:10] + d["alpha_d"][5:10] * d["beta_d"][5:10] / 8)),
    "est_b_dev": ("b_d", lambda d: (d["b_d"].reshape(3, 5) / d["gamma_sum_d"]).ravel()),
    "scale_b_dev": ("b_d", lambda d: (d["b_d"].reshape(3, 5) / d["c_d"]).ravel()),
    "est_pi_dev": ("pi_d", lambda d: d["alpha_d"][:5] * d["beta_d"][:5] / 8),
}


@pytest.mark.parametrize("name", MARKOV)
def test_steps_of_a_hidden_markov_model(name: str) -> None:
    """There are five states, three symbols and four steps; it is step 1, at which symbol 1 was observed."""
    extents = {"ones_s_d": 8, "ones_n_d": 5, "pi_d": 5, "c_d": 5, "gamma_sum_d": 5, "alpha_d": 25, "beta_d": 25}
    data = {each: random(size) + 1 for each, size in {**extents, "b_d": 15, "a_d": 25, "xi_sum_d": 25}.items()}
    arguments = {"nstates": 5, "nsymbols": 3, "obs_t": 1, "offset": 10, "t": 1, "length": 4}
    given = {**arguments, "scale": 2.0, "scale_t": 4.0, "sum_ab": 8.0}
    is_flat = name in ("calc_xi_dev", "est_a_dev", "scale_a_dev", "acc_b_dev", "est_b_dev", "scale_b_dev")
    launched = {"global": [8, 8], "local": [4, 4]} if is_flat else {"global": [8], "local": [8]}
    changed, expected = MARKOV[name]
    got = emulated(f"hmm/{name}", launched, given, data).array(changed)
    np.testing.assert_allclose(got, expected(data), rtol=1e-4)


def test_products_of_vectors() -> None:
    a, x, y = random(12), random(10), random(20)
    launched, arguments = {"global": [8]}, {"m": 4, "n": 3, "lda": 3, "offsetX": 2, "offsetY": 5}
    got = emulated("hmm/mvm_non_kernel_naive", launched, arguments, {"A": a, "x": x, "y": y}).array("y")
    np.testing.assert_allclose(got[5:9], a.reshape(4, 3) @ x[2:5], rtol=1e-5)
    got = emulated("hmm/mvm_trans_kernel_naive", launched, arguments, {"A": a, "x": x, "y": y}).array("y")
    np.testing.assert_allclose(got[5:8], a.reshape(4, 3).T @ x[2:6], rtol=1e-5)
    arrays = {"paramA": x, "paramB": y, "partialSum_d": np.zeros(4, "f4")}
    got = emulated("hmm/s_dot_kernel_naive", launched, {"n": 4, "offsetA": 2, "offsetB": 5}, arrays)
    np.testing.assert_allclose(got.array("partialSum_d"), x[2:6] * y[5:9])


def test_alignments() -> None:
    size = 33
    reference = rng.integers(-10, 11, (size, size)).astype("i4")
    expected = np.zeros((size, size), "i4")
    expected[0], expected[:, 0] = -10 * np.arange(size), -10 * np.arange(size)
    matrix = expected.copy().ravel()
    for i in range(1, size):
        for j in range(1, size):
            beside = max(expected[i, j - 1], expected[i - 1, j]) - 10
            expected[i, j] = max(expected[i - 1, j - 1] + reference[i, j], beside)
    for half, blocks in ((1, 1), (1, 2), (2, 1)):
        arguments = {"cols": size, "penalty": 10, "i": blocks, "block_width": 2}
        arrays = {"referrence": reference.ravel(), "matrix_opencl": matrix}
        launched = {"global": [16 * blocks, 1], "local": [16, 1]}
        matrix = emulated(f"nw/needle_opencl_shared_{half}", launched, arguments, arrays).array("matrix_opencl")
    np.testing.assert_array_equal(matrix.reshape(size, size), expected)


def test_a_potential_is_that_of_all_atoms() -> None:
    """Charges in one medium without salt have the potential of Coulomb's law."""
    charges, atoms, vertices = random(6), random(3, 6), random(3, 5) + 3
    arrays = {"atom_addrs": np.array([0, 4], "i4"), "atom_lengths": np.array([4, 2], "i4"), "at_c_s": charges}
    arrays |= {f"at_{axis}_s": each for axis, each in zip("xyz", atoms, strict=True)}
    arrays |= {f"vert_{axis}_s": each for axis, each in zip("xyz", vertices, strict=True)}
    arrays["vert_c_s"] = np.zeros(5, "f4")
    arguments = {"nres": 2, "nvert": 5, "eye": 0, "step_size": 5, "phiType": 1, "sal": 0.0, "ion_exc_rad": 2.0}
    arguments |= {"A": 2.0, "proj_len": 0.0, "diel_int": 1.0, "diel_ext": 1.0}
    launched = {"global": [4, 2], "local": [4, 1]}
    got = emulated("gem/calc_potential_single_step_dev", launched, arguments, arrays).array("vert_c_s")
    distances = np.sqrt(((vertices[:, :, None] - atoms[:, None, :]) ** 2).sum(0))
    np.testing.assert_allclose(got, (charges / distances).sum(1), rtol=1e-4)


def test_tables_of_features_go_on_where_they_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [(16, 4, 1, 1, 0, 0), (16, 4, 1, 1, 1, 0), (16, 4, 1, 1, 0, 1), (8, 8, 2, 1, 0, 0)]
    folder = tmp_path / "space"
    folder.mkdir()
    frame = pd.DataFrame(rows, columns=[*BLOCKS, "use_padding", "read_only"]).assign(filter_width=15, filter_height=15)
    frame.to_csv(folder / "configurations.csv.gz", index=False)
    pd.DataFrame({"some": [1e-3, 2e-3, 3e-3, np.nan]}).to_csv(folder / "times.csv.gz", index=False)
    (folder / "devices.json").write_text('{"some": {"name": "Tesla K20c"}, "slow": {"name": "GeForce GTX 1080 Ti"}}')
    published = load(folder, SPACES)
    assert published.programs.tolist() == [0, 1, 0, 3]  # the third differs in the read-only cache alone
    table = tmp_path / "table.pkl.xz"
    for sample in (2, 3):
        monkeypatch.setattr("sys.argv", ["", str(folder), "--table", str(table), "--sample", str(sample)])
        feature_tables.main()
        found = pd.read_pickle(table)
        assert len(found) == len(set(found["row"])) == sample
    cards = {name: pm.Calibration.shipped(device=name) for name in ("k20", "gtx_1080_ti")}
    names = {each for card in cards.values() for each in card.model.features}
    assert names <= set(found)
    assert found.set_index("row").loc[0, "group_items"] == 64
    # The exam ranks those three programs on two devices, of which one is the other at half the clock.
    pd.DataFrame({"some": [1e-3, 2e-3, 3e-3, 4e-3], "slow": [2e-3, 4e-3, 2e-3, 8e-3]}).to_csv(
        folder / "times.csv.gz", index=False
    )
    programs = published_searches.Programs.of(load(folder, SPACES), found, names)
    there, measured = programs.on("some")
    assert sorted(measured) == pytest.approx([2e-3, 2e-3, 4e-3])  # the median of 1 and 3 ms
    predictions = published_searches.Predictions.of(cards["k20"], programs.features)
    kernels = [convolution.kernel(each) for each in programs.configurations]
    expected = [float(cards["k20"].predict(cards["k20"].model.counted(kernel))) for kernel in kernels]
    assert predictions.seconds[there] == pytest.approx(expected)
    monkeypatch.setattr("sys.argv", ["", str(folder), "--table", str(table)])
    devices_left_out.main()
    lines = capsys.readouterr().out.splitlines()
    assert [sum(line.startswith(f"{name} ") for line in lines) for name in ("some", "slow", "worst")] == [2, 2, 2]


def test_rows_that_were_another_program_have_no_time(tmp_path: Path) -> None:
    """AMD's cards went through local memory whatever a row says."""
    rows = [(16, 4, 1, 1, 0, 0, 0), (16, 4, 1, 1, 0, 0, 1)]
    frame = pd.DataFrame(rows, columns=[*BLOCKS, "use_padding", "read_only", "use_shmem"])
    frame.assign(use_cmem=1, filter_width=15, filter_height=15).to_csv(tmp_path / "configurations.csv.gz", index=False)
    pd.DataFrame({"a": [1e-3, 2e-3], "n": [3e-3, 4e-3]}).to_csv(tmp_path / "times.csv.gz", index=False)
    (tmp_path / "devices.json").write_text('{"a": {"vendor": "AMD"}, "n": {"vendor": "NVIDIA"}}')
    seconds = load(tmp_path, SPACES).seconds
    assert np.isnan(seconds["a"][0])
    assert seconds["a"][1] == 2e-3
    assert seconds["n"].tolist() == [3e-3, 4e-3]


def test_searches_are_compared_on_each_device_and_over_all() -> None:
    """Twelve programs, predicted in the order of their times, on two devices of which one fails four."""
    seconds = pd.DataFrame({"some": np.arange(1.0, 13), "few": [*np.arange(1.0, 9), *[np.nan] * 4]})
    configurations = [{"a": place, "b": place % 3} for place in range(12)]
    programs = published_searches.Programs(configurations, {}, np.zeros((12, 1)), seconds)
    predictions = published_searches.Predictions(np.arange(1.0, 13)[::-1].copy(), np.zeros((12, 1)))
    published = SimpleNamespace(devices={"some": {"name": "a"}, "few": {"name": "b"}})
    found = {
        device: published_searches.unlearned(programs, predictions, published, device, 0)  # type: ignore[arg-type]
        for device in ("some", "few")
    }
    some = found["some"]
    assert some["`PredictedFirst`"] == {8: 1 / 5}  # the slowest eight
    assert some["times of the other GPUs"] == {8: 1}
    assert some["by chance"][8] == pytest.approx(published_searches.by_chance(np.arange(1.0, 13), 8))
    assert not found["few"]["by chance"]  # it has no more than eight
    rows = {
        name: rest for name, *rest in published_searches.over_devices({"x": some, "y": {**some, "by chance": {8: 0.5}}})
    }
    assert rows["`PredictedFirst`"][0] == "0.200 / 0.200"
    assert rows["by chance"][0].endswith(" / 0.500")


def test_figures_of_exams() -> None:
    measured = np.array([4.0, 2.0, 8.0, 1.0])
    assert published_searches.by_chance(measured, 1) == pytest.approx(np.mean(1 / measured))
    pairs = [1 / min(measured[i], measured[j]) for i in range(4) for j in range(i)]
    assert published_searches.by_chance(measured, 2) == pytest.approx(np.mean(pairs))
    assert published_searches.by_chance(measured, 4) == 1
    assert published_searches.reached(np.array([1.0, 2.0, 3.0, 4.0]), measured, 2) == 0.5
    predicted = measured * np.array([1.0, 1.1, 1.0, 1.0])
    assert published_searches.error(predicted, measured) == pytest.approx(0.1**0.25 * 1e-3**0.75)


def test_the_choice_of_a_device_is_judged_by_the_fastest() -> None:
    cases = pd.MultiIndex.from_tuples([("a", "tiny"), ("a", "large"), ("gem/b", "tiny")], names=["case", "size"])
    measured = pd.DataFrame({"one": [1.0, 2.0, 3.0], "other": [1.05, 1.0, 6.0]}, cases)
    assert published_devices.judged(pd.Series("one", cases), measured) == ["67%", "67%", "1.33", "1.26", "2.0"]
    assert published_devices.judged(pd.Series(["other", "other", "one"], cases), measured)[:2] == ["67%", "100%"]
    launches = pd.DataFrame({"case": ["a", "a", "gem/b"], "size": "tiny", "weight": [0.5, 0.5, 1.0]})
    times = published_devices.of_cases(launches, [1.0, 3.0, 8.0])
    assert times.to_dict() == {("a", "tiny"): 2.0, ("gem/b", "tiny"): 4.0}


def test_each_device_is_predicted_by_the_calibration_of_its_kind() -> None:
    named = {"quick": {"name": "Core i7-6700K"}, "card": {"name": "Tesla K20c"}, "other": {"name": "an abacus"}}
    assert feature_tables.known_devices(named) == ["i7_6700k", "k20"]
    shipped = [pm.Calibration.shipped(device="H200"), pm.Calibration.shipped(device="intel-xeon")]
    there = published_devices.carried_over(shipped, named)
    assert {name: each.device["name"] for name, each in there.items()} == {
        "quick": "Core i7-6700K",
        "card": "Tesla K20m",
    }
    assert [*published_devices.carried_over(shipped[1:], named)] == ["quick"]
    slower = published_devices.with_launch(there["quick"], 1e-3)
    kernel = pm.Kernel.from_opencl("__kernel void k(__global int *x) { x[0] = 1; }", "k", 1, 1, {"x": 1})
    assert float(slower.predict(kernel)) == pytest.approx(1e-3, rel=1e-3)
    low, high = slower.interval(kernel)
    assert low < 0.8e-3 < 1.3e-3 < high  # no surer of it than of any price


def test_kinds_of_devices_are_judged_by_themselves() -> None:
    cases = pd.MultiIndex.from_tuples([("a", "tiny"), ("b", "tiny")], names=["case", "size"])
    measured = pd.DataFrame({"one": [1.0, 2.0], "other": [4.0, np.nan], "unknown": [1.0, 1.0]}, cases)
    seconds = pd.DataFrame({"one": [1.5, 0.5], "other": [4.4, 1.0]}, cases)
    predicted = published_devices.Predicted(seconds, seconds / 2, seconds * 2)
    kinds = {"one": "cpu", "other": "gpu", "unknown": "gpu"}
    assert published_devices.by_kind(predicted, measured, kinds) == [
        ["all", "3", "1.10", "67%", "67%"],
        ["cpu", "2", "0.88", "50%", "50%"],
        ["gpu", "1", "1.10", "100%", "100%"],
    ]
