//! Tests that fail under Wine because of Wine: each with the reason, which a small program in C shows without ours.

/// A test that Wine cannot pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    package: &'static str,
    target: &'static str,
    /// The test's name as the harness prints it.
    pub(crate) test: &'static str,
    /// What Wine does that Windows does not.
    pub(crate) reason: &'static str,
}

/// Its server looks into the socket of a connection that was reset and so takes the error (`SO_ERROR`) that `recv` would
/// have had. In C: set `SO_LINGER` to zero, `closesocket`, then `recv` at the peer gives 0, on Windows WSAECONNRESET; a
/// `recv` that waits already gets the error.
const RESET_IS_AN_END: &str = "recv takes a reset that came before it for the end of the stream";

/// It asks for the peer's address after accepting. In C: connect, set `SO_LINGER` to zero, `closesocket`; then
/// `accept(s, &addr, &len)` gives WSAENOTCONN and `accept(s, NULL, NULL)` a socket, as on Windows both do.
const ACCEPTING_NEEDS_A_PEER: &str = "accept fails with WSAENOTCONN for a connection that was reset before it";

const FAULTS: &[Fault] = &[
    Fault {
        package: "spandrel-ipc",
        target: "stream",
        test: "a_reset_is_an_error_and_not_an_end",
        reason: RESET_IS_AN_END,
    },
    Fault {
        package: "spandrel-ipc",
        target: "connection",
        test: "a_connection_not_yet_accepted_is_reset_by_shutting_down",
        reason: RESET_IS_AN_END,
    },
    Fault {
        package: "spandrel-ipc",
        target: "connection",
        test: "two_thousand_connections_opened_and_dropped_leave_the_acceptor_well",
        reason: ACCEPTING_NEEDS_A_PEER,
    },
];

/// Those of one test program.
pub(crate) fn of(package: &str, target: &str) -> Vec<&'static Fault> {
    FAULTS.iter().filter(|fault| fault.package == package && fault.target == target).collect()
}
