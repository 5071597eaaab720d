//! `spandrel call`: an object is called by IDL that is read now.

mod support;

use std::path::PathBuf;

use spandrel::dynamic::{
    DescribedCall, DescribedServant, DynAny, NvList, RequestError, UnknownUserException, describe,
};
use spandrel::{Any, Orb, Poa, TypeCode};
use support::{check_code, spandrel, spandrel_with_input, stderr, stdout};

const IDL: &str = "
module Bank {
  enum Kind { checking, saving };
  struct Entry { string what; long long amount; };
  typedef sequence<Entry> Entries;
  exception Broke { long long missing; };
  interface Account {
    readonly attribute string owner;
    attribute Kind sort;
    long long deposit(in long long amount, inout string note, out Entries all) raises (Broke);
    void nothing();
    oneway void hint(in Kind how);
    any echo(in any what);
  };
};
";

/// An account without generated code, and the file that declares it.
struct Bank {
    orb: Orb,
    reference: String,
    file: PathBuf,
    _folder: tempfile::TempDir,
}

fn serve(call: &DescribedCall<'_>, list: &mut NvList) -> Result<Any, RequestError> {
    match &*call.operation.name {
        "_get_owner" => Ok(Any::new("Ada \"A.\" L.").unwrap()),
        "_get_sort" => Ok(DynAny::from_text(&call.operation.result, "saving").unwrap().to_any().unwrap()),
        "deposit" => {
            let amount: i64 = list.extract(0)?;
            if amount < 0 {
                let broke = DynAny::from_text(&call.operation.exceptions[0], &format!("{{missing: {amount}}}"));
                return Err(UnknownUserException { exception: broke.unwrap().to_any().unwrap() }.into());
            }
            let note: String = list.extract(1)?;
            let all = format!("[{{what: \"{note}\", amount: {amount}}}]");
            let all = DynAny::from_text(&list.get(2).unwrap().type_code.clone(), &all).unwrap();
            list.set(1, &*note.to_uppercase())?;
            list.set_any(2, &all.to_any().unwrap())?;
            Ok(Any::new(&(amount + 100)).unwrap())
        }
        "echo" => Ok(Any::new(&list.extract::<Any>(0)?).unwrap()),
        _ => Ok(Any::write(TypeCode::VOID, |_| Ok(())).unwrap()),
    }
}

impl Bank {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bank.idl");
        std::fs::write(&file, IDL).unwrap();
        let orb = Orb::builder().build();
        let account = describe(IDL).unwrap().interface("Bank::Account").unwrap();
        let object = Poa::root(&orb).unwrap().activate(DescribedServant::described(account, serve)).unwrap();
        Self { orb, reference: object.to_string(), file, _folder: folder }
    }

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

impl Drop for Bank {
    fn drop(&mut self) {
        self.orb.shutdown(true).unwrap();
    }
}

#[test]
fn operations_are_called_with_values_as_text() {
    let bank = Bank::new();
    bank.says(&["deposit", "5", "for rent"], "105\nnote: \"FOR RENT\"\nall: [{what: \"for rent\", amount: 5}]\n");
    bank.says(&["owner"], "\"Ada \\\"A.\\\" L.\"\n");
    bank.says(&["sort"], "saving\n");
    bank.says(&["sort", "checking"], "");
    bank.says(&["nothing"], "");
    bank.says(&["hint", "saving"], "");
    bank.says(&["echo", "-2.5"], "-2.5\n");
}

#[test]
fn what_there_is_to_call_is_listed() {
    let bank = Bank::new();
    let output = bank.call(&[]);
    check_code(&output, 0);
    let text = stdout(&output);
    for line in ["string _get_owner()", "void nothing()", "oneway void hint(in "] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    let bank = Bank::new();
    bank.fails(&["deposit", "-7", "x"], "the operation raised `IDL:Bank/Broke:1.0` {missing: -7}");
    bank.fails(&["deposit", "5"], "takes 2 arguments, not 1");
    bank.fails(&["deposit", "five", "x"], "`five` is no integer of this type");
    bank.fails(&["withdraw"], "no operation or attribute `withdraw`");
    bank.fails(&["owner", "Bob"], "no operation or attribute `owner`");
    bank.fails(&["--interface", "Bank::Other", "nothing"], "no interface `Bank::Other`");
}

#[test]
fn the_reference_may_come_by_standard_input() {
    let bank = Bank::new();
    let file = bank.file.to_str().unwrap();
    let output = spandrel_with_input(&["call", "--idl", file, "-", "sort"], &bank.reference);
    check_code(&output, 0);
    assert_eq!(stdout(&output), "saving\n");
}

#[test]
fn idl_with_mistakes_shows_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.idl");
    std::fs::write(&file, "interface Half {").unwrap();
    let output = spandrel(&["call", "--idl", file.to_str().unwrap(), "corbaloc::localhost:1/x", "y"]);
    check_code(&output, 1);
    assert!(stderr(&output).contains("bad.idl"), "{}", stderr(&output));
}
