//! The options: those of the parts, their effect, and their completion in a shell.

use std::fs;

use clap::Args as _;
use spandrel::Orb;
use spandrel::services::implementation_repository::administration::RegisterServerError;
use spandrel::services::implementation_repository::{Administration, StartupOptions};
use spandrel_activator::ActivatorArgs;
use spandrel_daemon::DaemonArgs;
use spandrel_naming::NamingArgs;
use spandrel_test_support::wait_until;

use crate::executable::{ANY_PORT, name, root};
use crate::running::{Running, command};
use crate::stores::served;

/// The completions that a shell gets for these words.
fn completions(words: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new(command(folder.path()).get_program());
    command.env("COMPLETE", "bash").env("_CLAP_IFS", "\n").env("_CLAP_COMPLETE_COMP_TYPE", "9");
    command.env("_CLAP_COMPLETE_SPACE", "false").env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    let output = command.args(["--", "spandrel-up"]).args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn every_option_of_the_parts_is_one_of_the_command_and_is_completed() {
    let parts = clap::Command::new("parts");
    let parts = ActivatorArgs::augment_args(NamingArgs::augment_args(DaemonArgs::augment_args(parts)));
    let expected: Vec<String> =
        parts.get_arguments().filter_map(|option| Some(format!("--{}", option.get_long()?))).collect();
    for option in ["--commands", "--start-timeout", "--drain-limit", "--purge", "--sync-interval", "--data", "--policy"]
    {
        assert!(expected.iter().any(|other| other == option), "{option}: {expected:?}");
    }
    let completed = completions(&["--"]);
    for option in &expected {
        assert!(completed.contains(option), "{option}: {completed:?}");
    }
    assert_eq!(completions(&["--purge-"]), ["--purge-unreachable"]);
}

#[test]
fn the_activator_has_the_commands_of_a_file_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let (data, file) = (folder.path().join("data"), folder.path().join("elsewhere.toml"));
    fs::write(&file, "[commands.bank]\nprogram = \"/bin/true\"\n").unwrap();
    let running = Running::with(command(&data).args(ANY_PORT).arg("--commands").arg(&file), &data);
    let orb = Orb::builder().build().unwrap();
    let administration = Administration::unchecked_narrow(&served(&running, &orb, "ImplRepoService"));
    let register = |command: &str| {
        administration
            .register_server(command, &StartupOptions { command: command.into(), ..StartupOptions::default() })
    };
    register("bank").unwrap();
    let refused = register("shop");
    assert!(matches!(refused, Err(RegisterServerError::CannotComplete(_))), "{refused:?}");
    // The file is read again upon SIGHUP.
    fs::write(&file, "[commands.shop]\nprogram = \"/bin/true\"\n").unwrap();
    running.signal("-HUP");
    wait_until("the changed commands are in force", || register("shop").is_ok());
}

#[test]
fn names_of_objects_that_are_gone_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let running = Running::with(command(&data).args(ANY_PORT).args(["--purge", "1", "--purge-unreachable"]), &data);
    let orb = Orb::builder().build().unwrap();
    let names = root(&orb, &running.url);
    let context = orb.string_to_object(&running.url).unwrap();
    let gone = orb.string_to_object("corbaloc::127.0.0.1:1/Gone").unwrap();
    names.bind(&name("present"), Some(&context)).unwrap();
    names.bind(&name("gone"), Some(&gone)).unwrap();
    wait_until("the name of the object that is gone is removed", || names.resolve(&name("gone")).is_err());
    assert!(names.resolve(&name("present")).is_ok());
}
