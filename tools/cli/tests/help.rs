//! The help of the command.

use crate::support;

use std::process::Command;

use assert_cmd::cargo::CommandCargoExt as _;
use spandrel_test_support::check_output_errors;
use support::{check_code, spandrel, stderr, stdout};

#[test]
fn the_options_of_an_orb_are_listed_and_searched() {
    let all = stdout(&spandrel(&["options"]));
    assert!(all.contains("-ORBListenEndpoints, -ORBListenEndpoint") && all.contains("[default: 64 MiB]"), "{all}");
    let some = stdout(&spandrel(&["options", "KEEPalive", "-ORBGiopVersion"]));
    assert_eq!(some.matches("\n    ").count(), 2, "{some}");
    assert!(stdout(&spandrel(&["options", "--help"])).contains("Usage: spandrel options [WORD]..."));
    let none = spandrel(&["options", "nothing-of-this-name"]);
    check_code(&none, 1);
    assert!(stderr(&none).contains("nothing-of-this-name"));
}

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
fn every_shell_has_a_script_that_asks_the_command() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = spandrel(&["completions", shell]);
        check_code(&output, 0);
        assert!(stdout(&output).contains("COMPLETE") && stdout(&output).contains("spandrel"), "{shell}");
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

// The argument, the reason and the expected form, for each kind of typed argument.
#[test]
fn an_invalid_argument_is_explained() {
    const CALL: [&str; 3] = ["call", "corbaloc::127.0.0.1:1/Account", "deposit"];
    const WHOLE: &str = "expected a whole number from";
    let call = |rest: &[&'static str]| [&CALL[..], rest].concat();
    for (args, expected) in [
        (call(&["--rate", "x"]), "'x' for '--rate <CALLS>': expected a number of calls each second, such as 5000"),
        (
            call(&["--rate", "5", "--duration", "3d"]),
            "'3d' for '--duration <TIME>': expected a time above zero: seconds, or a number with",
        ),
        (
            call(&["--rate", "5", "--connections", "0"]),
            "'0' for '--connections <N>': expected a whole number from 1 to 1024",
        ),
        (
            call(&["--timeout", "0"]),
            "'0' for '--timeout <SECONDS>': expected a time above zero: seconds, or a number with ms, s or min",
        ),
        (
            vec!["ping", "--interval=-1", "IOR:00"],
            "'-1' for '--interval <TIME>': expected seconds, or a number with ms, s or min, such as",
        ),
        (vec!["dump", "--port", "65536"], "'65536' for '--port <PORT>': expected a whole number from 1 to 65535"),
        (vec!["ttcp", "--transmit", "here"], "'here' for '--transmit <HOST:PORT>': expected host:port, such as"),
        (
            vec!["ttcp", "--bytes", "5X"],
            "`5X` is not a size: expected a whole number of octets, or of K, M or G, such as 64K",
        ),
        (vec!["ttcp", "--queue-size", "0"], "'0' for '--queue-size <SIZE>': expected `system`, or from 1 octet to 2G"),
        (vec!["latency", "--connect", "here"], "'here' for '--connect <HOST:PORT>': expected host:port, such as"),
        (vec!["latency", "--servants", "1,x"], WHOLE),
        (vec!["soak", "--seconds", "x"], "'x' for '--seconds <SECONDS>': expected a number of seconds, at least 0.5"),
        (call(&["--orb", "x y"]), "'x y' for '--orb <OPTION>': expected an option and its value, such as"),
        (vec!["bench", "demux", "--objects", "x"], WHOLE),
        (vec!["bench", "reactor", "--seconds", "x"], "expected a number of seconds above zero, such as 0.5"),
    ] {
        let output = spandrel(&args);
        check_code(&output, 2);
        let text = stderr(&output);
        assert!(text.starts_with("error: invalid value") && text.contains(expected), "{args:?}: {text}");
    }
}

#[test]
fn output_without_a_reader_or_to_a_full_device_is_no_panic() {
    for words in [&["--help"][..], &["--version"], &["ior", "corbaloc::127.0.0.1:1/x"], &["idl", "--help"]] {
        check_output_errors(|| {
            let mut command = Command::cargo_bin("spandrel").unwrap();
            command.args(words);
            command
        });
    }
}

#[test]
fn errors_of_usage_have_exit_code_2() {
    for (words, expected) in [
        (&["bind", "x"][..], "<REFERENCE>"),
        (&["bind", "", "corbaloc::127.0.0.1:1/x"], "a name is expected"),
        (&["list", "--orb", "-ORBNoSuch yes"], "cannot use --orb"),
        (&["idl", "--runtime", "1x", "x.idl"], "cannot use --runtime"),
        (&["idl", "--from-repository", "A", "B"], "--from-repository takes one scope"),
        (&["dump", "--listen", "x", "--to", "127.0.0.1:1"], "for --listen: expected host:port"),
        (&["dump", "--listen", "127.0.0.1:0", "--to", "x"], "for --to: expected"),
        (&["call", "--idl", "a.idl", "-I", "b.idl", "corbaloc::127.0.0.1:1/x", "y"], "one file declares the interface"),
    ] {
        let output = spandrel(words);
        check_code(&output, 2);
        assert!(stderr(&output).contains(expected), "{words:?}: {}", stderr(&output));
    }
}
