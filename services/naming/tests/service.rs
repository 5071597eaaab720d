//! The service in this process: iterators, limits, removal of bindings, malformed names.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use spandrel::options::Concurrency;
use spandrel::server::{Replied, Servant, ServerCall};
use spandrel::services::cos_naming::naming_context::{BindError, NotFoundReason, ResolveError, UnbindError};
use spandrel::services::cos_naming::naming_context_ext::ResolveStrError;
use spandrel::services::cos_naming::{BindingIterator, BindingType, NameComponent, NamingContextExt};
use spandrel::{CompletionStatus, Endpoint, ObjectRef, Orb, Poa, SystemException, SystemExceptionKind};
use spandrel_naming::store::{ContextId, Done, IfBound, StoreError, Target};
use spandrel_naming::{NamingOptions, NamingService, PurgeOptions, RedbStore, RedbStoreOptions, Store};
use spandrel_test_support::{block_on, wait_until};

use crate::executable::{name, object};

/// A running service, its root context as a client has it, and the client's ORB.
struct Served {
    root: NamingContextExt,
    client: Orb,
    service: Option<NamingService>,
    orb: Orb,
    _data: tempfile::TempDir,
}

impl Served {
    fn start(change: impl FnOnce(&mut NamingOptions)) -> Self {
        let data = tempfile::tempdir().unwrap();
        let [orb, client] = [0; 2].map(|_| Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap());
        let mut options = NamingOptions::new(data.path());
        change(&mut options);
        let service = NamingService::start(&orb, options).unwrap();
        let reference = client.string_to_object(&service.reference().to_string()).unwrap();
        let root = NamingContextExt::narrow(&reference).unwrap();
        Self { root, client, service: Some(service), orb, _data: data }
    }

    /// Binds this many names, and lists them by an iterator over all.
    fn iterator(&self) -> BindingIterator {
        let (first, rest) = self.root.list(0).unwrap();
        assert!(first.is_empty());
        rest.expect("an iterator")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.service.take().unwrap().stop().unwrap();
        self.orb.shutdown().unwrap();
        self.client.shutdown().unwrap();
    }
}

fn is_alive(iterator: &BindingIterator) -> bool {
    match iterator.next_one() {
        Ok(_) => true,
        Err(exception) => {
            assert_eq!(exception.kind(), SystemExceptionKind::ObjectNotExist, "{exception}");
            false
        }
    }
}

#[test]
fn an_iterator_beyond_the_limit_takes_the_place_of_the_one_called_least_recently() {
    let served = Served::start(|options| options.iterators.limit = 3);
    served.root.bind(&name("a"), Some(&object(&served.client))).unwrap();
    let [first, second, third] = [0; 3].map(|_| served.iterator());
    assert!(is_alive(&first) && is_alive(&third));
    let fourth = served.iterator();
    assert!(!is_alive(&second));
    assert!(is_alive(&first) && is_alive(&third) && is_alive(&fourth));
    fourth.destroy().unwrap();
    let fifth = served.iterator();
    assert!(is_alive(&first) && is_alive(&third) && is_alive(&fifth), "a destroyed iterator has no place");
}

#[test]
fn an_iterator_without_calls_expires() {
    let served = Served::start(|options| options.iterators.expiry = Duration::from_millis(1));
    served.root.bind(&name("a"), Some(&object(&served.client))).unwrap();
    let first = served.iterator();
    wait_until("the expiry of an iterator", || {
        served.iterator();
        !is_alive(&first)
    });
}

#[test]
fn names_and_references_beyond_the_limits_are_refused() {
    let served = Served::start(|options| options.max_reference = 1_000);
    let object = object(&served.client);
    let refused = |result: Result<(), BindError>| match result.unwrap_err() {
        BindError::System(exception) => exception.kind(),
        other => panic!("{other}"),
    };
    let step = |id: String| NameComponent { id, kind: String::new() };
    let long = [step("x".repeat(4_097))];
    assert_eq!(refused(served.root.bind(&long, Some(&object))), SystemExceptionKind::ImpLimit);
    let deep = vec![step("x".to_owned()); 129];
    assert_eq!(refused(served.root.bind(&deep, Some(&object))), SystemExceptionKind::ImpLimit);
    let url = format!("corbaloc::127.0.0.1:9/{}", "x".repeat(1_000));
    let large = served.client.string_to_object(&url).unwrap();
    assert_eq!(refused(served.root.bind(&name("x"), Some(&large))), SystemExceptionKind::ImpLimit);
    served.root.bind(&[step("x".repeat(4_096))], Some(&object)).unwrap();
}

/// An object that has only the implicit operations.
struct Thing;

impl Servant for Thing {
    fn repository_id(&self) -> &'static str {
        "IDL:Thing:1.0"
    }

    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == self.repository_id()
    }

    fn dispatch(&self, _: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        call.implicit(self)
    }
}

#[test]
fn bindings_to_objects_that_do_not_exist_are_removed() {
    for removes_unreachable in [false, true] {
        let purge = PurgeOptions { removes_unreachable, ..PurgeOptions::new(Duration::from_millis(20)) };
        let served = Served::start(|options| options.purge = Some(purge));
        let things = Poa::root(&served.client).unwrap();
        let [alive, gone] = [0; 2].map(|_| things.activate(Thing).unwrap());
        let context = served.root.bind_new_context(&name("inner")).unwrap().unwrap();
        served.root.bind(&name("unreachable"), Some(&object(&served.client))).unwrap();
        served.root.bind(&name("nil"), None).unwrap();
        context.bind(&name("alive"), Some(&alive)).unwrap();
        context.bind(&name("gone"), Some(&gone)).unwrap();
        things.deactivate_object(&things.reference_to_id(&gone).unwrap()).unwrap();
        let destroyed = served.root.new_context().unwrap().unwrap();
        served.root.bind_context(&name("destroyed"), Some(&destroyed)).unwrap();
        destroyed.destroy().unwrap();

        let is_bound = |path: &str| served.root.resolve_str(path).is_ok();
        wait_until("the removal", || !is_bound("inner/gone") && !is_bound("destroyed"));
        if removes_unreachable {
            wait_until("the removal", || !is_bound("unreachable"));
        } else {
            assert!(is_bound("unreachable"));
        }
        assert!(is_bound("inner/alive") && is_bound("nil"));
    }
}

fn is_answer(error: &ResolveError) -> bool {
    match error {
        ResolveError::System(exception) => exception.kind() == SystemExceptionKind::ImpLimit,
        _ => true,
    }
}

/// The text of a URL's part, in which `%` and two digits stand for an octet.
fn unescaped(part: &str) -> String {
    let mut pieces = part.split('%');
    let mut octets = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        octets.push(u8::from_str_radix(&piece[..2], 16).unwrap());
        octets.extend(piece[2..].bytes());
    }
    String::from_utf8(octets).unwrap()
}

#[test]
fn any_name_is_answered() {
    let served = Served::start(|_| {});
    served.root.bind_new_context(&name("a")).unwrap();
    let target: ObjectRef = object(&served.client);
    let steps = prop::collection::vec(("[a./\\\\%\u{e9}]{0,3}", "[a.]{0,2}"), 0..140);
    let strategy = (steps, "[a./\\\\%#:@]{0,12}", "[ri:@,.0-9a]{0,12}");
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(200));
    runner
        .run(&strategy, |(steps, text, address)| {
            let path: Vec<_> = steps.into_iter().map(|(id, kind)| NameComponent { id, kind }).collect();
            match served.root.resolve(&path) {
                Err(error) => prop_assert!(is_answer(&error), "{error}"),
                Ok(found) => prop_assert!(found.is_some()),
            }
            if served.root.bind(&path, Some(&target)).is_ok() {
                served.root.unbind(&path).unwrap();
            }
            if let Ok(parsed) = served.root.to_name(&text) {
                prop_assert_eq!(served.root.to_string(&parsed).unwrap(), text.clone());
            }
            if let Ok(url) = served.root.to_url(&address, &text) {
                let name = url.strip_prefix(&format!("corbaname:{address}#"));
                prop_assert_eq!(name.map(unescaped), Some(text), "{}", url);
            }
            Ok(())
        })
        .unwrap();
    assert_eq!(served.root.list(10).unwrap().0.len(), 1, "only `a` is bound");
}

/// A store whose changes of bindings end when the test says so.
#[derive(Debug)]
struct Held {
    store: RedbStore,
    changes: Mutex<Vec<HeldChange>>,
}

struct HeldChange(Done);

impl std::fmt::Debug for HeldChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HeldChange")
    }
}

impl Held {
    fn take(&self) -> Done {
        let mut taken = None;
        wait_until("a change", || {
            taken = self.changes.lock().unwrap().pop();
            taken.is_some()
        });
        taken.unwrap().0
    }
}

impl Store for Held {
    fn lookup(&self, context: ContextId, name: &NameComponent) -> Result<Target, StoreError> {
        self.store.lookup(context, name)
    }

    fn bind(&self, _: ContextId, _: &NameComponent, _: &Target, _: IfBound) -> Result<(), StoreError> {
        panic!("a thread waits for the change")
    }

    fn unbind(&self, _: ContextId, _: &NameComponent) -> Result<(), StoreError> {
        panic!("a thread waits for the change")
    }

    fn defers(&self) -> bool {
        true
    }

    fn bind_then(&self, _: ContextId, _: &NameComponent, _: &Target, _: IfBound, done: Done) {
        self.changes.lock().unwrap().push(HeldChange(done));
    }

    fn unbind_then(&self, _: ContextId, _: &NameComponent, done: Done) {
        self.changes.lock().unwrap().push(HeldChange(done));
    }

    fn unbind_target(&self, context: ContextId, name: &NameComponent, target: &Target) -> Result<(), StoreError> {
        self.store.unbind_target(context, name, target)
    }

    fn new_context(&self) -> Result<ContextId, StoreError> {
        self.store.new_context()
    }

    fn bind_new_context(&self, context: ContextId, name: &NameComponent) -> Result<ContextId, StoreError> {
        self.store.bind_new_context(context, name)
    }

    fn destroy(&self, context: ContextId) -> Result<(), StoreError> {
        self.store.destroy(context)
    }

    fn list(
        &self,
        context: ContextId,
        after: Option<&NameComponent>,
        limit: usize,
    ) -> Result<Vec<(NameComponent, BindingType)>, StoreError> {
        self.store.list(context, after, limit)
    }

    fn path(&self, context: ContextId) -> Result<Option<String>, StoreError> {
        self.store.path(context)
    }
}

#[test]
fn no_thread_waits_for_the_change_of_a_binding() {
    let data = tempfile::tempdir().unwrap();
    let store = RedbStore::open(&data.path().join("naming.redb"), &RedbStoreOptions::default()).unwrap();
    let held = Arc::new(Held { store, changes: Mutex::default() });
    // One thread serves all clients.
    let builder = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).concurrency(Concurrency::Reactive);
    let (orb, client) = (builder.build().unwrap(), Orb::builder().build().unwrap());
    let service = NamingService::start_with(&orb, held.clone(), NamingOptions::new(data.path())).unwrap();
    let reference = client.string_to_object(&service.reference().to_string()).unwrap();
    let root = NamingContextExt::unchecked_narrow(&reference);
    // The change, the outcome in the store, and the client's.
    let bind = |outcome: Option<Result<(), StoreError>>| {
        let (bound_in, object) = (root.clone(), object(&client));
        let caller = std::thread::spawn(move || bound_in.bind(&name("grace"), Some(&object)));
        let done = held.take();
        assert!(matches!(root.resolve(&name("ada")), Err(ResolveError::NotFound(_))), "the thread waits");
        assert!(!caller.is_finished());
        match outcome {
            Some(outcome) => done(outcome),
            None => drop(done),
        }
        caller.join().unwrap()
    };
    bind(Some(Ok(()))).unwrap();
    assert!(matches!(bind(Some(Err(StoreError::AlreadyBound))), Err(BindError::AlreadyBound(_))));
    let failed = |outcome| match bind(outcome).unwrap_err() {
        BindError::System(exception) => (exception.kind(), exception.completed()),
        other => panic!("{other}"),
    };
    let cause = Arc::new(std::io::Error::other("the disk"));
    let uncertain = failed(Some(Err(StoreError::Uncertain(cause))));
    assert_eq!(uncertain, (SystemExceptionKind::PersistStore, CompletionStatus::Maybe));
    assert_eq!(failed(None).0, SystemExceptionKind::NoResponse);

    let caller = std::thread::spawn({
        let root = root.clone();
        move || root.unbind(&name("grace"))
    });
    held.take()(Err(StoreError::NotBound));
    match caller.join().unwrap().unwrap_err() {
        UnbindError::NotFound(missing) => {
            assert_eq!((missing.why, &*missing.rest_of_name), (NotFoundReason::MissingNode, &name("grace")[..]));
        }
        other => panic!("{other}"),
    }
    service.stop().unwrap();
    orb.shutdown().unwrap();
    client.shutdown().unwrap();
}

/// A name whose steps lead back to this service by way of its address, and by way of another service.
#[test]
fn a_name_that_leads_to_this_service_again_and_again_ends() {
    let (served, other) = (Served::start(|_| {}), Served::start(|_| {}));
    let url = |served: &Served| {
        let (host, port) = served.orb.listen().unwrap().remove(0);
        format!("corbaloc::{host}:{port}/NameService")
    };
    let bind = |served: &Served, id: &str, url: &str| {
        let context = served.client.string_to_object(url).unwrap();
        served.root.bind_context(&name(id), Some(&context.unchecked_narrow())).unwrap();
    };
    served.root.bind(&name("a"), Some(&object(&served.client))).unwrap();
    bind(&served, "own", &url(&served));
    bind(&served, "other", &url(&other));
    bind(&other, "back", &url(&served));
    let resolve = |steps: &str, turns: usize| served.root.resolve_str(&format!("{}a", steps.repeat(turns)));
    assert!(resolve("own/", 100).unwrap().is_some(), "without a call");
    assert!(resolve("other/back/", 3).unwrap().is_some());
    match resolve("other/back/", 60) {
        Ok(found) => assert!(found.is_some()),
        Err(ResolveStrError::CannotProceed(exception)) => assert!(exception.rest_of_name.len() > 10),
        Err(error) => panic!("{error}"),
    }
}

/// Empty and invalid names and addresses, as omniNames 4.2.5 answers them.
#[test]
fn strings_that_are_no_names_have_the_exceptions_of_omni_names() {
    let served = Served::start(|_| {});
    let context = &served.root;
    for text in ["", "/", "a//b", "/a", "a/", "a.", r"a\b"] {
        for outcome in [
            context.to_name(text).map(drop).map_err(|error| error.to_string()),
            context.resolve_str(text).map(drop).map_err(|error| error.to_string()),
            context.to_url(":h:1", text).map(drop).map_err(|error| error.to_string()),
        ] {
            assert!(outcome.as_ref().is_err_and(|error| error.contains("InvalidName")), "{text:?}: {outcome:?}");
        }
    }
    assert!(context.to_string(&[]).unwrap_err().to_string().contains("InvalidName"));
    for (address, text) in [("", ""), ("", "a"), ("h:1", ""), ("foo:h", "a")] {
        let error = context.to_url(address, text).unwrap_err().to_string();
        assert!(error.contains("InvalidAddress"), "{address:?}, {text:?}: {error}");
    }
    assert_eq!(context.to_url(":h:1", "a b").unwrap(), "corbaname::h:1#a%20b");
    for (text, kind) in [(".", ""), (".k", "k")] {
        let name = context.to_name(text).unwrap();
        assert!(name.len() == 1 && name[0].id.is_empty() && name[0].kind == kind, "{text}");
    }
}

#[test]
fn operations_on_text_need_a_context_and_names_within_the_limits() {
    let served = Served::start(|_| {});
    let context = served.root.bind_new_context(&name("gone")).unwrap().unwrap();
    let context: NamingContextExt = ObjectRef::from(context).unchecked_narrow();
    let long = "x".repeat(5_000);
    let limit = |text: String| assert!(text.contains("IMP_LIMIT"), "{text}");
    limit(context.to_string(&name(&long)).unwrap_err().to_string());
    limit(context.to_name(&long).unwrap_err().to_string());
    limit(context.to_url(":host", &long).unwrap_err().to_string());
    limit(context.resolve_str(&long).unwrap_err().to_string());
    limit(context.to_name(&["a"; 200].join("/")).unwrap_err().to_string());
    assert!(context.to_name("a").is_ok() && context.to_url("iiop:1.2@host:2809,:other", "a").is_ok());
    for address in ["iiop:1.2@", "iiop:1.2@:2809", ":host,iiop:1.2@"] {
        assert!(context.to_url(address, "a").unwrap_err().to_string().contains("InvalidAddress"), "{address}");
    }
    context.destroy().unwrap();
    let gone = |text: String| assert!(text.contains("OBJECT_NOT_EXIST"), "{text}");
    gone(context.to_string(&name("a")).unwrap_err().to_string());
    gone(context.to_name("a").unwrap_err().to_string());
    gone(context.to_url(":host", "a").unwrap_err().to_string());
    assert!(context.as_object().non_existent().unwrap());
    assert_eq!(context.as_object().locate().unwrap(), spandrel::types::Located::Unknown);
    assert!(!served.root.as_object().non_existent().unwrap());
    assert_eq!(served.root.as_object().locate().unwrap(), spandrel::types::Located::Here);
}

#[test]
fn names_beyond_iso_8859_1_are_resolved_by_url() {
    let served = Served::start(|_| {});
    let (host, port) = served.orb.listen().unwrap().remove(0);
    let url = format!("corbaname::{host}:{port}");
    let root = served.client.string_to_object(&url).unwrap();
    let root = NamingContextExt::narrow(&root).unwrap();
    for bound in ["\u{6771}\u{4eac}", "caf\u{e9}", "M\u{fc}nchen \u{20ac}"] {
        root.bind(&name(bound), Some(served.root.as_object())).unwrap();
        let escaped: String = bound.bytes().map(|octet| format!("%{octet:02x}")).collect();
        served.client.string_to_object(&format!("{url}#{escaped}")).unwrap();
        served.client.string_to_object(&format!("{url}#{bound}")).unwrap();
        block_on(served.client.string_to_object_async(&format!("{url}#{escaped}"))).unwrap();
    }
    // omniNames writes ISO 8859-1.
    served.client.string_to_object(&format!("{url}#caf%e9")).unwrap();
}
