// The service of paper 004 (section 4.1, with the greeting of 5.5.3) over standalone Asio: an io_context that
// one thread or a pool of threads runs.

#define ASIO_STANDALONE
#define ASIO_NO_DEPRECATED
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <asio.hpp>
#include <charconv>
#include <chrono>
#include <csignal>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using asio::ip::tcp;

constexpr int backlog = 1024;
constexpr std::size_t request_octets = 4;
constexpr std::size_t max_reply = 9999;
constexpr int max_workers = 1024;
constexpr char greeting[] = "Hello\n"; // and its final NUL, as in the paper
constexpr std::chrono::milliseconds retry_interval{10};

struct {
    std::string host = "127.0.0.1";
    unsigned short port = 0;
    int workers = 10;
    bool has_greeting = true;
    bool until_stdin_closes = false;
} options;

const std::string reply(max_reply, 'A');

/// The number of octets for which a request asks, or -1 if it has other characters than digits.
int parse_request(const std::array<char, request_octets> &request) {
    int octets = 0;
    for (char digit : request) {
        if (digit < '0' || digit > '9') return -1;
        octets = 10 * octets + (digit - '0');
    }
    return octets;
}

/// One connection; it lives as long as an operation on it is pending. One operation is pending at a time, so
/// that a pool of threads needs no strand.
class Session : public std::enable_shared_from_this<Session> {
public:
    explicit Session(tcp::socket socket) : socket_(std::move(socket)) {}

    void start() {
        if (!options.has_greeting) return read_request();
        write(asio::buffer(greeting));
    }

private:
    void read_request() {
        auto self = shared_from_this();
        asio::async_read(socket_, asio::buffer(request_), [self](std::error_code error, std::size_t) {
            int octets = error ? -1 : parse_request(self->request_);
            if (octets >= 0) self->write(asio::buffer(reply.data(), static_cast<std::size_t>(octets)));
        });
    }

    void write(asio::const_buffer octets) {
        auto self = shared_from_this();
        asio::async_write(socket_, octets, [self](std::error_code error, std::size_t) {
            if (!error) self->read_request();
        });
    }

    tcp::socket socket_;
    std::array<char, request_octets> request_;
};

/// Accepts connections for ever.
class Acceptor {
public:
    explicit Acceptor(asio::io_context &context) : acceptor_(context), retry_(context) {
        tcp::endpoint endpoint(asio::ip::make_address_v4(options.host), options.port);
        acceptor_.open(endpoint.protocol());
        acceptor_.set_option(tcp::acceptor::reuse_address(true));
        acceptor_.bind(endpoint);
        acceptor_.listen(backlog);
    }

    unsigned port() const { return acceptor_.local_endpoint().port(); }

    void accept() {
        acceptor_.async_accept([this](std::error_code error, tcp::socket socket) {
            if (!error) {
                std::error_code ignored;
                socket.set_option(tcp::no_delay(true), ignored);
                std::make_shared<Session>(std::move(socket))->start();
                return accept();
            }
            retry_.expires_after(retry_interval); // without descriptors: the connection stays in the backlog
            retry_.async_wait([this](std::error_code) { accept(); });
        });
    }

private:
    tcp::acceptor acceptor_;
    asio::steady_timer retry_;
};

/// Stops the io_context at the end of standard input.
class Input {
public:
    explicit Input(asio::io_context &context) : context_(context), input_(context, ::dup(STDIN_FILENO)) {}

    void watch() {
        input_.async_read_some(asio::buffer(buffer_), [this](std::error_code error, std::size_t) {
            if (error) return context_.stop();
            watch();
        });
    }

private:
    asio::io_context &context_;
    asio::posix::stream_descriptor input_;
    std::array<char, 64> buffer_;
};

void serve(int threads) {
    asio::io_context context(threads);
    Acceptor acceptor(context);
    asio::signal_set signals(context, SIGTERM);
    signals.async_wait([&context](std::error_code, int) { context.stop(); });
    std::unique_ptr<Input> input;
    if (options.until_stdin_closes) {
        input = std::make_unique<Input>(context);
        input->watch();
    }
    acceptor.accept();
    std::cout << "listening " << options.host << ":" << acceptor.port() << std::endl;
    std::vector<std::thread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back([&context] { context.run(); });
    context.run();
    for (auto &thread : others) thread.join();
}

struct Architecture {
    std::string_view name;
    int (*threads)();
};

constexpr std::array<Architecture, 2> architectures{{
    {"event-driven", [] { return 1; }},
    {"event-driven-pool", [] { return options.workers; }},
}};

[[noreturn]] void refuse(const std::string &error) {
    std::cerr << "asio: " << error << std::endl;
    std::exit(2);
}

int number(const std::string &option, const char *text, int min, int max) {
    int value = -1;
    std::string_view digits = text ? text : "";
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value < min || value > max)
        refuse(option + " takes a number from " + std::to_string(min) + " to " + std::to_string(max));
    return value;
}

const Architecture &find(std::string_view name) {
    std::string names;
    for (auto &architecture : architectures) {
        if (architecture.name == name) return architecture;
        names.append(" ").append(architecture.name);
    }
    refuse("unknown architecture `" + std::string(name) + "`; there are:" + names);
}

void raise_descriptor_limit() {
    rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

} // namespace

int main(int argc, char **argv) {
    const std::string usage = "usage: asio ARCHITECTURE|--list [--port N] [--host ADDRESS] [--workers N]"
                              " [--no-greeting] [--until-stdin-closes]";
    if (argc == 2 && std::string_view(argv[1]) == "--list") {
        for (auto &architecture : architectures) std::cout << architecture.name << "\n";
        return 0;
    }
    if (argc < 2 || argv[1][0] == '-') refuse(usage);
    const Architecture &architecture = find(argv[1]);
    for (int i = 2; i < argc; ++i) {
        std::string option = argv[i];
        if (option == "--no-greeting") options.has_greeting = false;
        else if (option == "--until-stdin-closes") options.until_stdin_closes = true;
        else if (option == "--port") options.port = static_cast<unsigned short>(number(option, argv[++i], 0, 65535));
        else if (option == "--workers") options.workers = number(option, argv[++i], 1, max_workers);
        else if (option == "--host" && argv[i + 1]) options.host = argv[++i];
        else refuse(usage);
    }
    try {
        raise_descriptor_limit();
        serve(architecture.threads());
    } catch (const std::exception &error) {
        std::cerr << "asio: cannot listen on " << options.host << ":" << options.port << ": " << error.what() << std::endl;
        return 1;
    }
}
