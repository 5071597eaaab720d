// omniORB's clients of the experiment with priorities: `flood-client REFERENCE THREADS [-ORB...]` calls `sendOctetSeq` in
// that many threads without a pause, over a connection for each. Their requests carry no priority. It prints `ready` when each
// thread has a reply; a line of its input, or the end of that, ends the calls, and it prints their number.

#include <atomic>
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "latency.hh"

int main(int argc, char **argv) {
    try {
        const char *connections[][2] = {{"maxGIOPConnectionPerServer", "1000"}, {nullptr, nullptr}};
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv, "omniORB4", connections);
        int count = argc == 3 ? std::stoi(argv[2]) : 0;
        if (count < 1) {
            std::cerr << "usage: flood-client REFERENCE THREADS [-ORB...]" << std::endl;
            return 2;
        }
        Latency_var target = Latency::_narrow(CORBA::Object_var(orb->string_to_object(argv[1])));
        std::atomic<bool> is_over{false};
        std::atomic<long> calls{0};
        std::mutex mutex;
        std::condition_variable all_begun;
        int begun = 0; // guarded by the mutex
        std::vector<std::thread> threads;
        for (int i = 0; i < count; ++i)
            threads.emplace_back([&] {
                OctetSeq empty;
                try {
                    for (bool is_first = true; !is_over; is_first = false) {
                        target->sendOctetSeq(empty);
                        ++calls;
                        if (is_first) {
                            std::lock_guard<std::mutex> lock(mutex);
                            if (++begun == count) all_begun.notify_one();
                        }
                    }
                } catch (const CORBA::SystemException &e) {
                    std::cerr << "flood-client: CORBA::" << e._name() << std::endl;
                    std::quick_exit(1);
                }
            });
        {   // Not by a loop, which would take the processor away from these threads and their packets.
            std::unique_lock<std::mutex> lock(mutex);
            all_begun.wait(lock, [&] { return begun >= count; });
        }
        std::cout << "ready" << std::endl;
        std::string line;
        std::getline(std::cin, line);
        is_over = true;
        for (std::thread &thread : threads) thread.join();
        std::cout << calls << std::endl;
        orb->destroy();
        return 0;
    } catch (const CORBA::Exception &e) {
        std::cerr << "flood-client: " << e._name() << std::endl;
        return 1;
    }
}
