//! The effect of `SPANDREL_LOG` and `SPANDREL_LOG_FORMAT`.

use assert_cmd::Command;

/// A call that fails without a server; returns the exit code and standard error.
fn failed_call(log: Option<&str>, format: Option<&str>) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let idl = folder.path().join("door.idl");
    std::fs::write(&idl, "interface Door { void knock(); };").unwrap();
    let mut command = Command::cargo_bin("spandrel").unwrap();
    command.arg("call").arg("--idl").arg(idl).args(["--interface", "Door", "corbaloc::127.0.0.1:1/nobody", "knock"]);
    command.env_remove("SPANDREL_LOG").env_remove("SPANDREL_LOG_FORMAT");
    log.map(|log| command.env("SPANDREL_LOG", log));
    format.map(|format| command.env("SPANDREL_LOG_FORMAT", format));
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn without_log_settings_only_the_error_is_printed() {
    let (code, message) = failed_call(None, None);
    assert_eq!(code, Some(1));
    assert!(message.starts_with("error: "), "{message}");
}

#[test]
fn calls_are_logged_with_their_identifiers() {
    let (code, message) = failed_call(Some("spandrel=debug"), None);
    assert_eq!(code, Some(1));
    let line = message.lines().find(|line| line.contains("ended")).unwrap_or_else(|| panic!("{message}"));
    assert!(line.contains("DEBUG") && line.contains("operation=") && line.contains("spandrel::call"), "{line}");
    assert!(!message.contains('\u{1b}'), "no colours where no terminal is");
}

#[test]
fn json_is_one_object_in_a_line() {
    let (_, message) = failed_call(Some("debug"), Some("json"));
    let lines = message.lines().filter(|line| line.starts_with('{'));
    let mut targets = lines.map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["target"].clone());
    assert!(targets.any(|target| target == "spandrel::call"), "{message}");
}

#[test]
fn invalid_log_settings_are_refused() {
    for (log, format, variable) in
        [(Some("spandrel=loud"), None, "SPANDREL_LOG"), (None, Some("xml"), "SPANDREL_LOG_FORMAT")]
    {
        let (code, message) = failed_call(log, format);
        assert_eq!(code, Some(2), "{message}");
        assert!(message.contains(variable), "{message}");
    }
}
