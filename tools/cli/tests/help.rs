//! The help of the command.

use crate::support;

use support::{check_code, spandrel, stderr, stdout};

#[test]
fn the_help_of_every_command_has_examples() {
    let output = spandrel(&["--help"]);
    check_code(&output, 0);
    for command in ["ttcp", "latency", "bench", "ior", "ping", "call", "idl"] {
        assert!(stdout(&output).contains(&format!("\n  {command} ")), "{command} is missing in:\n{}", stdout(&output));
        let output = spandrel(&[command, "--help"]);
        check_code(&output, 0);
        assert!(
            stdout(&output).contains(&format!("Examples:\n  spandrel {command}")),
            "{command}:\n{}",
            stdout(&output)
        );
    }
    assert!(!stdout(&output).contains("peer"), "the experiments' own processes are no command for people");
}

#[test]
fn the_version_is_the_packages() {
    let output = spandrel(&["--version"]);
    check_code(&output, 0);
    assert_eq!(stdout(&output), format!("spandrel {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn without_a_command_the_help_is_shown_as_wrong_usage() {
    let output = spandrel(&[]);
    check_code(&output, 2);
    assert!(stderr(&output).contains("Usage: spandrel"), "{}", stderr(&output));
}
