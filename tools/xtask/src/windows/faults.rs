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

const FAULTS: &[Fault] = &[];

/// Those of one test program.
pub(crate) fn of(package: &str, target: &str) -> Vec<&'static Fault> {
    FAULTS.iter().filter(|fault| fault.package == package && fault.target == target).collect()
}
