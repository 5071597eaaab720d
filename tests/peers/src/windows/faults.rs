//! Tests that fail under Wine because of Wine. Its deviations from Windows are shown in C, without any code
//! of ours, by `peers/windows-shim/faults.c`, which the task builds and runs beside the tests.

/// A deviation of Wine from Windows.
#[derive(Debug)]
pub(crate) struct Cause {
    /// The name in the C program.
    pub(crate) name: &'static str,
    /// The effect.
    pub(crate) reason: &'static str,
}

/// Its server reads the error of the socket (`SO_ERROR`) of a connection that was reset, and so takes it from
/// the next `recv`. A `recv` that already waits gets it.
const RESET_IS_AN_END: Cause =
    Cause { name: "reset-is-an-end", reason: "recv takes a reset that came before it for the end of the stream" };

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
];

/// The faults of one test program.
pub(crate) fn of(package: &str, target: &str) -> Vec<&'static Fault> {
    FAULTS.iter().filter(|fault| fault.package == package && fault.target == target).collect()
}
