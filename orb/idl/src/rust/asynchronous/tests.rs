//! Names and parameters of the asynchronous forms of an interface.

use std::path::Path;

use super::super::{Options, generate};
use crate::{FrontEndOptions, MemoryFiles, compile_with};

const IDL: &str = r"
module Bank {
  exception Overdrawn { long long balance; };
  interface Account {
    attribute string owner;
    long long deposit(in long long cents);
    void transfer(inout string text, in string remark, out short sign) raises (Overdrawn);
    oneway void note(in string text);
    void deposit_async();
    void deposit_excep();
    void sendc_deposit();
  };
  interface Savings : Account { void compound(); };
};
";

#[track_caller]
fn rust_with(options: &Options) -> String {
    let files = MemoryFiles::new().with("bank.idl", IDL);
    let model = compile_with(&FrontEndOptions::default(), &files, Path::new("bank.idl")).expect("the IDL is correct");
    // In the formatter's output, without line breaks.
    let rust = generate(&model, options);
    rust.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace("( ", "(")
        .replace(", )", ")")
        .replace("< ", "<")
        .replace(", >", ">")
}

#[track_caller]
fn check(options: &Options, lines: &[&str]) {
    let rust = rust_with(options);
    for line in lines {
        assert!(rust.contains(line), "`{line}` does not occur in:\n{rust}");
    }
}

#[test]
fn each_operation_has_a_future() {
    check(
        &Options::new(),
        &[
            "pub fn owner_async(&self) -> rt::AsyncReply<String, rt::SystemException>",
            "pub fn set_owner_async(&self, value: &str) -> rt::AsyncReply<(), rt::SystemException>",
            "pub fn note_async(&self, text: &str) -> rt::AsyncReply<(), rt::SystemException>",
            "pub fn transfer_async(&self, text: &String, remark: &str) -> \
             rt::AsyncReply<(String, i16), account::TransferError>",
            // An operation with that name comes first.
            "pub fn deposit_async(&self) -> Result<(), rt::SystemException>",
            "pub fn deposit_async_(&self, cents: i64) -> rt::AsyncReply<i64, rt::SystemException>",
        ],
    );
}

#[test]
fn asynchronous_methods_can_be_disabled() {
    let rust = rust_with(&Options::new().asynchronous_client(false));
    assert!(!rust.contains("AsyncReply") && !rust.contains("narrow_async"), "{rust}");
    let rust = rust_with(&Options::new());
    assert!(!rust.contains("AsyncServant") && !rust.contains("sendc_owner"), "{rust}");
}

#[test]
fn servants_return_futures() {
    check(
        &Options::new().asynchronous_server(true),
        &[
            "pub trait AccountAsyncServant: Send + Sync + 'static {",
            "pub trait SavingsAsyncServant: AccountAsyncServant {",
            "fn deposit(&self, cents: i64) -> \
             impl ::std::future::Future<Output = Result<i64, rt::SystemException>> + Send;",
            "pub struct SavingsAsyncSkeleton<S>(pub rt::Arc<S>);",
            "fn is_asynchronous(&self) -> bool { true }",
        ],
    );
}

#[test]
fn implied_idl_has_the_names_of_the_standard() {
    check(
        &Options::new().ami(true),
        &[
            "pub trait AmiAccountHandler: rt::ReplyHandler {",
            "fn get_owner(&self, ami_return_val: String);",
            "fn set_owner_excep(&self, excep_holder: rt::ExceptionHolder<rt::SystemException>);",
            "fn transfer(&self, text: String, sign: i16);",
            "fn transfer_excep(&self, excep_holder: rt::ExceptionHolder<account::TransferError>);",
            // An operation has that name: `_ami` is inserted.
            "fn deposit_ami_excep(&self,",
            "pub fn sendc_get_owner(&self, ami_handler: Option<rt::Arc<dyn AmiAccountHandler>>)",
            "pub fn sendc_ami_deposit(&self,",
            "pub fn sendp_deposit(&self, cents: i64) -> AmiAccountPoller",
            "pub fn sendp_deposit(&self, cents: i64) -> AmiSavingsPoller",
            "pub fn transfer(&self, timeout: u32) -> Result<(String, i16), account::TransferError>",
            "pub trait AmiSavingsHandler: AmiAccountHandler {",
        ],
    );
    let rust = rust_with(&Options::new().ami(true));
    assert!(!rust.contains("sendc_note") && !rust.contains("fn note_excep"), "one-way operations have no reply");
}
