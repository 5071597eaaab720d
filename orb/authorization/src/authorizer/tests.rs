//! Decisions about requests and callers, the policy file, and the peers that are remembered.

use std::{fmt::Debug, fs};

use spandrel_orb::{Located, ObjectRef, SystemExceptionKind};
use spandrel_poa::Servant;
use spandrel_server::{Replied, ServerCall};
use spandrel_test_support::{in_background, wait_until};
use tracing::{Event, Level, Subscriber, field::Visit};
use tracing_subscriber::{Layer, Registry, layer::Context, prelude::*};

use super::*;
use crate::AuditOptions;

const DOOR: &str = "IDL:House/Door:1.0";
const ALLOW: &str = "[[rule]]\naction = 'allow'\n";

fn policy(text: &str) -> Policy {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A policy of one rule that allows, with these conditions.
fn allow(conditions: &str) -> Policy {
    policy(&format!("{ALLOW}{conditions}"))
}

fn caller(token: &str) -> ReceivedCredentials {
    ReceivedCredentials::of_caller(Address::new("http", "10.0.0.1:1"), Identity::of_token(token))
}

/// Whether a caller with any token may call an operation.
fn permits(authorizer: &Authorizer) -> bool {
    authorizer.would_permit_caller(&caller("any"), "open", DOOR, None)
}

#[track_caller]
fn assert_denied<T: Debug>(outcome: Result<T, SystemException>) {
    let denied = outcome.unwrap_err();
    assert_eq!((denied.kind(), denied.completed()), (SystemExceptionKind::NoPermission, CompletionStatus::No));
}

/// The errors of the log, with their fields.
#[derive(Clone, Default)]
struct ErrorLog(Arc<Mutex<Vec<String>>>);

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn Debug) {
        self.0 += &format!("{field}={value:?} ");
    }
}

impl<S: Subscriber> Layer<S> for ErrorLog {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        if *event.metadata().level() == Level::ERROR {
            self.0.lock().push(fields.0);
        }
    }
}

#[test]
fn the_policy_file_is_read_again_on_demand_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.toml");
    fs::write(&file, "").unwrap();
    let authorizer = Authorizer::from_file(&file, None).unwrap();
    fs::write(&file, ALLOW).unwrap();
    assert!(!permits(&authorizer));
    authorizer.reload().unwrap();
    assert!(permits(&authorizer));
    assert!(permits(&authorizer.clone()), "clones have the same policy");
}

#[test]
fn a_broken_policy_file_changes_nothing_and_the_log_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.toml");
    fs::write(&file, ALLOW).unwrap();
    let authorizer = Authorizer::from_file(&file, None).unwrap();
    fs::write(&file, "[[rule]]\naction = 'permit'\n").unwrap();
    let log = ErrorLog::default();
    let error = tracing::subscriber::with_default(Registry::default().with(log.clone()), || authorizer.reload());
    assert_eq!(error.unwrap_err().place(), Some((2, 10)));
    assert!(permits(&authorizer), "the policy in force stays so");
    let messages = log.0.lock().clone();
    let [message] = &messages[..] else { panic!("{messages:?}") };
    assert!(message.contains("policy.toml:2:10: unknown action `permit`"), "{message}");
    fs::remove_file(&file).unwrap();
    assert_eq!(authorizer.reload().unwrap_err().place(), None);
    assert!(permits(&authorizer));
}

#[test]
fn a_watched_policy_file_takes_effect_whenever_it_changes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.toml");
    fs::write(&file, "").unwrap();
    let authorizer = Authorizer::from_file(&file, None).unwrap();
    authorizer.watch().unwrap();
    fs::write(&file, ALLOW).unwrap();
    wait_until("the changed policy", || permits(&authorizer));
    // A change between the reading of the file and the start of the watch is noticed, too.
    let late = Authorizer::from_file(&file, None).unwrap();
    fs::remove_file(&file).unwrap();
    late.watch().unwrap();
    fs::write(&file, "[[rule]]\naction = 'deny'").unwrap();
    wait_until("the policy of a new file", || !permits(&authorizer) && !permits(&late));
}

#[test]
fn a_policy_that_has_not_changed_is_not_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let [same, changed] = ["same.toml", "changed.toml"].map(|name| folder.path().join(name));
    for file in [&same, &changed] {
        fs::write(file, "").unwrap();
    }
    let [same, other] = [&same, &changed].map(|file| {
        let authorizer = Authorizer::from_file(file, None).unwrap();
        authorizer.watch().unwrap();
        authorizer
    });
    // In place of the file's own, so that another reading would show.
    same.replace(allow(""));
    for text in [ALLOW, ""] {
        fs::write(&changed, text).unwrap();
        wait_until("the other policy", || permits(&other) != text.is_empty());
    }
    assert!(permits(&same));
}

#[test]
fn the_watch_ends_with_its_authorizer() {
    let authorizer = Authorizer::new(policy(""));
    let authority = Arc::downgrade(&authorizer.0);
    drop(authorizer);
    let ended = in_background(move || watch(&authority, Path::new("absent"), None));
    wait_until("the end of the watch", || ended.try_recv().is_ok());
}

#[test]
fn a_policy_without_a_file_stays_as_it_is() {
    let authorizer = Authorizer::new(allow(""));
    authorizer.watch().unwrap();
    authorizer.reload().unwrap();
    assert!(permits(&authorizer));
}

#[test]
fn the_state_of_a_file_is_its_time_and_size() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.toml");
    assert_eq!(state_of(&file), None);
    fs::write(&file, "1234567").unwrap();
    let time = fs::metadata(&file).unwrap().modified().unwrap();
    assert_eq!(state_of(&file), Some((time, 7)));
}

#[test]
fn a_debug_text_has_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.toml");
    fs::write(&file, "").unwrap();
    let text = format!("{:?}", Authorizer::from_file(&file, None).unwrap());
    assert!(text.contains("policy.toml"), "{text}");
}

#[test]
fn a_caller_is_decided_by_identity_operation_interface_and_path() {
    let authorizer = Authorizer::new(allow(&format!(
        "identity = 'token:porter'\noperation = 'open'\ninterface = '{DOOR}'\npath = 'house'"
    )));
    for (token, operation, interface, path, is_permitted) in [
        ("porter", "open", DOOR, Some("house/door"), true),
        ("thief", "open", DOOR, Some("house/door"), false),
        ("porter", "close", DOOR, Some("house/door"), false),
        ("porter", "open", "IDL:House/Safe:1.0", Some("house/door"), false),
        ("porter", "open", DOOR, Some("shed"), false),
        ("porter", "open", DOOR, None, false),
    ] {
        let case = format!("{token} {operation} {interface} {path:?}");
        assert_eq!(authorizer.would_permit_caller(&caller(token), operation, interface, path), is_permitted, "{case}");
        match authorizer.permits_caller(&caller(token), operation, interface, path) {
            Ok(()) => assert!(is_permitted, "{case}"),
            denied => {
                assert_denied(denied);
                assert!(!is_permitted, "{case}");
            }
        }
    }
    authorizer.replace(allow("key = 'porter'"));
    assert!(!permits(&authorizer), "such a call has no key");
    authorizer.replace(allow("adapter = '*'"));
    assert!(permits(&authorizer), "its adapter is empty");
}

#[test]
fn a_denial_names_the_rule_that_decided() {
    let denial = |text: &str| {
        let denied = Authorizer::new(policy(text)).permits_caller(&caller("any"), "open", DOOR, None).unwrap_err();
        denied.detail().unwrap_or_default().to_string()
    };
    assert_eq!(
        denial("\n\n[[rule]]\naction = 'deny'"),
        "`open` is denied to the holder of the token `any` by the policy's rule at line 3"
    );
    assert_eq!(
        denial(""),
        "`open` is denied to the holder of the token `any` because no rule of the policy permits it"
    );
}

#[test]
fn a_client_is_told_the_denied_identity_but_not_the_rule() {
    let denied =
        Authorizer::new(policy("[[rule]]\naction = 'deny'")).permits_caller(&caller("any"), "open", DOOR, None);
    let denied = denied.unwrap_err();
    assert_eq!(denied.minor(), ids::NO_PERMISSION_POLICY);
    assert_eq!(denied.public_detail(), Some("`open` is denied to the holder of the token `any`"));
}

#[test]
fn paths_are_decided_for_the_caller_of_this_thread() {
    let authorizer = Authorizer::new(allow("identity = 'token:porter'\npath = 'house/door'\noperation = 'enter'"));
    let check = authorizer.path_check("Houses");
    check.check("enter", Some("elsewhere")).unwrap(); // this process asks for itself
    let decide = |token: &str, operation: &str, path: Option<&str>| {
        authorizer.as_caller(&caller(token), || check.check(operation, path))
    };
    decide("porter", "enter", Some("house/door")).unwrap();
    decide("porter", "enter", Some("house/door/lock")).unwrap();
    for (token, operation, path) in [
        ("porter", "enter", Some("house")),
        ("porter", "enter", None),
        ("porter", "leave", Some("house/door")),
        ("thief", "enter", Some("house/door")),
    ] {
        assert_denied(decide(token, operation, path));
    }
    // Outside of an upcall there is no object whose key, adapter or interface could match.
    for condition in ["key = 'front'", "adapter = '*'", "interface = '*'"] {
        authorizer.replace(allow(condition));
        assert_denied(decide("porter", "enter", Some("house/door")));
    }
}

#[test]
fn callers_end_in_reverse_order_also_by_a_panic() {
    let authorizer = Authorizer::new(allow("identity = 'token:porter'"));
    let is_permitted = || authorizer.permits_path("enter", "house").is_ok();
    authorizer.as_caller(&caller("thief"), || {
        assert!(!is_permitted());
        assert!(authorizer.as_caller(&caller("porter"), is_permitted));
        assert!(!is_permitted(), "the outer caller is in force again");
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            authorizer.as_caller(&caller("porter"), || panic!("a panic of the test"));
        }));
        assert!(panicked.is_err() && !is_permitted());
    });
    assert!(is_permitted(), "this process asks for itself");
}

/// A servant that records the callers of its operations; `enter` asks about the path `house/door`, and `look` without
/// one.
struct Door {
    authorizer: Authorizer,
    callers: Callers,
}

type Callers = Arc<Mutex<Vec<ReceivedCredentials>>>;

impl Servant for Door {
    fn repository_id(&self) -> &str {
        DOOR
    }

    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == DOOR
    }

    fn dispatch(&self, operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        match operation {
            "enter" => self.authorizer.permits_path("enter", "house/door")?,
            "look" => self.authorizer.permits_path("look", None)?,
            _ => {}
        }
        self.callers.lock().extend(ReceivedCredentials::current());
        call.reply(|_| Ok(()))
    }
}

/// A server with a door in the root adapter, another in the adapter `houses/closed`, and a client.
struct House {
    server: Orb,
    client: Orb,
    /// The first door, for the client.
    door: ObjectRef,
    /// The first door by the plain key `front`.
    front: ObjectRef,
    inner: ObjectRef,
    callers: Callers,
}

impl House {
    fn guarded_by(authorizer: &Authorizer) -> Self {
        let builder = Orb::builder().listen(spandrel_orb::Endpoint::new("127.0.0.1", 0));
        let server = authorizer.install(builder).unwrap().build().unwrap();
        let root = Poa::root(&server).unwrap();
        let houses = root.create_poa("houses", Some(&root.the_poa_manager()), []).unwrap();
        let closed = houses.create_poa("closed", Some(&root.the_poa_manager()), []).unwrap();
        let callers = Callers::default();
        let activate =
            |poa: &Poa| poa.activate(Door { authorizer: authorizer.clone(), callers: Arc::clone(&callers) }).unwrap();
        let (door, inner) = (activate(&root), activate(&closed));
        server.set_object_key_alias("front", &door).unwrap();
        let client = Orb::builder().build().unwrap();
        let reference = |text: &str| client.string_to_object(text).unwrap();
        let front = reference(&format!("corbaloc::127.0.0.1:{}/front", server.listen().unwrap()[0].1));
        Self {
            door: reference(&door.to_string()),
            front,
            inner: reference(&inner.to_string()),
            server,
            client,
            callers,
        }
    }

    /// Whether calls of an operation on the doors succeed: the first, the first by its plain key, the inner one.
    fn permits(&self, operation: &str) -> [bool; 3] {
        [&self.door, &self.front, &self.inner].map(|door| match call(door, operation) {
            Ok(()) => true,
            denied => {
                assert_denied(denied);
                false
            }
        })
    }
}

impl Drop for House {
    fn drop(&mut self) {
        for orb in [&self.client, &self.server] {
            orb.shutdown().unwrap();
        }
    }
}

fn call(object: &ObjectRef, operation: &str) -> Result<(), SystemException> {
    object.invoke(operation, |_| Ok(()), |_| Ok(()))
}

#[test]
fn requests_are_decided_before_their_servant_runs() {
    let authorizer = Authorizer::new(policy(""));
    let house = House::guarded_by(&authorizer);
    for (conditions, expected) in [
        ("operation = 'knock'", [true; 3]),
        ("operation = 'ring'", [false; 3]),
        ("address = 'loopback'\nidentity = 'anonymous'", [true; 3]),
        ("address = '10.0.0.0/8'", [false; 3]),
        ("identity = 'authenticated'", [false; 3]),
        ("key = 'front'", [true, true, false]),
        ("key = 'back'", [false; 3]),
        ("adapter = 'RootPOA'", [true, true, false]),
        ("adapter = 'houses/closed'", [false, false, true]),
        ("adapter = 'houses'", [false; 3]),
        ("interface = 'IDL:House/Door:1.0'", [true; 3]),
        ("interface = 'IDL:House/Safe:1.0'", [false; 3]),
        ("path = ''", [false; 3]),
        ("interface = 'IDL:House/Safe:1.0'\n[[rule]]\naction = 'allow'\nadapter = 'houses/*'", [false, false, true]),
        ("", [true; 3]),
    ] {
        authorizer.replace(allow(conditions));
        house.callers.lock().clear();
        assert_eq!(house.permits("knock"), expected, "{conditions}");
        let permitted = expected.iter().filter(|is_permitted| **is_permitted).count();
        assert_eq!(house.callers.lock().len(), permitted, "{conditions}");
    }
    let caller = house.callers.lock()[0].clone();
    assert!(caller.address().to_string().starts_with("iiop://127.0.0.1:"), "{}", caller.address());
    assert_eq!(*caller.identity(), Identity::default());
}

#[test]
fn a_servant_that_checks_paths_decides_what_the_policy_leaves_open() {
    let authorizer = Authorizer::new(policy(""));
    let house = House::guarded_by(&authorizer);
    authorizer.replace(allow("path = 'house'"));
    assert_eq!(house.permits("enter"), [false; 3], "no adapter checks paths");
    authorizer.check_paths_of("houses");
    for (conditions, expected) in [
        ("path = 'house'", [false, false, true]),
        ("path = 'house/door'\nkey = 'front'", [false; 3]),
        ("path = 'house/window'", [false; 3]),
        ("path = 'house'\nadapter = 'houses/closed'\ninterface = 'IDL:House/Door:1.0'", [false, false, true]),
        ("path = 'house'\nadapter = 'houses'", [false; 3]),
        ("path = 'house'\ninterface = 'IDL:House/Safe:1.0'", [false; 3]),
        ("", [true; 3]),
    ] {
        authorizer.replace(allow(conditions));
        assert_eq!(house.permits("enter"), expected, "{conditions}");
    }
    authorizer.check_paths_of("RootPOA");
    for (conditions, expected) in [
        ("path = 'house'", [true; 3]),
        ("path = 'house/door'\nkey = 'front'", [true, true, false]),
        ("path = 'house/door'\nkey = 'back'", [false; 3]),
    ] {
        authorizer.replace(allow(conditions));
        assert_eq!(house.permits("enter"), expected, "{conditions}");
        assert_eq!(house.permits("look"), [false; 3], "{conditions}: it has no path");
        assert_eq!(house.permits("knock"), expected, "{conditions}: its servant does not ask");
    }
    for (conditions, expected) in [
        ("path = 'house'\nkey = 'back'", [true; 3]),
        ("path = 'house'\nkey = 'front'", [false, false, true]),
        ("path = 'house'\nadapter = 'houses/closed'", [true, true, false]),
        ("path = 'shed'", [true; 3]),
    ] {
        authorizer.replace(policy(&format!("[[rule]]\naction = 'deny'\n{conditions}\n{ALLOW}")));
        assert_eq!(house.permits("enter"), expected, "denied: {conditions}");
    }
}

#[test]
fn an_adapter_checks_paths_if_it_or_one_above_it_does() {
    let authorizer = Authorizer::new(policy(""));
    assert!(!authorizer.0.checks_paths("houses"));
    authorizer.check_paths_of("houses");
    for (adapter, expected) in
        [("houses", true), ("houses/closed", true), ("houses2", false), ("other/houses", false), ("", false)]
    {
        assert_eq!(authorizer.0.checks_paths(adapter), expected, "{adapter}");
    }
}

#[test]
fn locate_requests_are_decided_by_what_is_known_of_the_object() {
    let authorizer = Authorizer::new(policy(""));
    let house = House::guarded_by(&authorizer);
    for (conditions, is_permitted) in [
        ("operation = 'knock'", true),
        ("key = 'front'", true),
        ("key = 'back'", false),
        ("address = '10.0.0.0/8'", false),
        ("", true),
    ] {
        authorizer.replace(allow(conditions));
        match house.door.locate() {
            Ok(located) => assert_eq!((located, is_permitted), (Located::Here, true), "{conditions}"),
            denied => {
                assert_denied(denied);
                assert!(!is_permitted, "{conditions}");
            }
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn users_are_told_apart_over_unix_domain_sockets() {
    use std::os::unix::fs::MetadataExt as _;

    let user = fs::metadata("/proc/self").unwrap().uid();
    let folder = tempfile::tempdir().unwrap();
    let endpoint = format!("uds://{}", folder.path().join("socket").display()).parse().unwrap();
    let authorizer = Authorizer::new(policy(""));
    let server = authorizer.install(Orb::builder().listen(endpoint)).unwrap().build().unwrap();
    let callers = Callers::default();
    let servant = Door { authorizer: authorizer.clone(), callers: Arc::clone(&callers) };
    let door = Poa::root(&server).unwrap().activate(servant).unwrap();
    let client = Orb::builder().transports(["uds"]).build().unwrap();
    let door = client.string_to_object(&door.to_string()).unwrap();
    for (conditions, is_permitted) in [
        (format!("identity = 'uid:{user}'\naddress = 'uds'"), true),
        (format!("identity = 'uid:{}'", user + 1), false),
        ("identity = 'anonymous'".to_owned(), false),
        ("address = 'loopback'".to_owned(), false),
    ] {
        authorizer.replace(allow(&conditions));
        assert_eq!(call(&door, "knock").is_ok(), is_permitted, "{conditions}");
    }
    let callers = callers.lock().clone();
    let [caller] = &callers[..] else { panic!("one call was permitted") };
    assert_eq!(*caller.identity(), Identity { user_id: Some(user), ..Identity::default() });
    client.shutdown().unwrap();
    server.shutdown().unwrap();
}

#[test]
fn the_interceptor_has_a_name_and_is_installed_once() {
    let authorizer = Authorizer::new(policy(""));
    let builder = authorizer.install(Orb::builder()).unwrap();
    let error = authorizer.install(builder).unwrap_err();
    assert_eq!(error, DuplicateName("spandrel-authorization".to_owned()));
}

/// The records of an audit log, as JSON, once it has so many.
fn audited(text: &str, count: usize, decide: impl FnOnce(&Authorizer)) -> Vec<serde_json::Value> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.log");
    let authorizer = Authorizer::audited(policy(text), AuditLog::open(&file, AuditOptions::default()).unwrap());
    decide(&authorizer);
    drop(authorizer); // its last user waits for the last line
    let lines = || fs::read_to_string(&file).unwrap();
    wait_until("the last line", || lines().matches('\n').count() >= count);
    lines().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_audit_log_has_each_decision_once_with_its_reason() {
    let records =
        audited(&format!("{ALLOW}operation = 'open'\n[[rule]]\naction = 'deny'\npath = 'shed'"), 3, |authorizer| {
            authorizer.permits_caller(&caller("porter"), "open", DOOR, Some("house")).unwrap();
            assert_denied(authorizer.permits_caller(&caller("porter"), "close", DOOR, Some("shed")));
            assert_denied(authorizer.permits_caller(&caller("porter"), "close", DOOR, None));
            // For lists of what a caller may call.
            assert!(!authorizer.would_permit_caller(&caller("porter"), "close", DOOR, None));
        });
    let parts = |record: &serde_json::Value| {
        ["decision", "rule", "operation", "path", "token", "interface"].map(|field| record[field].to_string())
    };
    let door = format!("\"{DOOR}\"");
    let expected = [
        ["\"allow\"", "1", "\"open\"", "\"house\"", "\"porter\"", &door],
        ["\"deny\"", "4", "\"close\"", "\"shed\"", "\"porter\"", &door],
        ["\"deny\"", "null", "\"close\"", "null", "\"porter\"", &door],
    ];
    assert_eq!(records.iter().map(parts).collect::<Vec<_>>(), expected);
}

#[test]
fn the_audit_log_has_denials_alone_if_the_policy_says_so() {
    let records = audited(&format!("audit = 'denied'\n{ALLOW}operation = 'open'"), 1, |authorizer| {
        authorizer.permits_caller(&caller("porter"), "open", DOOR, None).unwrap();
        assert_denied(authorizer.permits_caller(&caller("porter"), "close", DOOR, None));
    });
    assert_eq!(records.len(), 1);
    assert_eq!(records[0]["decision"], "deny");
}

#[test]
fn requests_of_peers_are_audited_once_and_permitted_locate_requests_are_not() {
    let records = audited("[[rule]]\naction = 'allow'", 4, |authorizer| {
        let house = House::guarded_by(authorizer);
        house.door.locate().unwrap();
        authorizer.replace(allow("adapter = 'RootPOA'\noperation = 'knock'"));
        house.door.locate().unwrap();
        call(&house.door, "knock").unwrap();
        assert_denied(call(&house.inner, "knock"));
        assert_denied(call(&house.door, "ring"));
        authorizer.replace(policy(""));
        assert_denied(house.door.locate());
    });
    let parts = |record: &serde_json::Value| {
        assert!(record["address"].as_str().unwrap().starts_with("iiop://127.0.0.1:"), "{record}");
        assert!(!record["object"].as_str().unwrap_or_default().is_empty(), "{record}");
        ["decision", "operation", "adapter"].map(|field| record[field].as_str().unwrap_or_default().to_owned())
    };
    let expected = [
        ["allow", "knock", "RootPOA"],
        ["deny", "knock", "houses/closed"],
        // Neither the adapter nor the operation was needed.
        ["deny", "ring", ""],
        ["deny", "", ""],
    ];
    assert_eq!(records.iter().map(parts).collect::<Vec<_>>(), expected);
}

#[test]
fn a_thread_remembers_its_last_peer_until_anything_about_it_differs() {
    let authorizer = Authorizer::new(policy(""));
    let authority = &authorizer.0;
    let [one, two] = ["10.0.0.1:1", "10.0.0.2:1"].map(|address| Address::new(IIOP, address));
    let first = authority.peer_with(&one, None, None);
    assert!(Arc::ptr_eq(&first, &authority.peer_with(&one, None, None)));
    assert!(!Arc::ptr_eq(&first, &authority.peer_with(&two, None, None)));
    let renewed = || {
        let peer = authority.peer_with(&one, None, None);
        assert!(Arc::ptr_eq(&peer, &authority.peer_with(&one, None, None)));
        peer
    };
    for (certificate, user) in [(None, Some(7)), (PeerIdentity::of_verified(vec![vec![1_u8].into()]), None)] {
        let known = renewed();
        let other = authority.peer_with(&one, certificate, user);
        assert!(!Arc::ptr_eq(&known, &other));
        assert_eq!(other.credentials.identity().user_id, user);
    }
    // Another authorizer, and a new policy.
    let known = renewed();
    let elsewhere = Authorizer::new(policy(""));
    assert!(!Arc::ptr_eq(&known, &elsewhere.0.peer_with(&one, None, None)));
    let known = renewed();
    authorizer.replace(allow(""));
    let under_new_policy = authority.peer_with(&one, None, None);
    assert!(!Arc::ptr_eq(&known, &under_new_policy));
    assert_eq!((known.rules.len(), under_new_policy.rules.len()), (0, 1));
}

#[test]
fn each_policy_has_a_number_of_its_own() {
    let authorizer = Authorizer::new(policy(""));
    for number in 0..4 {
        assert_eq!(authorizer.0.generation.load(Ordering::Acquire), number);
        assert_eq!(authorizer.0.policy.read().0, number);
        authorizer.replace(policy(""));
    }
}

#[test]
fn the_remembered_identities_of_certificates_are_bounded() {
    let authorizer = Authorizer::new(policy(""));
    let certificate = |number: usize| PeerIdentity::of_verified(vec![number.to_be_bytes().to_vec().into()]).unwrap();
    let identity = |number: usize| authorizer.0.identity(&certificate(number));
    let first = identity(0);
    assert!(first.has_certificate);
    for number in 1..MAX_IDENTITIES {
        identity(number);
    }
    assert!(Arc::ptr_eq(&first, &identity(0)), "it is remembered");
    assert_eq!(authorizer.0.identities.lock().len(), MAX_IDENTITIES);
    identity(MAX_IDENTITIES);
    assert_eq!(authorizer.0.identities.lock().len(), 1, "all are forgotten at once");
}

#[test]
fn the_path_of_an_adapter_leaves_out_the_root_alone() {
    let path = |names: &[&str]| adapter_path(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    assert_eq!(path(&["RootPOA"]), "RootPOA");
    assert_eq!(path(&["RootPOA", "houses", "closed"]), "houses/closed");
    assert_eq!(path(&["Other", "houses"]), "Other/houses");
    assert_eq!(path(&[]), "");
}
