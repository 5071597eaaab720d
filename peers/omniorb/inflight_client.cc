// omniORB's client of the experiment with calls in flight: `inflight-client REFERENCE [-ORB...]` prints `ready`, and answers
// each line `IN-FLIGHT MILLISECONDS` of its input with one JSON object; times are in nanoseconds.
//
// 0 in flight are sequential, blocking calls; otherwise each reply handler makes the next call. All calls share one
// connection.

#include <chrono>
#include <condition_variable>
#include <iostream>
#include <list>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "latency.hh"
#include "times.hh"

namespace {

typedef std::chrono::steady_clock Clock;

std::int64_t nanos(Clock::duration time) { return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count(); }

/// The calls of one run.
struct Run {
    Latency_ptr target;
    Clock::time_point end;
    std::mutex mutex;
    std::condition_variable done;
    std::vector<std::int64_t> times;
    Clock::time_point last;
    int pending = 0; // handlers whose last call has not ended
    std::string error;

    /// Records a call that ends now; returns whether there is time for another one.
    bool record(Clock::time_point before, Clock::time_point now) {
        std::lock_guard<std::mutex> lock(mutex);
        times.push_back(nanos(now - before));
        last = now;
        return now < end;
    }

    void finish(const std::string &reason = "") {
        std::lock_guard<std::mutex> lock(mutex);
        if (!reason.empty()) error = reason;
        if (--pending == 0) done.notify_all();
    }
};

/// One call in flight at a time.
struct Handler : POA_AMI_LatencyHandler {
    Run *run = nullptr;
    AMI_LatencyHandler_var self;
    Clock::time_point before;

    void next() {
        before = Clock::now();
        try {
            run->target->sendc_ping(self.in());
        } catch (const CORBA::SystemException &e) {
            run->finish(e._name());
        }
    }

    void ping() override {
        if (run->record(before, Clock::now()))
            next();
        else
            run->finish();
    }
    void ping_excep(Messaging::ExceptionHolder *holder) override {
        try {
            holder->raise_exception();
        } catch (const CORBA::Exception &e) {
            run->finish(e._name());
        }
    }
    void sendStructSeq() override {}
    void sendStructSeq_excep(Messaging::ExceptionHolder *) override {}
    void sendOctetSeq() override {}
    void sendOctetSeq_excep(Messaging::ExceptionHolder *) override {}
};

/// Handlers live as long as the process: replies may still refer to them.
std::list<Handler *> handlers;

void make_calls(Run &run, unsigned in_flight) {
    if (in_flight == 0) {
        for (Clock::time_point before = Clock::now(), now; before < run.end; before = now) {
            run.target->ping();
            run.record(before, now = Clock::now());
        }
        return;
    }
    while (handlers.size() < in_flight) {
        handlers.push_back(new Handler);
        handlers.back()->self = handlers.back()->_this();
    }
    run.pending = static_cast<int>(in_flight);
    unsigned number = 0;
    for (Handler *handler : handlers) {
        if (number++ == in_flight) break;
        handler->run = &run;
        handler->next();
    }
    std::unique_lock<std::mutex> lock(run.mutex);
    run.done.wait(lock, [&] { return run.pending == 0; });
}

} // namespace

int main(int argc, char **argv) {
    try {
        const char *one_connection[][2] = {{"oneCallPerConnection", "0"}, {"maxGIOPConnectionPerServer", "1"}, {nullptr, nullptr}};
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv, "omniORB4", one_connection);
        if (argc != 2) {
            std::cerr << "usage: inflight-client REFERENCE [-ORB...]" << std::endl;
            return 2;
        }
        CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
        PortableServer::POA_var root = PortableServer::POA::_narrow(object);
        PortableServer::POAManager_var(root->the_POAManager())->activate();
        object = orb->string_to_object(argv[1]);
        Latency_var target = Latency::_narrow(object);
        target->ping();
        std::cout << "ready" << std::endl;
        for (std::string line; std::getline(std::cin, line);) {
            std::istringstream words(line);
            unsigned in_flight = 0, millis = 0;
            if (!(words >> in_flight >> millis)) return 2;
            Run run;
            run.target = target.in();
            run.times.reserve(1 << 20);
            Clock::time_point start = Clock::now();
            run.end = start + std::chrono::milliseconds(millis);
            make_calls(run, in_flight);
            if (!run.error.empty()) {
                std::cerr << "inflight-client: " << run.error << std::endl;
                return 1;
            }
            std::cout << "{\"seconds\":" << double(nanos(run.last - start)) / 1e9 << "," << summary(std::move(run.times)) << "}"
                      << std::endl;
        }
        orb->destroy();
        return 0;
    } catch (const CORBA::Exception &e) {
        std::cerr << "inflight-client: " << e._name() << std::endl;
        return 1;
    }
}
