// The kinds of function calls of appendix C of paper 004 in C++.
//
// For each kind it prints a line: the row of the paper, a tabulator, and the nanoseconds of an iteration.
// `tools/lab/src/bench/functions/call_kind.rs` does the same in Rust.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define NEVER_INLINE __attribute__((noinline))

using Clock = std::chrono::steady_clock;

/// A value that the compiler does not know, read from memory.
template <typename T> ALWAYS_INLINE T opaque(T value) {
    asm volatile("" : : "r"(&value) : "memory");
    return value;
}

/// A number to which calls add.
struct Sum {
    uint64_t value = 0;
    ALWAYS_INLINE void add_inline(uint64_t more) { value += more; }
    NEVER_INLINE void add_plain(uint64_t more) { value += more; }
};

/// The interface of virtual calls, and two implementations.
struct Adder {
    virtual ~Adder() = default;
    virtual void add(uint64_t more) = 0;
};

struct VirtualSum : Adder {
    uint64_t value = 0;
    NEVER_INLINE void add(uint64_t more) override { value += more; }
};

struct InvertedSum : Adder {
    uint64_t value = 0;
    NEVER_INLINE void add(uint64_t more) override { value -= more; }
};

ALWAYS_INLINE void add_inline(uint64_t &sum, uint64_t more) { sum += more; }

NEVER_INLINE void add_plain(uint64_t &sum, uint64_t more) { sum += more; }

/// Times a loop whose iterations the compiler cannot join, and prints the row.
template <typename State, typename Call, typename Total>
ALWAYS_INLINE void timed(const char *row, uint64_t iterations, State &state, Call call, Total total) {
    auto begin = Clock::now();
    for (uint64_t value = 0; value < iterations; ++value) call(state, opaque(value));
    std::chrono::duration<double, std::nano> time = Clock::now() - begin;
    uint64_t sum = opaque(total());
    if (sum != iterations * (iterations - 1) / 2) {
        std::fprintf(stderr, "%s: the sum is %llu\n", row, static_cast<unsigned long long>(sum));
        std::exit(1);
    }
    std::printf("%s\t%.4f\n", row, time.count() / static_cast<double>(iterations));
}

void run(uint64_t iterations) {
    {
        uint64_t sum = 0;
        timed("empty iteration", iterations, sum, [](uint64_t &to, uint64_t more) { to += more; }, [&] { return sum; });
    }
    {
        uint64_t sum = 0;
        auto call = [](uint64_t &to, uint64_t more) { add_inline(to, more); };
        timed("inline function call", iterations, sum, call, [&] { return sum; });
    }
    {
        uint64_t sum = 0;
        auto call = [](uint64_t &to, uint64_t more) { add_plain(to, more); };
        timed("non-inline function call", iterations, sum, call, [&] { return sum; });
    }
    {
        Sum sum;
        auto call = [](Sum &to, uint64_t more) { to.add_inline(more); };
        timed("inline member function call", iterations, sum, call, [&] { return sum.value; });
    }
    {
        Sum sum;
        auto call = [](Sum &to, uint64_t more) { to.add_plain(more); };
        timed("non-inline member function call", iterations, sum, call, [&] { return sum.value; });
    }
    {
        // The compiler sees the type.
        VirtualSum sum;
        auto call = [](VirtualSum &to, uint64_t more) { to.add(more); };
        timed("virtual member function call, optimizable", iterations, sum, call, [&] { return sum.value; });
    }
    {
        // The compiler does not see which of them it is.
        VirtualSum sum;
        InvertedSum inverted;
        Adder *chosen = &sum;
        if (!opaque(true)) chosen = &inverted;
        auto call = [](Adder *to, uint64_t more) { to->add(more); };
        chosen = opaque(chosen);
        timed("virtual member function call", iterations, chosen, call, [&] { return sum.value; });
    }
}

} // namespace

int main(int count, char **words) {
    char *end = nullptr;
    uint64_t iterations = count == 2 ? std::strtoull(words[1], &end, 10) : 0;
    if (iterations == 0 || *end != '\0') {
        std::fprintf(stderr, "usage: functions ITERATIONS\n");
        return 2;
    }
    run(iterations);
    return 0;
}
