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

#[test]
#[cfg(feature = "completions")]
fn completions_know_commands_and_options() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = spandrel(&["completions", shell]);
        check_code(&output, 0);
        for word in ["ping", "interval", "call", "idl"] {
            assert!(stdout(&output).contains(word), "{word} is missing for {shell}");
        }
    }
    check_code(&spandrel(&["completions", "cmd"]), 2);
}

/// The pages need a feature, so that the command itself does not contain their generator.
#[test]
#[cfg(feature = "man")]
fn there_is_a_man_page_for_every_command() {
    let folder = tempfile::tempdir().unwrap();
    check_code(&spandrel(&["man", folder.path().to_str().unwrap()]), 0);
    for (page, words) in [("spandrel.1", "spandrel"), ("spandrel-call.1", "in\\-flight"), ("spandrel-dump.1", "hex")] {
        let text = std::fs::read_to_string(folder.path().join(page)).unwrap();
        assert!(text.contains(words), "{page}: {text}");
    }
}
