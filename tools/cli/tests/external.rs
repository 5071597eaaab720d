//! `spandrel X` for an executable `spandrel-X`.

use crate::support;

use std::env::consts::EXE_SUFFIX;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use assert_cmd::cargo::CommandCargoExt as _;
use support::{check_code, spandrel, stderr, stdout};

/// A folder with the command, and with another name of it: a program for every platform.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(names: &[&str]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        let built = Command::cargo_bin("spandrel").unwrap();
        for name in names {
            let (built, own) = (Path::new(built.get_program()), folder.path(name));
            fs::hard_link(built, &own).or_else(|_| fs::copy(built, &own).map(drop)).unwrap();
        }
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(format!("{name}{EXE_SUFFIX}"))
    }

    fn run(&self, args: &[&str]) -> Output {
        Command::new(self.path("spandrel")).args(args).output().unwrap()
    }
}

#[test]
fn an_executable_beside_the_command_gets_its_arguments_and_gives_its_exit_code() {
    let folder = Folder::new(&["spandrel", "spandrel-hello"]);
    let output = folder.run(&["hello", "--version"]);
    check_code(&output, 0);
    assert_eq!(stdout(&output), format!("spandrel {}\n", env!("CARGO_PKG_VERSION")));
    check_code(&folder.run(&["hello", "ior", "no such reference"]), 1);
    check_code(&folder.run(&["hello", "ior", "--no-such-option"]), 2);
    let output = folder.run(&["--help"]);
    check_code(&output, 0);
    assert!(stdout(&output).contains("run by `spandrel NAME`: hello"), "{}", stdout(&output));
}

#[test]
fn a_command_of_its_own_comes_first() {
    let folder = Folder::new(&["spandrel"]);
    fs::write(folder.path("spandrel-ior"), "no program").unwrap();
    let output = folder.run(&["ior", "--help"]);
    check_code(&output, 0);
    assert!(stdout(&output).contains("Usage: spandrel ior"), "{}", stdout(&output));
}

#[cfg(unix)]
#[test]
fn a_program_in_the_path_gets_all_octets_of_its_arguments() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("spandrel-hello");
    fs::write(&program, "#!/bin/sh\nprintf '<%s>' \"$@\"\nexit 7\n").unwrap();
    let mut command = Command::cargo_bin("spandrel").unwrap();
    command.args(["hello", "two words", "--", "--help", ""]).env("PATH", folder.path());
    // Not executable yet.
    fs::set_permissions(&program, fs::Permissions::from_mode(0o600)).unwrap();
    check_code(&command.output().unwrap(), 2);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    let output = command.output().unwrap();
    check_code(&output, 7);
    assert_eq!(stdout(&output), "<two words><--><--help><>");
}

#[test]
fn an_unknown_command_is_wrong_usage_with_similar_names() {
    let output = spandrel(&["latencv", "--quick"]);
    check_code(&output, 2);
    let text = stderr(&output);
    assert!(text.starts_with("error: unrecognized subcommand `latencv`; did you mean `latency`?\n"), "{text}");
    assert!(text.contains("spandrel-latencv"), "{text}");
    for name in ["../hello", "", "a/b"] {
        check_code(&spandrel(&[name]), 2);
    }
    let output = Folder::new(&["spandrel", "spandrel-orchestra"]).run(&["orchester"]);
    assert!(stderr(&output).contains("did you mean `orchestra`?"), "{}", stderr(&output));
}

#[test]
fn the_arguments_of_an_executable_are_completed_by_itself() {
    let folder = Folder::new(&["spandrel", "spandrel-hello"]);
    let completions = |words: &[&str]| {
        let mut command = Command::new(folder.path("spandrel"));
        command.env("COMPLETE", "bash").env("_CLAP_IFS", "\n").env("_CLAP_COMPLETE_COMP_TYPE", "9");
        command.env("_CLAP_COMPLETE_SPACE", "false").env("_CLAP_COMPLETE_INDEX", words.len().to_string());
        let output = command.args(["--", "spandrel"]).args(words).output().unwrap();
        check_code(&output, 0);
        stdout(&output).lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(completions(&["hel"]), ["hello", "help"]);
    assert_eq!(completions(&["hello", "tre"]), ["tree"]);
    assert_eq!(completions(&["hello", "ping", "--interv"]), ["--interval"]);
}
