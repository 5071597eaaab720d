//! A server without generated code, and its IDL.

use std::path::PathBuf;

use spandrel::dynamic::{
    DescribedCall, DescribedServant, DynAny, NvList, RequestError, UnknownUserException, describe,
};
use spandrel::{
    Orb, Poa,
    types::{Any, IiopProfile, TypeCode},
};

/// The IDL of the account.
pub(crate) const IDL: &str = "
module Bank {
  enum Kind { checking, saving };
  struct Entry { string what; long long amount; };
  typedef sequence<Entry> Entries;
  exception Broke { long long missing; };
  valuetype Note { public string text; public Note next; };
  valuetype Urgent : Note { public long days; };
  abstract interface Holder {};
  native Vault;
  interface Account {
    readonly attribute string owner;
    attribute Kind sort;
    long long deposit(in long long amount, inout string note, out Entries all) raises (Broke);
    void nothing();
    oneway void hint(in Kind how);
    any echo(in any what);
    Note keep(in Note what);
    Holder pass(in Holder what);
    void open_with(in Vault key);
  };
};
";

/// An account without generated code, and its IDL file.
pub(crate) struct Bank {
    orb: Orb,
    pub(crate) reference: String,
    pub(crate) file: PathBuf,
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
        "keep" | "pass" => Ok(list.get(0).unwrap().value.clone().unwrap()),
        "echo" => Ok(Any::new(&list.extract::<Any>(0)?).unwrap()),
        _ => Ok(Any::write(TypeCode::VOID, |_| Ok(())).unwrap()),
    }
}

impl Bank {
    pub(crate) fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bank.idl");
        std::fs::write(&file, IDL).unwrap();
        let orb = Orb::builder().build().unwrap();
        let account = describe(IDL).unwrap().interface("Bank::Account").unwrap();
        let object = Poa::root(&orb).unwrap().activate(DescribedServant::described(account, serve)).unwrap();
        Self { orb, reference: object.to_string(), file, _folder: folder }
    }

    /// The port at which it listens.
    pub(crate) fn port(&self) -> u16 {
        let object = self.orb.string_to_object(&self.reference).unwrap();
        IiopProfile::decode(&object.ior().profiles[0]).unwrap().unwrap().port
    }
}

impl Drop for Bank {
    fn drop(&mut self) {
        self.orb.shutdown().unwrap();
    }
}
