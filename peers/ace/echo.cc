// An echo server as the ACE papers write it: Reactor, Acceptor and Service Handler, over ACE_Dev_Poll_Reactor (epoll).
//
// Prints its port on one line, echoes its input, and exits at the end of its standard input.

#include <ace/Acceptor.h>
#include <ace/Dev_Poll_Reactor.h>
#include <ace/INET_Addr.h>
#include <ace/Init_ACE.h>
#include <ace/Reactor.h>
#include <ace/SOCK_Acceptor.h>
#include <ace/SOCK_Stream.h>
#include <ace/Svc_Handler.h>

#include <netinet/tcp.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

constexpr size_t buffer_octets = 16384;
constexpr int backlog = 4096;

/// One connection.
class Echo : public ACE_Svc_Handler<ACE_SOCK_STREAM, ACE_NULL_SYNCH> {
public:
    int open(void *) override {
        int on = 1;
        peer().set_option(IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (peer().enable(ACE_NONBLOCK) == -1) return -1;
        return reactor()->register_handler(this, READ_MASK);
    }

    int handle_input(ACE_HANDLE) override {
        static char buffer[buffer_octets]; // one thread
        ssize_t received = peer().recv(buffer, sizeof buffer);
        if (received < 0 && (errno == EWOULDBLOCK || errno == EINTR)) return 0;
        if (received <= 0) return -1;
        ssize_t sent = send_some(buffer, static_cast<size_t>(received));
        if (sent < 0) return -1;
        if (sent == received) return 0;
        rest_.assign(buffer + sent, static_cast<size_t>(received - sent));
        reactor()->cancel_wakeup(this, READ_MASK);
        return reactor()->schedule_wakeup(this, WRITE_MASK) == -1 ? -1 : 0;
    }

    int handle_output(ACE_HANDLE) override {
        ssize_t sent = send_some(rest_.data(), rest_.size());
        if (sent < 0) return -1;
        rest_.erase(0, static_cast<size_t>(sent));
        if (!rest_.empty()) return 0;
        reactor()->cancel_wakeup(this, WRITE_MASK);
        return reactor()->schedule_wakeup(this, READ_MASK) == -1 ? -1 : 0;
    }

private:
    ssize_t send_some(const char *data, size_t len) {
        ssize_t sent = peer().send(data, len, MSG_NOSIGNAL);
        return sent < 0 && (errno == EWOULDBLOCK || errno == EINTR) ? 0 : sent;
    }

    std::string rest_; // octets that the peer has not accepted yet
};

/// Ends the process at the end of standard input: open connections need no orderly close.
class Parent : public ACE_Event_Handler {
public:
    int handle_input(ACE_HANDLE handle) override {
        char buffer[64];
        return ACE_OS::read(handle, buffer, sizeof buffer) > 0 ? 0 : -1;
    }
    int handle_close(ACE_HANDLE, ACE_Reactor_Mask) override { std::_Exit(0); } // also called for a hang-up
    ACE_HANDLE get_handle() const override { return ACE_STDIN; }
};

int fail(const char *what) {
    std::perror(what);
    return 1;
}

} // namespace

int main() {
    ACE::init();
    std::signal(SIGPIPE, SIG_IGN);
    ACE_Dev_Poll_Reactor epoll(ACE::max_handles());
    ACE_Reactor reactor(&epoll);
    ACE_Reactor::instance(&reactor); // service handlers use this one
    ACE_Acceptor<Echo, ACE_SOCK_ACCEPTOR> acceptor;
    if (acceptor.open(ACE_INET_Addr(u_short{0}, INADDR_LOOPBACK), &reactor) == -1) return fail("listen");
    ::listen(acceptor.get_handle(), backlog); // ACE's own backlog is 5 or SOMAXCONN, by version
    ACE_INET_Addr addr;
    acceptor.acceptor().get_local_addr(addr);
    std::printf("%u\n", addr.get_port_number());
    std::fflush(stdout);
    Parent parent;
    parent.reactor(&reactor);
    if (reactor.register_handler(&parent, ACE_Event_Handler::READ_MASK) == -1) return fail("register");
    reactor.run_reactor_event_loop();
    return fail("run"); // the process ends in Parent
}
