"""Gives textbook kernels of ours for a published list of launches, with data where these decide what is done."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import perfmodel as pm
from perfmodel.opencl_c import lowered_kernel

SOURCE = Path(__file__).with_suffix(".cl")
NAMES = {
    "kmeans/invert_mapping": "turned",
    "kmeans/kmeansPoint": "nearest_cluster",
    "lud/lud_diagonal": "factored_diagonal",
    "lud/lud_perimeter": "factored_perimeter",
    "lud/lud_internal": "factored_internal",
    "dwt/c_CopySrcToComponents": "colours",
    "dwt/cl_fdwt53Kernel": "wavelet",
    "bfs/kernel1": "visited_neighbours",
    "bfs/kernel2": "next_level",
    "hmm/init_ones_dev": "ones",
    "hmm/init_alpha_dev": "first_alpha",
    "hmm/calc_alpha_dev": "alpha",
    "hmm/scale_alpha_dev": "scaled_alpha",
    "hmm/init_beta_dev": "last_beta",
    "hmm/calc_beta_dev": "beta",
    "hmm/calc_gamma_dev": "gamma_sums",
    "hmm/calc_xi_dev": "xi_sums",
    "hmm/est_a_dev": "transitions",
    "hmm/scale_a_dev": "scaled_transitions",
    "hmm/acc_b_dev": "emission_sums",
    "hmm/est_b_dev": "emissions",
    "hmm/scale_b_dev": "scaled_emissions",
    "hmm/est_pi_dev": "first_states",
    "hmm/s_dot_kernel_naive": "products",
    "hmm/mvm_non_kernel_naive": "matrix_by_vector",
    "hmm/mvm_trans_kernel_naive": "turned_matrix_by_vector",
    "nw/needle_opencl_shared_1": "aligned_first_half",
    "nw/needle_opencl_shared_2": "aligned_second_half",
    "gem/calc_potential_single_step_dev": "potential",
}
"""Kernels of ours by the published names of cases."""

SEARCHED = ("gem/",)
"""Most work-groups of these do nothing, so that a sample of them may miss those that do: all are emulated."""

MOST = 5
"""So many launches, evenly spread over a run, stand for all, where their sizes differ."""
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Launch:
    """Holds one launch of a case.

    Attributes:
        arrays: contents that decide what the kernel does; all else is random.
        weight: the part of the case's launches that it stands for.
    """

    case: str
    size: str
    kernel: pm.Kernel
    arrays: Arrays
    weight: float

    @property
    def observed(self) -> pm.Kernel:
        """The kernel as it is predicted: with its data where they decide what it does."""
        if self.case.startswith(SEARCHED):
            return self.kernel.as_observed(self.arrays, groups="all")
        return self.kernel.as_countable(self.arrays) if self.arrays else self.kernel


def launches(file: str | Path, most: int = MOST) -> Iterator[Launch]:
    """Yields the launches of a list in JSON, as the README beside it describes."""
    for case, known in json.loads(Path(file).read_text()).items():
        for size, launched in known["sizes"].items():
            given = launched.get("launches", [launched])
            every = [(each, arguments, arrays) for each in given for arguments, arrays in _each(case, each, most)]
            for each, arguments, arrays in every:
                yield Launch(
                    case=case, size=size, kernel=kernel(case, each, arguments), arrays=arrays, weight=1 / len(every)
                )


def kernel(case: str, launched: Mapping[str, Any], arguments: Mapping[str, Any]) -> pm.Kernel:
    """Returns our kernel for a case, launched so with these scalar arguments."""
    source = SOURCE.read_text()
    own = {parameter.name for parameter in lowered_kernel(source, NAMES[case], []).parameters}
    extents = {**launched["arrays"], **launched.get("local_bytes", {})}
    return pm.Kernel.from_opencl(
        source,
        NAMES[case],
        launched["global"],
        launched["local"],
        {name: extent for name, extent in extents.items() if name in own},
    ).at(**{name: value for name, value in arguments.items() if name in own})


def _each(case: str, launched: Mapping[str, Any], most: int) -> Iterator[tuple[dict[str, Any], Arrays]]:
    """Yields arguments and deciding arrays of launches that stand for all of a run."""
    arguments = dict(launched["arguments"])
    varying = launched.get("each", {})
    if "level" in varying:
        for arrays in _levels(case, arguments["no_of_nodes"], launched["arrays"].get("g_graph_edges")):
            yield arguments, arrays
        return
    if case == "hmm/scale_b_dev":
        emissions = np.zeros((arguments["nsymbols"], arguments["nstates"]), np.float32)
        emissions[0] = 1
        yield arguments, {"b_d": emissions.reshape(-1)}
        return
    if case.startswith("gem/"):
        starts = np.linspace(0, launched["arrays"]["at_x_s"], arguments["nres"] + 1).astype(np.int32)
        yield arguments, {"atom_addrs": starts[:-1], "atom_lengths": np.diff(starts)}
        return
    steps = {name: range(*step.values()) for name, step in varying.items() if not isinstance(step, str)}
    if not steps:
        yield arguments, {}
        return
    ((name, values),) = steps.items()
    sized = any(name in str(extent) for extent in launched["global"])
    count = min(most, len(values)) if sized else 1
    for part in range(count):
        value = values[(2 * part + 1) * len(values) // (2 * count)]
        copies = {other: value + (60 if "+" in text else 0) for other, text in varying.items() if other != name}
        yield {**arguments, name: value, **copies}, {}


def _levels(case: str, nodes: int, edges: int | None) -> Iterator[Arrays]:
    """Yields what decides each level of a breadth-first search from node 0.

    A random graph stands for the one that was searched: two to four edges of each node's own, each both ways.
    """
    rng = np.random.default_rng(nodes)
    own = np.full(nodes, 3)
    changed = rng.permutation(nodes)[: nodes // 3 * 2]
    own[changed[::2]], own[changed[1::2]] = 2, 4
    source, target = np.repeat(np.arange(nodes), own), rng.integers(0, nodes, own.sum())
    heads, tails = np.concatenate([source, target]), np.concatenate([target, source])
    tails = tails[np.argsort(heads, kind="stable")].astype(np.int32)
    counts = np.bincount(heads, minlength=nodes)
    graph = np.zeros(nodes, [("first", np.int32), ("count", np.int32)])
    graph["count"], graph["first"] = counts, np.concatenate([[0], np.cumsum(counts)[:-1]])
    ends = tails if edges is None else np.resize(tails, edges)
    graph["count"] = np.clip(np.minimum(graph["first"] + counts, len(ends)) - graph["first"], 0, None)
    visited, frontier = np.zeros(nodes, np.int32), np.zeros(nodes, np.int32)
    visited[0] = frontier[0] = 1
    while frontier.any():
        reached = np.zeros(nodes, np.int32)
        for node in np.flatnonzero(frontier):
            reached[ends[graph["first"][node] : graph["first"][node] + graph["count"][node]]] = 1
        reached[visited == 1] = 0
        if case == "bfs/kernel1":
            yield {
                "g_graph_nodes": graph,
                "g_graph_edges": ends,
                "g_graph_mask": frontier,
                "g_graph_visited": visited.copy(),
            }
        else:
            yield {"g_updating_graph_mask": reached}
        visited |= reached
        frontier = reached
