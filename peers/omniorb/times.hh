// The times of calls, taken and printed in the same way by all clients.
#ifndef TIMES_HH
#define TIMES_HH

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

/// Makes the warm-up calls and the timed calls; returns the times of the latter in nanoseconds.
template <class Call> std::vector<std::int64_t> measure(Call call, long warm_up, long calls) {
    typedef std::chrono::steady_clock Clock;
    std::vector<std::int64_t> times(static_cast<std::size_t>(calls));
    for (long i = 0; i < warm_up; ++i) call();
    for (std::int64_t &time : times) {
        Clock::time_point before = Clock::now();
        call();
        time = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - before).count();
    }
    return times;
}

/// Their statistics, as members of a JSON object.
inline std::string summary(std::vector<std::int64_t> times) {
    double sum = std::accumulate(times.begin(), times.end(), 0.0);
    std::sort(times.begin(), times.end());
    auto quantile = [&](double q) { return times[static_cast<std::size_t>(q * double(times.size() - 1))]; };
    std::ostringstream out;
    out << "\"calls\":" << times.size() << ",\"min_ns\":" << times.front() << ",\"median_ns\":" << quantile(0.5)
        << ",\"p90_ns\":" << quantile(0.9) << ",\"p99_ns\":" << quantile(0.99) << ",\"p999_ns\":" << quantile(0.999)
        << ",\"max_ns\":" << times.back()
        << ",\"mean_ns\":" << std::int64_t(sum / double(times.size()))
        << ",\"calls_per_second\":" << std::int64_t(1e9 * double(times.size()) / sum);
    return out.str();
}

#endif
