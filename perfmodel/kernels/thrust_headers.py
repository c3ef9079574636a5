"""Thrust's functions that threads call by themselves, as its headers for them are for other compilers than NVIDIA's
runtime compiler."""

from __future__ import annotations

_ITERATORS = ("counting", "discard", "constant", "transform", "zip", "permutation")
UNDERSTOOD = frozenset(
    f"thrust/{name}.h"
    for name in (
        *("pair", "tuple", "functional", "complex", "version", "detail/config", "detail/raw_pointer_cast"),
        *("iterator/iterator_traits", *(f"iterator/{name}_iterator" for name in _ITERATORS)),
    )
)
"""Headers of Thrust's that the runtime compiler takes, or that have a stand-in of their own."""

_HEAD = """#ifndef FUNCTIONS_OF_THRUST
#define FUNCTIONS_OF_THRUST
#include <thrust/pair.h>
#include <thrust/tuple.h>
#include <thrust/functional.h>
#include <thrust/detail/raw_pointer_cast.h>
#define OF_THRUST __host__ __device__ inline
namespace thrust {
struct ByItself {};
static __device__ const ByItself seq{}, device{}, host{};
struct IsLess {
  template <typename A, typename B> OF_THRUST bool operator()(const A &a, const B &b) const { return a < b; }
};
struct IsSum {
  template <typename A, typename B> OF_THRUST auto operator()(const A &a, const B &b) const { return a + b; }
};
template <typename T> OF_THRUST void swap(T &a, T &b) { T c = a; a = b; b = c; }
template <typename T> OF_THRUST const T &min(const T &a, const T &b) { return b < a ? b : a; }
template <typename T> OF_THRUST const T &max(const T &a, const T &b) { return a < b ? b : a; }
"""
_SEARCHES = """
template <typename I, typename T, typename L> OF_THRUST I lower_bound(I first, I last, const T &value, L less) {
  auto n = last - first;
  while (n > 0) {
    auto half = n / 2;
    if (less(first[half], value)) { first += half + 1; n -= half + 1; } else n = half;
  }
  return first;
}
template <typename I, typename T, typename L> OF_THRUST I upper_bound(I first, I last, const T &value, L less) {
  auto n = last - first;
  while (n > 0) {
    auto half = n / 2;
    if (less(value, first[half])) n = half; else { first += half + 1; n -= half + 1; }
  }
  return first;
}
template <typename I, typename T, typename L> OF_THRUST bool binary_search(I first, I last, const T &value, L less) {
  I found = lower_bound(first, last, value, less);
  return found != last && !less(value, *found);
}
"""
_SEARCHES += "".join(
    f"template <typename I, typename T> OF_THRUST {result} {name}(I first, I last, const T &value) "
    f"{{ return {name}(first, last, value, IsLess()); }}\n"
    f"template <typename I, typename T> OF_THRUST {result} {name}(ByItself, I first, I last, const T &value) "
    f"{{ return {name}(first, last, value, IsLess()); }}\n"
    f"template <typename I, typename T, typename L> OF_THRUST {result} {name}"
    f"(ByItself, I first, I last, const T &value, L less) {{ return {name}(first, last, value, less); }}\n"
    for result, name in (("I", "lower_bound"), ("I", "upper_bound"), ("bool", "binary_search"))
)
_LOOPS = """
template <typename I, typename T> OF_THRUST void fill(ByItself, I first, I last, const T &value) {
  for (; first != last; ++first) *first = value;
}
template <typename I, typename O> OF_THRUST O copy(ByItself, I first, I last, O out) {
  for (; first != last; ++first, ++out) *out = *first;
  return out;
}
template <typename I, typename T, typename F> OF_THRUST T reduce(ByItself, I first, I last, T sum, F combined) {
  for (; first != last; ++first) sum = combined(sum, *first);
  return sum;
}
template <typename I, typename T> OF_THRUST T reduce(ByItself by, I first, I last, T sum) {
  return reduce(by, first, last, sum, IsSum());
}
template <typename I, typename O> OF_THRUST O inclusive_scan(ByItself, I first, I last, O out) {
  if (first == last) return out;
  auto sum = *first;
  for (*out++ = sum; ++first != last; ++out) *out = sum = sum + *first;
  return out;
}
template <typename I, typename O, typename T> OF_THRUST O exclusive_scan(ByItself, I first, I last, O out, T sum) {
  for (; first != last; ++first, ++out) { T next = sum + *first; *out = sum; sum = next; }
  return out;
}
template <typename I> OF_THRUST I max_element(ByItself, I first, I last) {
  I found = first;
  for (; first != last; ++first) if (*found < *first) found = first;
  return found;
}
template <typename I> OF_THRUST I min_element(ByItself, I first, I last) {
  I found = first;
  for (; first != last; ++first) if (*first < *found) found = first;
  return found;
}
"""
_RANDOM = """
template <unsigned A> struct Congruential {
  typedef unsigned result_type;
  static const unsigned min = 1, max = 2147483646u, default_seed = 1;
  OF_THRUST explicit Congruential(unsigned value = 1) { seed(value); }
  OF_THRUST void seed(unsigned value = 1) { x = value % 2147483647u ? value % 2147483647u : 1; }
  OF_THRUST unsigned operator()() { return x = (unsigned)((unsigned long long)A * x % 2147483647u); }
  OF_THRUST void discard(unsigned long long times) {
    for (unsigned long long factor = A; times; times /= 2, factor = factor * factor % 2147483647u)
      if (times % 2) x = (unsigned)(factor * x % 2147483647u);
  }
 private:
  unsigned x;
};
typedef Congruential<16807> minstd_rand0;
typedef Congruential<48271> minstd_rand;
typedef minstd_rand default_random_engine;
template <typename R = double> struct uniform_real_distribution {
  typedef R result_type;
  OF_THRUST explicit uniform_real_distribution(R a = 0, R b = 1) : from(a), to(b) {}
  template <typename G> OF_THRUST R operator()(G &draw) const {
    return R(draw() - G::min) / (R(1) + R(G::max - G::min)) * (to - from) + from;
  }
 private:
  R from, to;
};
template <typename N = int> struct uniform_int_distribution {
  typedef N result_type;
  OF_THRUST explicit uniform_int_distribution(N a = 0, N b = 2147483647) : within(a, double(b) + 1) {}
  template <typename G> OF_THRUST N operator()(G &draw) const { return N(::floor(within(draw))); }
 private:
  uniform_real_distribution<double> within;
};
template <typename R = double> struct normal_distribution {
  typedef R result_type;
  OF_THRUST explicit normal_distribution(R a = 0, R b = 1) : mean(a), deviation(b) {}
  template <typename G> OF_THRUST R operator()(G &draw) const {
    return mean + deviation * R(::normcdfinv((R(draw() - G::min) + R(0.5)) / (R(1) + R(G::max - G::min))));
  }
 private:
  R mean, deviation;
};
namespace random {
using thrust::minstd_rand0; using thrust::minstd_rand; using thrust::default_random_engine;
using thrust::uniform_real_distribution; using thrust::uniform_int_distribution; using thrust::normal_distribution;
}
}
#undef OF_THRUST
#endif
"""
FUNCTIONS = _HEAD + _SEARCHES + _LOOPS + _RANDOM
"""They stand in the place of Thrust's other headers: searches, loops of one thread, and random numbers."""
