// Messages from several threads to one through ACE_Message_Queue, passed by pointer.
//
// For each line of the input (`ace PRODUCERS`) it runs one round, and prints the nanoseconds a message of
// each block on one line. `net/stream/benches/streams.rs` does the same, with these numbers of messages and
// these limits.

#include <ace/Condition_Thread_Mutex.h>
#include <ace/Init_ACE.h>
#include <ace/Message_Block.h>
#include <ace/Message_Queue.h>
#include <ace/Synch_Traits.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr size_t messages = 200000;
constexpr size_t block = 1000;
constexpr size_t octets = 100;
constexpr size_t high = 64 << 10;
constexpr size_t low = 32 << 10;

using Queue = ACE_Message_Queue<ACE_MT_SYNCH>;
using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const char *what) {
    std::perror(what);
    std::exit(1);
}

/// The messages, which are made before the clock runs. Each begins with its number.
std::vector<std::unique_ptr<ACE_Message_Block>> make_messages() {
    std::vector<std::unique_ptr<ACE_Message_Block>> made;
    for (size_t number = 0; number < messages; ++number) {
        made.push_back(std::make_unique<ACE_Message_Block>(octets));
        made.back()->copy(reinterpret_cast<const char *>(&number), sizeof number);
        made.back()->wr_ptr(octets - sizeof number);
    }
    return made;
}

void run(const std::vector<std::unique_ptr<ACE_Message_Block>> &made, size_t producers) {
    Queue queue(high, low);
    std::vector<std::thread> threads;
    size_t part = (messages + producers - 1) / producers;
    for (size_t first = 0; first < messages; first += part) {
        threads.emplace_back([&queue, &made, first, last = std::min(messages, first + part)] {
            for (size_t at = first; at < last; ++at) {
                if (queue.enqueue_tail(made[at].get()) == -1) fail("enqueue");
            }
        });
    }
    size_t sum = 0;
    std::string line;
    auto begin = Clock::now();
    for (size_t number = 0; number < messages; number += block) {
        for (size_t at = 0; at < block; ++at) {
            ACE_Message_Block *message = nullptr;
            if (queue.dequeue_head(message) == -1) fail("dequeue");
            size_t value;
            std::memcpy(&value, message->rd_ptr(), sizeof value);
            sum += value;
        }
        auto end = Clock::now();
        char text[32];
        std::snprintf(text, sizeof text, "%.2f ", std::chrono::duration<double, std::nano>(end - begin).count() / block);
        line += text;
        begin = end;
    }
    for (auto &thread : threads) thread.join();
    if (sum != messages * (messages - 1) / 2) fail("a message was lost");
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
}

} // namespace

int main() {
    ACE::init();
    auto made = make_messages();
    size_t producers = 0;
    while (std::scanf(" ace %zu", &producers) == 1) {
        if (producers == 0) fail("no producers");
        run(made, producers);
    }
    return 0;
}
