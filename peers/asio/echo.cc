// An echo server over standalone Asio: one thread, one io_context, asynchronous reads and writes.
//
// Prints its port on one line, echoes its input, and exits at the end of its standard input.

#define ASIO_STANDALONE
#define ASIO_NO_DEPRECATED
#include <unistd.h>

#include <array>
#include <asio.hpp>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>

namespace {

using asio::ip::tcp;

/// One connection; it lives as long as an operation on it is pending.
class Session : public std::enable_shared_from_this<Session> {
public:
    explicit Session(tcp::socket socket) : socket_(std::move(socket)) {}

    void read() {
        auto self = shared_from_this();
        socket_.async_read_some(asio::buffer(buffer_), [self](std::error_code error, std::size_t received) {
            if (!error) self->write(received);
        });
    }

private:
    void write(std::size_t octets) {
        auto self = shared_from_this();
        asio::async_write(socket_, asio::buffer(buffer_, octets), [self](std::error_code error, std::size_t) {
            if (!error) self->read();
        });
    }

    tcp::socket socket_;
    std::array<char, 4096> buffer_; // one per connection, since a pending operation owns it
};

/// Accepts connections for ever.
class Acceptor {
public:
    explicit Acceptor(asio::io_context &context) : acceptor_(context, {asio::ip::address_v4::loopback(), 0}) {
        acceptor_.listen(4096);
    }
    unsigned port() const { return acceptor_.local_endpoint().port(); }

    void accept() {
        acceptor_.async_accept([this](std::error_code error, tcp::socket socket) {
            if (!error) {
                std::error_code ignored;
                socket.set_option(tcp::no_delay(true), ignored);
                std::make_shared<Session>(std::move(socket))->read();
            } else if (error == std::errc::too_many_files_open) {
                std::cerr << "asio: too many open files" << std::endl;
                std::_Exit(1);
            }
            accept();
        });
    }

private:
    tcp::acceptor acceptor_;
};

/// Ends the process at the end of standard input.
class Parent {
public:
    explicit Parent(asio::io_context &context) : input_(context, ::dup(STDIN_FILENO)) {}

    void watch() {
        input_.async_read_some(asio::buffer(buffer_), [this](std::error_code error, std::size_t) {
            if (error) std::_Exit(0);
            watch();
        });
    }

private:
    asio::posix::stream_descriptor input_;
    std::array<char, 64> buffer_;
};

} // namespace

int main() {
    try {
        asio::io_context context(1); // the hint that one thread runs it
        Acceptor acceptor(context);
        Parent parent(context);
        std::cout << acceptor.port() << std::endl;
        acceptor.accept();
        parent.watch();
        context.run();
    } catch (const std::exception &error) {
        std::cerr << "asio: " << error.what() << std::endl;
        return 1;
    }
}
