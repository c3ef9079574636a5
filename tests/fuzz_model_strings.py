"""Throw hostile strings at the model language: ``python tests/fuzz_model_strings.py --count 200000 --seed 1``.

Whatever the string, only a `ModelStringError` may come out of `parse`, within a time limit and bounded memory; what is
accepted must then be usable in every way without any error. Exits with status 1 on the first violation.
"""

from __future__ import annotations

import argparse
import platform
import random
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable

import numpy as np

from perfmodel.basics.errors import ModelStringError
from perfmodel.expression import ModelString, parse, to_text
from perfmodel.expression.functions import LANGUAGE

CORPUS = (
    "p_a * f_x",
    "p_a*f_x_afr:>1*2",
    "p_a*f_mem_access_tag:a_global_float32_load_lstrides:{0:0;1:>15} + p_b*f_op_float32_madd",
    "overhead = p_launch*f_launches + p_group*f_groups\n"
    "work = p_a*f_x\n  + p_b*f_y\noverhead + smooth_max(work, p_c, p_e)",
    "overlap(p_a*f_x, p_b*f_y, p_c, p_o) + saturating(f_n, p_a, p_b, p_c, p_d, p_e, 100)",
    "a = sqrt(abs(p_x - f_y))  # comment\nb = (a +\n a)\nmin(a, b, 3) * group_utilization(f_g, 80) ** p_q",
    "step(f_x - p_x)*floor(f_x/3) + ceil(p_y) - exp(-p_z) + log(f_z) + smooth_step(f_x, p_s) + max(1e-3, .5, 2.)",
)
ALPHABET = "pf_abcxyz0123456789.:;,{}<>=+-*/() \n\t#eE_"
ODD = "\x00\r\x1b\x7féπ𝒳\u2028\ud800'\"\\[]^%!@$&|~`"
HARD_LIMIT_S = 20


class HardLimit(BaseException):
    """A string took so long that it was interrupted."""


def characters(rng: random.Random) -> str:
    alphabet = ALPHABET + ODD if rng.random() < 0.3 else ALPHABET
    return "".join(rng.choices(alphabet, k=rng.randrange(1, 60)))


def words(rng: random.Random) -> str:
    vocabulary = [
        *LANGUAGE,
        "p_a",
        "p_b",
        "f_x",
        "f_y:>1",
        "f_z:{0:1;1:<16}",
        "t",
        "u",
        "t =",
        "u =",
        "(",
        ")",
        ",",
        "\n",
    ]
    vocabulary += ["+", "-", "*", "/", "**", "1", "0", "64", "1e308", "1e-300", "2.5"]
    return rng.choice(["", " "]).join(rng.choices(vocabulary, k=rng.randrange(1, 40)))


def grammatical(rng: random.Random) -> str:
    """Returns a model that mostly is in the language, with terms used several times."""
    terms: list[str] = []
    lines = []
    for index in range(rng.randrange(0, 6)):
        lines.append(f"t_{index} = {expression(rng, terms, rng.randrange(1, 5))}")
        terms.append(f"t_{index}")
    used = " + ".join([*terms, expression(rng, terms, rng.randrange(1, 6))])
    return "\n".join([*lines, used])


def expression(rng: random.Random, terms: list[str], depth: int) -> str:
    kind = rng.random()
    if depth == 0 or kind < 0.15:
        leaves = ["p_a", "p_b", "p_c", "f_x", "f_y:<=4", "f_z:{0:1}_more", "2", "0", "0.5", "1e3", *terms]
        return rng.choice(leaves)
    if kind < 0.6:
        operator = rng.choice(["+", "-", "*", "/", "**"])
        right = (
            rng.choice(["2", "p_a", "-1", "0.5", "(p_b+1)"]) if operator == "**" else expression(rng, terms, depth - 1)
        )
        return f"({expression(rng, terms, depth - 1)} {operator} {right})"
    if kind < 0.68:
        return f"-{expression(rng, terms, depth - 1)}"
    function = rng.choice(list(LANGUAGE.values()))
    least, more = function.arity
    count = least + rng.randrange(0, 3) * more
    arguments = [expression(rng, terms, depth - 1) for _ in range(count)]
    for index in function.exponents:
        arguments[index] = rng.choice(["p_a", "2", "1", "p_b + 1"])
    return f"{function.name}({', '.join(arguments)})"


def mutated(rng: random.Random) -> str:
    text = rng.choice(CORPUS) if rng.random() < 0.7 else grammatical(rng)
    for _ in range(rng.randrange(1, 4)):
        start = rng.randrange(len(text) + 1)
        stop = min(len(text), start + rng.choice([0, 1, 1, 2, 8]))
        new = rng.choice(
            [
                "",
                rng.choice(ALPHABET),
                rng.choice(ALPHABET),
                rng.choice(ALPHABET + ODD),
                text[start:stop] * 3,
                "**",
                "\n",
            ]
        )
        text = text[:start] + new + text[stop:]
    return text


def large(rng: random.Random) -> str:
    """Returns strings near the limits: long chains, deep brackets, shared terms, many parameters, large numbers."""
    count = rng.choice([30, 60, 64, 65, 200, 800, 1200, 2400, 6000])
    part = rng.choice(["p_a", "f_x", "1", "t", "(p_a)", "tanh(p_a)", "p_b**2", "f_x:{0:1}"])
    operator = rng.choice(["+", "-", "*", "/", "**", ",", " ", "\n", "=", "(", "{", "#"])
    shapes: list[Callable[[], str]] = [
        lambda: operator.join([part] * count),
        lambda: rng.choice(["(", "-", "+", "tanh(", "max(p_a,", "p_a**", "f_x:{"]) * count + part + ")" * count,
        lambda: operator.join(f"p_{index}" for index in range(count)),
        lambda: f"{rng.choice(['overlap', 'max', 'min', 'log'])}({','.join(f'p_{i}*f_{i}' for i in range(count))})",
        lambda: _chained(count, rng.choice(["{0}+{0}", "tanh({0})", "overlap({0},p_a,2)", "{0}*{0}", "{0}*p_a+1"])),
        lambda: rng.choice("0123456789.") * count + rng.choice(["", "*p_a", "e5*p_a"]),
        lambda: "p_a*" + rng.choice("xf_p\u0661\n #:{") * rng.choice([100, 19_000, 21_000]),
    ]
    return rng.choice(shapes)()


def _chained(count: int, step: str) -> str:
    lines = ["t0 = p_a*f_x"]
    lines += [f"t{index + 1} = {step.format(f't{index}')}" for index in range(count)]
    return "\n".join([*lines, f"t{count}"])


GENERATORS = {"characters": characters, "words": words, "grammatical": grammatical, "mutated": mutated, "large": large}
WEIGHTS = (25, 20, 24, 30, 1)


def use(model: ModelString) -> None:
    """Does everything that is done with an accepted model; nothing here may fail."""
    parameters = {name: 0.5 + index for index, name in enumerate(model.parameters)}
    features = {name: np.array([0.0, 1.0, 1e6]) for name in model.features}
    compiled = model.compile()
    value = compiled(parameters, features)
    jacobian = compiled.jacobian(parameters, features)
    assert jacobian.shape == (len(model.parameters), *value.shape)
    assert set(compiled.terms(parameters, features)) == set(model.terms)
    assert compiled.addends(parameters, features)
    assert model.latex()
    assert isinstance(model.is_linear, bool)
    for name in model.parameters[:3]:
        assert to_text(model.derivative(name))
    again = parse(to_text(model.value)).compile()(parameters, features)
    np.testing.assert_array_equal(again, value)


def outcome(source: str) -> str:
    try:
        model = parse(source)
    except ModelStringError as error:
        return "rejected" if min(error.line, error.column) >= 1 else "rejected without a place"
    try:
        use(model)
    except ModelStringError as error:  # the round trip may go past a limit, as its text is a little longer
        if "longer than" in error.reason or "more than" in error.reason:
            return "accepted, but its text exceeds a limit"
        raise
    return "accepted"


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--count", type=int, default=20_000)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--seconds", type=float, default=1.0, help="time limit of one string")
    arguments.add_argument("--megabytes", type=int, default=600, help="limit of the whole process's memory")
    options = arguments.parse_args()
    warnings.simplefilter("error")
    signal.signal(signal.SIGALRM, _interrupt)
    rng = random.Random(options.seed)
    counts: Counter[tuple[str, str]] = Counter()
    slowest, slowest_source = 0.0, ""
    for _ in range(options.count):
        (kind,) = rng.choices(list(GENERATORS), WEIGHTS)
        source = GENERATORS[kind](rng)
        signal.alarm(HARD_LIMIT_S)
        start = time.process_time()
        try:
            counts[kind, outcome(source)] += 1
        except (Exception, HardLimit):
            traceback.print_exc()
            print(f"violation by a string of kind {kind}: {source[:2000]!r}")
            return 1
        elapsed = time.process_time() - start
        if elapsed > slowest:
            slowest, slowest_source = elapsed, source
    signal.alarm(0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"python {platform.python_version()}, numpy {np.__version__}, count {options.count}, seed {options.seed}")
    for (kind, result), number in sorted(counts.items()):
        print(f"{kind:12} {result:42} {number:8}")
    print(f"slowest string: {slowest:.3f} s ({slowest_source[:60]!r}); peak memory: {peak:.0f} MB")
    return int(slowest > options.seconds or peak > options.megabytes)


def _interrupt(*_: object) -> None:
    raise HardLimit


if __name__ == "__main__":
    sys.exit(main())
