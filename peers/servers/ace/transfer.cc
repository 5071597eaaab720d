// The service of paper 004 (section 4.1, with the greeting of 5.5.3) over ACE, in the server architectures of
// tables 5.1 and 5.2: ACE_simple, ace_select, ace_forker, ace_thr, ace_thrpool and ace_msgq, which figures
// 4.3 to 4.19 show.

#include <ace/Acceptor.h>
#include <ace/Get_Opt.h>
#include <ace/INET_Addr.h>
#include <ace/Init_ACE.h>
#include <ace/Null_Mutex.h>
#include <ace/OS_NS_signal.h>
#include <ace/OS_NS_stdio.h>
#include <ace/OS_NS_string.h>
#include <ace/OS_NS_sys_wait.h>
#include <ace/OS_NS_unistd.h>
#include <ace/Reactor.h>
#include <ace/SOCK_Acceptor.h>
#include <ace/SOCK_Stream.h>
#include <ace/Select_Reactor.h>
#include <ace/Signal.h>
#include <ace/Strategies_T.h>
#include <ace/Svc_Handler.h>
#include <ace/Task.h>
#include <ace/Thread_Manager.h>

#include <netinet/tcp.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>

namespace {

constexpr int backlog = 1024;
constexpr size_t request_octets = 4;
constexpr size_t max_reply = 9999;
constexpr int max_workers = 1024;
constexpr size_t queue_octets = 1024 * sizeof(ACE_SOCK_Stream); // the high water mark of the message queue
constexpr char greeting[] = "Hello\n";                         // and its final NUL, as in the paper
const ACE_Time_Value retry_interval(0, 10000);                 // 10 ms

struct {
    const char *host = "127.0.0.1";
    u_short port = 0;
    size_t workers = 10;
    bool has_greeting = true;
} options;

char reply_octets[max_reply];

[[noreturn]] void fail(const char *operation) {
    ACE_OS::fprintf(stderr, "ace: %s: %s\n", operation, ACE_OS::strerror(errno));
    std::exit(1);
}

/// The number of octets for which a request asks, or -1 if it has other characters than digits.
int parse_request(const char *request) {
    int octets = 0;
    for (size_t at = 0; at < request_octets; ++at) {
        if (request[at] < '0' || request[at] > '9') return -1;
        octets = 10 * octets + (request[at] - '0');
    }
    return octets;
}

void set_nodelay(ACE_SOCK_Stream &peer) {
    int on = 1;
    peer.set_option(IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void announce(ACE_SOCK_Acceptor &acceptor) {
    ACE_INET_Addr address;
    if (acceptor.get_local_addr(address) == -1) fail("getsockname");
    ACE_OS::printf("listening %s:%u\n", options.host, address.get_port_number());
    ACE_OS::fflush(stdout);
}

void open_acceptor(ACE_SOCK_Acceptor &acceptor) {
    if (acceptor.open(ACE_INET_Addr(options.port, options.host), 1, PF_INET, backlog) == -1) fail("listen");
    announce(acceptor);
}

/// Accepts a connection; without free descriptors it waits and tries again.
void accept(ACE_SOCK_Acceptor &acceptor, ACE_SOCK_Stream &peer) {
    while (acceptor.accept(peer) == -1)
        if (errno == EMFILE || errno == ENFILE) ACE_OS::sleep(retry_interval);
    set_nodelay(peer);
}

/// Serves a connection by blocking calls, and closes it.
void serve(ACE_SOCK_Stream &peer) {
    char request[request_octets];
    bool is_open = !options.has_greeting || peer.send_n(greeting, sizeof greeting) > 0;
    while (is_open && peer.recv_n(request, sizeof request) == static_cast<ssize_t>(sizeof request)) {
        int octets = parse_request(request);
        is_open = octets == 0 || (octets > 0 && peer.send_n(reply_octets, octets) > 0);
    }
    peer.close();
}

// ---------------------------------------------------------------- iterative

void run_iterative() {
    ACE_SOCK_Acceptor acceptor;
    ACE_SOCK_Stream peer;
    open_acceptor(acceptor);
    for (;;) {
        accept(acceptor, peer);
        serve(peer);
    }
}

// ---------------------------------------------------------------- select (figures 4.3 to 4.5)

/// A connection of the event-driven server.
class Client_Handler : public ACE_Svc_Handler<ACE_SOCK_STREAM, ACE_NULL_SYNCH> {
public:
    int open(void *) override {
        set_nodelay(peer());
        if (peer().enable(ACE_NONBLOCK) == -1) return -1;
        // The buffer of a new connection has room for the greeting.
        if (options.has_greeting && peer().send(greeting, sizeof greeting) != sizeof greeting) return -1;
        return reactor()->register_handler(this, READ_MASK);
    }

    int handle_input(ACE_HANDLE) override {
        ssize_t octets = peer().recv(request_ + received_, request_octets - received_);
        if (octets < 0 && (errno == EWOULDBLOCK || errno == EINTR)) return 0;
        if (octets <= 0) return -1;
        received_ += octets;
        if (received_ < request_octets) return 0;
        received_ = 0;
        int number = parse_request(request_);
        if (number <= 0) return number;
        unsent_ = number;
        if (send_some() == -1) return -1;
        if (unsent_ == 0) return 0;
        reactor()->cancel_wakeup(this, READ_MASK);
        return reactor()->schedule_wakeup(this, WRITE_MASK) == -1 ? -1 : 0;
    }

    int handle_output(ACE_HANDLE) override {
        if (send_some() == -1) return -1;
        if (unsent_ > 0) return 0;
        reactor()->cancel_wakeup(this, WRITE_MASK);
        return reactor()->schedule_wakeup(this, READ_MASK) == -1 ? -1 : 0;
    }

private:
    int send_some() {
        ssize_t sent = peer().send(reply_octets, unsent_);
        if (sent < 0) return errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
        unsent_ -= sent;
        return 0;
    }

    char request_[request_octets];
    size_t received_ = 0; // octets of the request
    size_t unsent_ = 0;   // octets of the reply
};

/// An acceptor that waits when descriptors are exhausted. The connection stays in the backlog.
template <typename Acceptor> class Patient : public Acceptor {
public:
    int handle_accept_error() override {
        ACE_OS::sleep(retry_interval);
        return 0;
    }
};

/// Runs a reactor over select with this acceptor until the process ends.
template <typename Acceptor, typename Open> void run_reactor(Open open) {
    ACE_Select_Reactor select;
    ACE_Reactor reactor(&select);
    ACE_Reactor::instance(&reactor); // service handlers use this one
    Acceptor acceptor;
    if (open(acceptor, ACE_INET_Addr(options.port, options.host), &reactor) == -1) fail("listen");
    if (::listen(acceptor.get_handle(), backlog) == -1) fail("listen"); // the acceptor has no option for it
    announce(acceptor.acceptor());
    reactor.run_reactor_event_loop();
    fail("the event loop ended");
}

void run_select() {
    using Client_Acceptor = Patient<ACE_Acceptor<Client_Handler, ACE_SOCK_ACCEPTOR>>;
    ACE::set_handle_limit(FD_SETSIZE);
    run_reactor<Client_Acceptor>([](Client_Acceptor &acceptor, const ACE_INET_Addr &address, ACE_Reactor *reactor) {
        return acceptor.open(address, reactor, ACE_NONBLOCK);
    });
}

// ---------------------------------------------------------------- process per connection (figure 4.11)

pid_t server;
bool has_children = false;

extern "C" void reap(int) {
    int saved = errno;
    while (ACE_OS::waitpid(-1, nullptr, WNOHANG) > 0) {}
    errno = saved;
}

/// Ends the process, and its children, at SIGTERM.
extern "C" void terminate(int) {
    if (has_children && ACE_OS::getpid() == server) {
        ACE_OS::kill(0, SIGTERM); // this process itself has it blocked here
        while (ACE_OS::waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {}
    }
    ::_exit(0);
}

void run_process_per_connection() {
    // A group of its own, so that one kill reaches all children. A session leader has one already.
    if (ACE_OS::setpgid(0, 0) == -1 && ACE_OS::getpgid(0) != ACE_OS::getpid()) fail("setpgid");
    has_children = true;
    ACE_Sig_Action action(static_cast<ACE_SignalHandler>(reap), SIGCHLD, nullptr, SA_RESTART | SA_NOCLDSTOP);
    ACE_SOCK_Acceptor acceptor;
    ACE_SOCK_Stream peer;
    open_acceptor(acceptor);
    for (;;) {
        accept(acceptor, peer);
        pid_t child;
        while ((child = ACE_OS::fork()) == -1) ACE_OS::sleep(retry_interval);
        if (child == 0) {
            acceptor.close();
            serve(peer);
            ::_exit(0);
        }
        peer.close();
    }
}

// ---------------------------------------------------------------- thread per connection (ACE_Strategy_Acceptor)

/// A connection with a thread of its own.
class Thread_Handler : public ACE_Svc_Handler<ACE_SOCK_STREAM, ACE_NULL_SYNCH> {
public:
    explicit Thread_Handler(ACE_Thread_Manager *manager = nullptr) : ACE_Svc_Handler(manager) {}

    int open(void *) override {
        set_nodelay(peer());
        reactor(nullptr); // it is not registered there, so that its end need not interrupt the reactor
        return 0;
    }

    int svc() override {
        serve(peer());
        return 0;
    }
};

void run_thread_per_connection() {
    using Thread_Acceptor = Patient<ACE_Strategy_Acceptor<Thread_Handler, ACE_SOCK_ACCEPTOR>>;
    static ACE_Thread_Strategy<Thread_Handler> strategy(ACE_Thread_Manager::instance(), THR_NEW_LWP | THR_DETACHED);
    run_reactor<Thread_Acceptor>([](Thread_Acceptor &acceptor, const ACE_INET_Addr &address, ACE_Reactor *reactor) {
        return acceptor.open(address, reactor, nullptr, nullptr, &strategy);
    });
}

// ---------------------------------------------------------------- thread pool (figures 4.18 and 4.19)

/// Threads that compete for accept, under a lock of this type.
template <typename Lock> class Accept_Pool : public ACE_Task<ACE_MT_SYNCH> {
public:
    explicit Accept_Pool(ACE_SOCK_Acceptor &acceptor) : acceptor_(acceptor) {}

    int open(void * = nullptr) override { return activate(THR_NEW_LWP | THR_JOINABLE, static_cast<int>(options.workers)); }

    int svc() override {
        ACE_SOCK_Stream peer;
        for (;;) {
            lock_.acquire();
            accept(acceptor_, peer);
            lock_.release();
            serve(peer);
        }
    }

private:
    ACE_SOCK_Acceptor &acceptor_;
    Lock lock_;
};

template <typename Lock> void run_accept_pool() {
    ACE_SOCK_Acceptor acceptor;
    open_acceptor(acceptor);
    Accept_Pool<Lock> pool(acceptor);
    if (pool.open() == -1) fail("activate");
    pool.wait();
}

// ---------------------------------------------------------------- message queue (figures 4.14 to 4.16)

/// Threads that take connections from the task's message queue. A message has the address of a stream.
class Queue_Pool : public ACE_Task<ACE_MT_SYNCH> {
public:
    int open(void * = nullptr) override {
        msg_queue()->high_water_mark(queue_octets);
        msg_queue()->low_water_mark(queue_octets);
        return activate(THR_NEW_LWP | THR_JOINABLE, static_cast<int>(options.workers));
    }

    int svc() override {
        ACE_Message_Block *message = nullptr;
        while (getq(message) != -1) {
            auto *peer = reinterpret_cast<ACE_SOCK_Stream *>(message->base());
            serve(*peer);
            delete peer;
            message->release();
        }
        return 0;
    }
};

void run_queue_pool() {
    Queue_Pool pool;
    ACE_SOCK_Acceptor acceptor;
    open_acceptor(acceptor);
    if (pool.open() == -1) fail("activate");
    for (;;) {
        auto peer = std::make_unique<ACE_SOCK_Stream>();
        accept(acceptor, *peer);
        auto message = new ACE_Message_Block(reinterpret_cast<const char *>(peer.release()), sizeof(ACE_SOCK_Stream));
        message->wr_ptr(sizeof(ACE_SOCK_Stream)); // counted against the high water mark
        if (pool.putq(message) == -1) fail("putq");
    }
}

// ---------------------------------------------------------------- command line

struct Architecture {
    const char *name;
    void (*run)();
};

constexpr std::array<Architecture, 7> architectures{{
    {"iterative", run_iterative},
    {"select", run_select},
    {"process-per-connection", run_process_per_connection},
    {"thread-per-connection", run_thread_per_connection},
    {"accept-pool", run_accept_pool<ACE_Null_Mutex>},
    {"accept-pool-mutex", run_accept_pool<ACE_Thread_Mutex>},
    {"queue-pool", run_queue_pool},
}};

[[noreturn]] void refuse_usage() {
    ACE_OS::fprintf(stderr, "usage: ace ARCHITECTURE|--list [--port N] [--host ADDRESS] [--workers N]"
                            " [--no-greeting] [--until-stdin-closes]\n");
    std::exit(2);
}

int number(const char *option, const char *text, int min, int max) {
    char *end = nullptr;
    long value = ACE_OS::strtol(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || value < min || value > max) {
        ACE_OS::fprintf(stderr, "ace: --%s takes a number from %d to %d\n", option, min, max);
        std::exit(2);
    }
    return static_cast<int>(value);
}

ACE_THR_FUNC_RETURN end_with_stdin(void *) {
    char buffer[64];
    ACE_Sig_Set sigterm; // the main thread handles it, which forks no more children then
    sigterm.sig_add(SIGTERM);
    ACE_OS::thr_sigsetmask(SIG_BLOCK, sigterm, nullptr);
    while (ACE_OS::read(ACE_STDIN, buffer, sizeof buffer) > 0) {}
    ACE_OS::kill(ACE_OS::getpid(), SIGTERM);
    return nullptr;
}

/// Parses the options; returns whether the process ends with its standard input.
bool parse_options(int argc, char **argv) {
    ACE_Get_Opt parser(argc, argv, "", 2, 0);
    parser.long_option("port", 'p', ACE_Get_Opt::ARG_REQUIRED);
    parser.long_option("host", 'h', ACE_Get_Opt::ARG_REQUIRED);
    parser.long_option("workers", 'w', ACE_Get_Opt::ARG_REQUIRED);
    parser.long_option("no-greeting", 'n');
    parser.long_option("until-stdin-closes", 'u');
    bool until_stdin_closes = false;
    for (int option; (option = parser()) != EOF;) {
        switch (option) {
        case 'p': options.port = static_cast<u_short>(number("port", parser.opt_arg(), 0, 65535)); break;
        case 'h': options.host = parser.opt_arg(); break;
        case 'w': options.workers = number("workers", parser.opt_arg(), 1, max_workers); break;
        case 'n': options.has_greeting = false; break;
        case 'u': until_stdin_closes = true; break;
        default: refuse_usage();
        }
    }
    if (parser.opt_ind() < argc) refuse_usage();
    return until_stdin_closes;
}

void (*find(const char *name))() {
    for (auto &architecture : architectures)
        if (ACE_OS::strcmp(architecture.name, name) == 0) return architecture.run;
    ACE_OS::fprintf(stderr, "ace: unknown architecture `%s`; there are:", name);
    for (auto &architecture : architectures) ACE_OS::fprintf(stderr, " %s", architecture.name);
    ACE_OS::fprintf(stderr, "\n");
    std::exit(2);
}

} // namespace

int main(int argc, char **argv) {
    ACE::init();
    if (argc == 2 && ACE_OS::strcmp(argv[1], "--list") == 0) {
        for (auto &architecture : architectures) ACE_OS::printf("%s\n", architecture.name);
        return 0;
    }
    if (argc < 2 || argv[1][0] == '-') refuse_usage();
    auto run = find(argv[1]);
    bool until_stdin_closes = parse_options(argc, argv);
    server = ACE_OS::getpid();
    ACE_OS::memset(reply_octets, 'A', sizeof reply_octets);
    ACE_OS::signal(SIGPIPE, SIG_IGN);
    ACE_Sig_Set all(true);
    ACE_Sig_Action action(static_cast<ACE_SignalHandler>(terminate), SIGTERM, all);
    if (ACE::set_handle_limit() == -1) fail("set_handle_limit"); // to the hard limit
    if (until_stdin_closes && ACE_Thread_Manager::instance()->spawn(end_with_stdin) == -1) fail("spawn");
    run();
}
