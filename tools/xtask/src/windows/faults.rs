//! Tests that fail under Wine because of Wine. What it does that Windows does not is shown in C, without any code of ours, by
//! `peers/windows-shim/faults.c`, which the chore builds and runs beside the tests.

/// Something that Wine does and Windows does not.
#[derive(Debug)]
pub(crate) struct Cause {
    /// The name that the program in C gives it.
    pub(crate) name: &'static str,
    /// What it comes to.
    pub(crate) reason: &'static str,
}

/// Its server looks into the socket of a connection that was reset, and takes the error (`SO_ERROR`) that the next `recv`
/// would have had; a `recv` that waits already has it.
const RESET_IS_AN_END: Cause =
    Cause { name: "reset-is-an-end", reason: "recv takes a reset that came before it for the end of the stream" };

/// It asks for the peer's address after it accepted, and gives up the connection if there is no peer any more.
const ACCEPTING_NEEDS_A_PEER: Cause = Cause {
    name: "accepting-needs-a-peer",
    reason: "accept fails with WSAENOTCONN for a connection that was reset before it",
};

/// A test that Wine cannot pass.
#[derive(Debug)]
pub(crate) struct Fault {
    package: &'static str,
    target: &'static str,
    /// The test's name as the harness prints it.
    pub(crate) test: &'static str,
    pub(crate) cause: Cause,
}

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        package: "spandrel-ipc",
        target: "ipc",
        test: "stream::a_reset_is_an_error_and_not_an_end",
        cause: RESET_IS_AN_END,
    },
    Fault {
        package: "spandrel-ipc",
        target: "ipc",
        test: "connection::shutting_down_resets_connections_not_yet_accepted",
        cause: RESET_IS_AN_END,
    },
    Fault {
        package: "spandrel-ipc",
        target: "ipc",
        test: "connection::an_acceptor_survives_two_thousand_dropped_connections",
        cause: ACCEPTING_NEEDS_A_PEER,
    },
];

/// Those of one test program.
pub(crate) fn of(package: &str, target: &str) -> Vec<&'static Fault> {
    FAULTS.iter().filter(|fault| fault.package == package && fault.target == target).collect()
}
