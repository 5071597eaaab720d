//! Policies by path, through contexts of other servers and by other names of contexts.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use spandrel::authorization::{AuditLog, AuditOptions, Authorizer, PathCheck};
use spandrel::poa::{EtherealizeObjects, WaitForCompletion};
use spandrel::server::{Replied, Servant, ServerCall};
use spandrel::services::cos_naming::{NameComponent, NamingContext, NamingContextExt};
use spandrel::services::name;
use spandrel::{CompletionStatus, Endpoint, ObjectRef, Orb, Poa, SystemException};
use spandrel_naming::{NamingOptions, NamingService};
use spandrel_test_support::wait_until;

use crate::executable::object;

/// A service whose policy denies `bank/vault`, with an audit log; and a peer that the policy decides about.
struct Guarded {
    /// By the address of the service.
    peer: NamingContextExt,
    /// In the process of the service, which no policy restricts.
    own: NamingContextExt,
    client: Orb,
    service: Option<NamingService>,
    orb: Orb,
    folder: tempfile::TempDir,
}

const DENIES_VAULT: &str = "[[rule]]\naction = 'deny'\npath = 'bank/vault'\n[[rule]]\naction = 'allow'\n";

impl Guarded {
    fn start(policy: &str, endpoint: Endpoint) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let audit = AuditLog::open(&folder.path().join("audit.log"), AuditOptions::default()).unwrap();
        let authorizer = Authorizer::audited(policy.parse().unwrap(), audit);
        let orb = authorizer.install(Orb::builder().listen(endpoint)).unwrap().build().unwrap();
        let path_check = Some(authorizer.path_check(spandrel_naming::ADAPTER));
        let options = NamingOptions { path_check, ..NamingOptions::new(folder.path()) };
        let service = NamingService::start(&orb, options).unwrap();
        let client = Orb::builder().build().unwrap();
        let peer = client.string_to_object(&service.reference().to_string()).unwrap().unchecked_narrow();
        let own: NamingContextExt = service.reference().unchecked_narrow();
        for path in ["bank", "bank/vault", "bank/branch"] {
            own.bind_new_context(&names(path)).unwrap();
        }
        own.bind(&names("bank/vault/gold"), Some(&object(&orb))).unwrap();
        Self { peer, own, client, service: Some(service), orb, folder }
    }

    fn port(&self) -> u16 {
        self.orb.listen().unwrap()[0].1
    }

    fn reference(&self, url: &str) -> NamingContext {
        self.client.string_to_object(url).unwrap().unchecked_narrow()
    }

    fn audit(&self, path: &Path) -> String {
        fs::read_to_string(self.folder.path().join(path)).unwrap()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.service.take().unwrap().stop().unwrap();
        self.orb.shutdown().unwrap();
        self.client.shutdown().unwrap();
    }
}

fn any_port() -> Endpoint {
    Endpoint::new("127.0.0.1", 0)
}

fn names(path: &str) -> Vec<NameComponent> {
    name::parse(path).unwrap()
}

/// Whether an outcome is NO_PERMISSION.
fn is_denied<T, E: std::fmt::Debug>(outcome: Result<T, E>) -> bool {
    outcome.is_err_and(|error| format!("{error:?}").contains("NO_PERMISSION"))
}

#[test]
fn a_rule_covers_the_part_of_a_name_that_another_server_answers() {
    let (guarded, other) = (Guarded::start(DENIES_VAULT, any_port()), Guarded::start(DENIES_VAULT, any_port()));
    other.own.bind(&names("secret"), Some(&object(&other.client))).unwrap();
    let foreign = guarded.reference(&other.peer.as_object().to_string());
    for path in ["bank/vault/ext", "bank/branch/ext"] {
        guarded.own.bind_context(&names(path), Some(&foreign)).unwrap();
    }
    let denied = names("bank/vault/ext/secret");
    assert!(is_denied(guarded.peer.resolve(&denied)));
    assert!(is_denied(guarded.peer.unbind(&denied)));
    assert!(is_denied(guarded.peer.rebind(&denied, Some(&object(&guarded.client)))));
    assert!(is_denied(guarded.peer.bind_new_context(&names("bank/vault/ext/new"))));
    assert!(guarded.peer.resolve(&names("bank/branch/ext/secret")).unwrap().is_some());
    let records = "bank/branch/ext/secret,bank/vault/ext/secret,bank/vault/ext/new".split(',');
    for path in records {
        let record = format!("\"path\":\"{path}\"");
        wait_until("the record is written", || guarded.audit(Path::new("audit.log")).contains(&record));
    }
}

#[test]
fn no_answer_tells_which_names_exist_below_a_denied_path() {
    let guarded = Guarded::start(DENIES_VAULT, any_port());
    for path in ["bank/vault/gold", "bank/vault/none", "bank/vault/gold/x", "bank/vault/none/x"] {
        assert!(is_denied(guarded.peer.resolve(&names(path))), "{path}");
        assert!(is_denied(guarded.peer.unbind(&names(path))), "{path}");
    }
    assert!(!is_denied(guarded.peer.resolve(&names("bank/branch/none"))));
}

#[test]
fn another_binding_of_a_context_is_no_way_round_a_rule() {
    let guarded = Guarded::start(DENIES_VAULT, any_port());
    let resolve = |path: &str| guarded.own.resolve(&names(path)).unwrap().unwrap().unchecked_narrow();
    guarded.own.bind_context(&names("shared"), Some(&resolve("bank/vault"))).unwrap();
    assert!(is_denied(guarded.peer.resolve(&names("shared/gold"))), "by the path of the context");
    // A context above the denied one.
    guarded.peer.bind_context(&names("again"), Some(&guarded.peer.as_object().unchecked_narrow())).unwrap();
    assert!(is_denied(guarded.peer.resolve(&names("again/bank/vault/gold"))));
    assert!(guarded.peer.resolve(&names("again/bank/branch")).is_ok());
    // The reference of a denied context, which need not be resolved to be known.
    let vault: NamingContext =
        guarded.client.string_to_object(&resolve("bank/vault").as_object().to_string()).unwrap().unchecked_narrow();
    assert!(is_denied(guarded.peer.bind_context(&names("bank/branch/vault"), Some(&vault))));

    let denies_shared = DENIES_VAULT.replace("bank/vault", "shared");
    let guarded = Guarded::start(&denies_shared, any_port());
    let vault: NamingContext = guarded.own.resolve(&names("bank/vault")).unwrap().unwrap().unchecked_narrow();
    guarded.own.bind_context(&names("shared"), Some(&vault)).unwrap();
    assert!(is_denied(guarded.peer.resolve(&names("shared/gold"))), "by the name");
    assert!(guarded.peer.resolve(&names("bank/vault/gold")).is_ok());
}

#[test]
fn the_service_itself_is_no_other_server_however_it_is_addressed() {
    let listening = [
        (Endpoint::new("127.0.0.1", 0), &["127.0.0.1", "localhost", "127.1", "0.0.0.0"][..]),
        (Endpoint::new("*", 0), &["127.0.0.2", "localhost", "0.0.0.0"]),
    ];
    for (endpoint, hosts) in listening {
        let guarded = Guarded::start(DENIES_VAULT, endpoint);
        let port = guarded.port();
        for (index, host) in hosts.iter().enumerate() {
            let own = guarded.reference(&format!("corbaloc::{host}:{port}/NameService"));
            let bound = names(&format!("own{index}"));
            guarded.peer.bind_context(&bound, Some(&own)).unwrap();
            let resolved = guarded.peer.resolve(&bound).unwrap().unwrap();
            assert_eq!(resolved.to_string(), guarded.peer.as_object().to_string(), "{host}");
            let through = |path: &str| guarded.peer.resolve(&names(&format!("own{index}/{path}")));
            assert!(is_denied(through("bank/vault/gold")), "{host}");
            assert!(through("bank/branch").is_ok(), "{host}");
        }
    }
}

/// A server of a peer that forwards each request to an address of its choice.
struct Forwarder(Mutex<Option<ObjectRef>>);

impl Servant for Forwarder {
    fn repository_id(&self) -> &'static str {
        "IDL:omg.org/CosNaming/NamingContext:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        true
    }

    fn dispatch(&self, _: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        match &*self.0.lock().unwrap() {
            Some(target) => call.forward(target),
            None => Err(SystemException::object_not_exist(0, CompletionStatus::No)),
        }
    }
}

#[test]
fn no_forwarding_of_a_peer_makes_the_service_call_itself() {
    let guarded = Guarded::start(DENIES_VAULT, any_port());
    let evil = Orb::builder().listen(any_port()).build().unwrap();
    let adapter = Poa::root(&evil).unwrap();
    let forwarder = Arc::new(Forwarder(Mutex::default()));
    let at = adapter.activate_object(Arc::clone(&forwarder) as Arc<dyn Servant>).unwrap();
    let at = adapter.id_to_reference(&at).unwrap();
    guarded.peer.bind_context(&names("bank/branch/evil"), Some(&at.unchecked_narrow())).unwrap();
    let vault = guarded.own.resolve(&names("bank/vault")).unwrap().unwrap();
    let key = |ior: &spandrel::types::Ior| spandrel::types::IiopProfile::decode(&ior.profiles[0]).unwrap().unwrap();
    let mut targets = vec![vault.ior().clone()];
    for host in ["localhost", "0.0.0.0"] {
        let profile =
            spandrel::types::IiopProfile { host: host.to_owned(), components: Vec::new(), ..key(vault.ior()) };
        targets.push(spandrel::types::Ior { profiles: vec![profile.encode().unwrap()], ..vault.ior().clone() });
    }
    for target in targets {
        let text = format!("{target:?}");
        *forwarder.0.lock().unwrap() = Some(evil.reference(target));
        let outcome = guarded.peer.resolve(&names("bank/branch/evil/gold"));
        let outcome = format!("{:?}", outcome.unwrap_err());
        assert!(outcome.contains("CannotProceed"), "{text}: {outcome}");
    }
    adapter.destroy(EtherealizeObjects::No, WaitForCompletion::Yes).unwrap();
    evil.shutdown().unwrap();
}

#[test]
fn the_calls_of_an_iterator_are_decided_by_the_path_of_its_context() {
    let is_closed = Arc::new(AtomicBool::new(false));
    let closed = Arc::clone(&is_closed);
    let path_check = PathCheck::new(move |operation, path| {
        let denied = || SystemException::no_permission(0, CompletionStatus::No);
        let is_denied = closed.load(Ordering::Relaxed) && path == Some("bank") && operation != "list";
        if is_denied { Err(denied()) } else { Ok(()) }
    });
    let folder = tempfile::tempdir().unwrap();
    let orb = Orb::builder().listen(any_port()).build().unwrap();
    let options = NamingOptions { path_check: Some(path_check), ..NamingOptions::new(folder.path()) };
    let service = NamingService::start(&orb, options).unwrap();
    let root: NamingContext = service.reference().unchecked_narrow();
    let bank = root.bind_new_context(&names("bank")).unwrap().unwrap();
    for id in ["a", "b"] {
        bank.bind(&names(id), Some(&object(&orb))).unwrap();
    }
    let iterator = bank.list(0).unwrap().1.unwrap();
    assert!(iterator.next_one().unwrap().0);
    is_closed.store(true, Ordering::Relaxed);
    assert!(is_denied(iterator.next_one()) && is_denied(iterator.next_n(1)) && is_denied(iterator.destroy()));
    is_closed.store(false, Ordering::Relaxed);
    assert!(iterator.next_n(1).unwrap().0);
    service.stop().unwrap();
    orb.shutdown().unwrap();
}
