//! A server without generated code, and its IDL.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use spandrel::authorization::{Authorizer, WithAuthorizer as _};
use spandrel::dynamic::{
    DescribedCall, DescribedServant, DynAny, NvList, RequestError, UnknownUserException, describe,
};
use spandrel::ssliop::Ssliop;
use spandrel::types::{Any, IiopProfile, TypeCode};
use spandrel::{Orb, Poa};
use spandrel_test_support::certificates::Authority;

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
    void stall();
    void tick();
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
            Ok(Any::new(amount + 100).unwrap())
        }
        "keep" | "pass" => Ok(list.get(0).unwrap().value.clone().unwrap()),
        "echo" => Ok(Any::new(list.extract::<Any>(0)?).unwrap()),
        "stall" => {
            // The 100th call takes 300 ms.
            if STALLS.fetch_add(1, Ordering::Relaxed) == 100 {
                let (_sender, never) = mpsc::channel::<()>();
                let _ = never.recv_timeout(Duration::from_millis(300));
            }
            Ok(Any::write(TypeCode::VOID, |_| Ok(())).unwrap())
        }
        "tick" => {
            TICKS.fetch_add(1, Ordering::Relaxed);
            Ok(Any::write(TypeCode::VOID, |_| Ok(())).unwrap())
        }
        _ => Ok(Any::write(TypeCode::VOID, |_| Ok(())).unwrap()),
    }
}

/// The number of calls of `stall`, which one test makes.
static STALLS: AtomicU32 = AtomicU32::new(0);

static TICKS: AtomicU32 = AtomicU32::new(0);

/// The number of calls of `tick`, which one test makes.
pub(crate) fn ticks() -> u32 {
    TICKS.load(Ordering::Relaxed)
}

/// An authority, and a certificate for this host, in files.
pub(crate) struct Certificates {
    pub(crate) authority: PathBuf,
    pub(crate) chain: PathBuf,
    pub(crate) key: PathBuf,
}

impl Certificates {
    pub(crate) fn new(folder: &Path) -> Self {
        let authority = Authority::new("Test authority");
        let identity = authority.issue("127.0.0.1");
        let write = |name: &str, pem: &str| {
            let path = folder.join(name);
            std::fs::write(&path, pem).unwrap();
            path
        };
        Self {
            authority: write("authority.pem", &authority.pem()),
            chain: write("server.pem", &identity.chain),
            key: write("server.key", &identity.key),
        }
    }
}

impl Bank {
    pub(crate) fn open() -> Self {
        Self::serving(Orb::builder().build().unwrap())
    }

    /// An account that listens at this endpoint only.
    pub(crate) fn listening(endpoint: &str, certificates: &Certificates) -> Self {
        Self::listening_with(&[], endpoint, certificates)
    }

    pub(crate) fn listening_with(options: &[&str], endpoint: &str, certificates: &Certificates) -> Self {
        let Certificates { authority, chain, key } = certificates;
        let files = [("-ORBSSLCA", authority), ("-ORBSSLCertificate", chain), ("-ORBSSLKey", key)];
        let mut args: Vec<String> = vec!["-ORBListenEndpoints".to_owned(), endpoint.to_owned()];
        args.extend(files.iter().flat_map(|(option, file)| [(*option).to_owned(), file.display().to_string()]));
        args.extend(options.iter().map(|option| (*option).to_owned()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        Self::serving(Orb::builder().protocol(Ssliop::new(provider)).take_args(&mut args).unwrap().build().unwrap())
    }

    /// An account whose operations this policy permits.
    pub(crate) fn under_policy(rules: &str) -> Self {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), rules).unwrap();
        let authorizer = Authorizer::from_file(file.path(), None).unwrap();
        Self::serving(Orb::builder().authorizer(&authorizer).unwrap().build().unwrap())
    }

    fn serving(orb: Orb) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bank.idl");
        std::fs::write(&file, IDL).unwrap();
        let account = describe(IDL).unwrap().interface("Bank::Account").unwrap();
        let object = Poa::root(&orb).unwrap().activate(DescribedServant::described(account, serve)).unwrap();
        Self { orb, reference: object.to_string(), file, _folder: folder }
    }

    /// The port at which it listens.
    pub(crate) fn port(&self) -> u16 {
        self.profile().port
    }

    /// The first profile of its reference.
    pub(crate) fn profile(&self) -> IiopProfile {
        let object = self.orb.string_to_object(&self.reference).unwrap();
        IiopProfile::decode(&object.ior().profiles[0]).unwrap().unwrap()
    }
}

impl Drop for Bank {
    fn drop(&mut self) {
        self.orb.shutdown().unwrap();
    }
}
