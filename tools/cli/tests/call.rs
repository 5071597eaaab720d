//! `spandrel call`: a call of an object, with the interface from an IDL file.

use crate::support;

use support::bank::Bank;
use support::{check_code, spandrel, spandrel_with_input, stderr, stdout};

impl Bank {
    fn call(&self, words: &[&str]) -> std::process::Output {
        let file = self.file.to_str().unwrap();
        spandrel(&[&["call", "--idl", file, &self.reference], words].concat())
    }

    #[track_caller]
    fn says(&self, words: &[&str], expected: &str) {
        let output = self.call(words);
        check_code(&output, 0);
        assert_eq!(stdout(&output), expected, "{words:?}");
    }

    #[track_caller]
    fn fails(&self, words: &[&str], expected: &str) {
        let output = self.call(words);
        check_code(&output, 1);
        assert!(stderr(&output).contains(expected), "{words:?}: {}", stderr(&output));
    }
}

#[test]
fn operations_are_called_with_values_as_text() {
    let bank = Bank::open();
    bank.says(&["deposit", "5", "for rent"], "105\nnote: \"FOR RENT\"\nall: [{what: \"for rent\", amount: 5}]\n");
    bank.says(&["owner"], "\"Ada \\\"A.\\\" L.\"\n");
    bank.says(&["sort"], "saving\n");
    bank.says(&["sort", "checking"], "");
    bank.says(&["nothing"], "");
    bank.says(&["hint", "saving"], "");
    bank.says(&["echo", "-2.5"], "-2.5\n");
}

/// A derived value where its base is declared, cyclic values, and abstract interfaces.
#[test]
fn values_are_parsed_and_shown_with_their_types() {
    let bank = Bank::open();
    let again = |operation: &str, value: &str| bank.says(&[operation, value], &format!("{value}\n"));
    again("keep", "null");
    again("keep", r#"{_type: "IDL:Bank/Urgent:1.0", text: "now", next: {text: "then", next: null}, days: 1}"#);
    again("keep", r#"{_id: 1, text: "turn", next: {text: "and", next: {_ref: 1}}}"#);
    again("pass", "null");
    again("pass", &bank.reference);
    again("pass", r#"{_type: "IDL:Bank/Note:1.0", text: "either", next: null}"#);
    bank.fails(&["pass", r#"{text: "either", next: null}"#], "`_type` is needed for the type of");
    bank.fails(&["keep", "{_ref: 1}"], "no earlier value has `_id: 1`");
}

#[test]
fn an_uncallable_operation_is_reported_with_its_reason() {
    let bank = Bank::open();
    let output = bank.call(&[]);
    check_code(&output, 0);
    assert!(stdout(&output).contains("// open_with cannot be called: "), "{}", stdout(&output));
    bank.fails(&["open_with", "x"], "`open_with` of `IDL:Bank/Account:1.0` cannot be called: ");
}

#[test]
fn callable_operations_are_listed() {
    let bank = Bank::open();
    let output = bank.call(&[]);
    check_code(&output, 0);
    let text = stdout(&output);
    for line in [
        "string _get_owner()",
        "Kind _get_sort()",
        "long long deposit(in long long amount, inout string note, out Entries all)",
        "void nothing()",
        "oneway void hint(in Kind how)",
        "any echo(in any what)",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
}

#[test]
fn call_errors_name_their_reason() {
    let bank = Bank::open();
    bank.fails(&["deposit", "-7", "x"], "the operation raised `IDL:Bank/Broke:1.0` {missing: -7}");
    bank.fails(&["deposit", "5"], "takes 2 arguments, not 1");
    bank.fails(&["deposit", "five", "x"], "`five` is not an integer of this type");
    bank.fails(&["echo", "1e309"], "`1e309` is out of range for `double`");
    bank.fails(&["withdraw"], "no operation or attribute `withdraw`");
    bank.fails(&["owner", "Bob"], "no operation or attribute `owner`");
    bank.fails(&["--interface", "Bank::Other", "nothing"], "no interface `Bank::Other`");
}

#[test]
fn the_reference_is_read_from_standard_input() {
    let bank = Bank::open();
    let file = bank.file.to_str().unwrap();
    let output = spandrel_with_input(&["call", "--idl", file, "-", "sort"], &bank.reference);
    check_code(&output, 0);
    assert_eq!(stdout(&output), "saving\n");
}

#[test]
fn errors_in_idl_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.idl");
    std::fs::write(&file, "interface Half {").unwrap();
    let output = spandrel(&["call", "--idl", file.to_str().unwrap(), "corbaloc::localhost:1/x", "y"]);
    check_code(&output, 1);
    assert!(stderr(&output).contains("bad.idl"), "{}", stderr(&output));
}

#[test]
fn each_cause_is_printed_once() {
    let bank = Bank::open();
    let idl = bank.file.to_str().unwrap();
    for reference in ["corbalo:iiop:127.0.0.1:1/x", "corbaloc:iiop:127.0.0.1:1/x"] {
        let output = spandrel(&["call", "--idl", idl, reference, "--interface", "Bank::Account", "sort"]);
        check_code(&output, 1);
        let message = stderr(&output);
        assert!(message.starts_with("error: "), "{message}");
        for cause in message.lines().filter_map(|line| line.strip_prefix("  cause: ")) {
            assert_eq!(message.matches(cause).count(), 1, "{message}");
        }
    }
}
