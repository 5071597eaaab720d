//! Authorization by a policy: requests of every kind, identities, and the audit log.

use std::{fs, path::Path};

use spandrel::{
    CompletionStatus, Endpoint, Orb, OrbBuilder, Poa, SystemException, SystemExceptionKind,
    authorization::{AuditLog, AuditOptions, Authorizer, Policy, ReceivedCredentials},
    ssliop::{ClientVerification, Ssliop, pem},
    types::Located,
};
use spandrel_orb_tests::{
    Repeater, Server,
    access::{Guard, GuardAsyncServant, GuardAsyncSkeleton, GuardServant, GuardSkeleton},
    probe::{Relay, RelaySkeleton, Target},
    support::{kind_and_completion, wait_until},
};
use spandrel_test_support::certificates::{Authority, CertificateParams};

use crate::certificates::{WithIdentity, authority, client, serving, trusting};

fn policy(text: &str) -> Policy {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// One rule that allows, with these conditions.
fn allow(conditions: &str) -> Authorizer {
    Authorizer::new(policy(&format!("[[rule]]\naction = 'allow'\n{conditions}")))
}

fn serve(authorizer: &Authorizer) -> Server {
    Server::with(authorizer.install(Orb::builder()).unwrap())
}

fn target(server: &Server) -> Target {
    Target::unchecked_narrow(&Orb::builder().build().unwrap().string_to_object(&server.ior()).unwrap())
}

const DENIED: (SystemExceptionKind, CompletionStatus) = (SystemExceptionKind::NoPermission, CompletionStatus::No);

#[track_caller]
fn assert_denied<T: std::fmt::Debug>(outcome: Result<T, SystemException>) {
    assert_eq!(kind_and_completion(&outcome.unwrap_err()), DENIED);
}

#[test]
fn a_denied_request_does_not_reach_its_servant() {
    let authorizer = allow("operation = 'count'");
    let server = serve(&authorizer);
    let target = target(&server);
    assert_denied(target.ping());
    assert_denied(target.as_object().is_a("IDL:Other:1.0"));
    // A one-way has no reply, and the next request of the connection comes after it.
    target.note(&[]).unwrap();
    assert_eq!(target.count().unwrap(), 0);
    authorizer.replace(policy("[[rule]]\naction = 'allow'"));
    target.note(&[]).unwrap();
    assert_eq!(target.count().unwrap(), 1, "the new policy holds for open connections");
}

#[test]
fn a_locate_request_is_permitted_where_any_operation_may_be() {
    let authorizer = allow("operation = 'ping'\ninterface = 'IDL:Probe/*'");
    let server = serve(&authorizer);
    let object = target(&server);
    assert_eq!(object.as_object().locate().unwrap(), Located::Here);
    authorizer.replace(policy("[[rule]]\naction = 'allow'\naddress = '10.0.0.0/8'"));
    assert_denied(object.as_object().locate());
}

#[test]
fn calls_of_the_same_process_need_no_permission() {
    let server = serve(&Authorizer::new(policy("")));
    assert_denied(target(&server).ping());
    let own = Target::narrow(&server.object).unwrap();
    own.ping().unwrap();
    assert_eq!(server.object.locate().unwrap(), Located::Here);
}

#[test]
fn callbacks_over_a_connection_of_this_side_are_decided_alike() {
    let server = Server::with(Orb::builder().bidirectional(true));
    let authorizer = allow("operation = 'add'");
    let client = authorizer.install(Orb::builder()).unwrap().bidirectional(true).listen(Endpoint::nowhere());
    let client = Server::with(client);
    let far = Target::unchecked_narrow(&client.orb.string_to_object(&server.ior()).unwrap());
    let own = Target::unchecked_narrow(&client.object);
    let denied = far.call_back(Some(&own)).unwrap_err();
    assert_eq!(denied.kind(), SystemExceptionKind::NoPermission);
    authorizer.replace(policy("[[rule]]\naction = 'allow'\noperation = 'ping'\naddress = 'loopback'"));
    far.call_back(Some(&own)).unwrap();
}

#[test]
fn objects_are_matched_by_adapter_interface_and_plain_key() {
    let authorizer = Authorizer::new(policy(""));
    let server = serve(&authorizer);
    let accounts = server.poa.create_poa("accounts", None, []).unwrap();
    accounts.the_poa_manager().activate().unwrap();
    let inner = accounts.create_poa("closed", Some(&accounts.the_poa_manager()), []).unwrap();
    let relay = |poa: &Poa| {
        let object = poa.activate(RelaySkeleton::new(Repeater)).unwrap();
        let orb = Orb::builder().build().unwrap();
        Relay::unchecked_narrow(&orb.string_to_object(&object.to_string()).unwrap())
    };
    let (target, of_root, of_accounts, of_closed) =
        (target(&server), relay(&server.poa), relay(&accounts), relay(&inner));
    server.orb.set_object_key_alias("probe", &server.object).unwrap();
    let by_key = Orb::builder().build().unwrap();
    let by_key = by_key.string_to_object(&format!("corbaloc::127.0.0.1:{}/probe", server.port())).unwrap();
    let is_permitted = |object: &spandrel::ObjectRef| match object.non_existent() {
        Ok(is_absent) => !is_absent,
        Err(error) => {
            assert_eq!(kind_and_completion(&error), DENIED);
            false
        }
    };
    for (rule, expected) in [
        ("adapter = 'accounts'", [false, false, true, false, false]),
        ("adapter = 'accounts/*'", [false, false, false, true, false]),
        ("adapter = 'RootPOA'", [true, true, false, false, true]),
        ("interface = 'IDL:Probe/Relay:1.0'", [false, true, true, true, false]),
        ("interface = 'IDL:Probe/Relay:1.0'\nadapter = 'accounts*'", [false, false, true, true, false]),
        ("key = 'probe'", [true, false, false, false, true]),
        ("key = ['other', 'probe']\ninterface = 'IDL:Probe/Relay:1.0'", [false; 5]),
        ("path = ''", [false; 5]),
    ] {
        authorizer.replace(policy(&format!("[[rule]]\naction = 'allow'\n{rule}")));
        let objects =
            [target.as_object(), of_root.as_object(), of_accounts.as_object(), of_closed.as_object(), &by_key];
        assert_eq!(objects.map(is_permitted), expected, "{rule}");
    }
}

/// Tells the credentials of its clients.
struct Porter(Option<Authorizer>);

fn credentials() -> String {
    let Some(peer) = ReceivedCredentials::current() else { return "this process".to_owned() };
    let identity = peer.identity();
    let names = [&identity.common_name, &identity.issuer].map(|name| name.clone().unwrap_or_default());
    let user = identity.user_id.map(|user| user.to_string()).unwrap_or_default();
    let alternatives = [identity.dns_names.join(","), identity.uri_names.join(",")].join("|");
    format!("{} {} {alternatives} {user}", peer.address().scheme(), names.join("|"))
}

impl GuardServant for Porter {
    fn caller(&self) -> Result<String, SystemException> {
        Ok(credentials())
    }

    fn check_access(&self) -> Result<(), SystemException> {
        self.0.as_ref().map_or(Ok(()), |authorizer| authorizer.permits_path("enter", "house/door"))
    }

    fn caller_chain(&self) -> Result<String, SystemException> {
        Ok(credentials())
    }

    fn call_back(&self, other: Option<&Guard>) -> Result<String, SystemException> {
        other.ok_or_else(|| SystemException::bad_param(0, CompletionStatus::No))?.caller()
    }
}

struct AsynchronousPorter;

impl GuardAsyncServant for AsynchronousPorter {
    async fn caller(&self) -> Result<String, SystemException> {
        Ok(credentials())
    }

    async fn check_access(&self) -> Result<(), SystemException> {
        Ok(())
    }

    async fn caller_chain(&self) -> Result<String, SystemException> {
        Ok(credentials())
    }

    async fn call_back(&self, _: Option<&Guard>) -> Result<String, SystemException> {
        Ok(String::new())
    }
}

fn guard(orb: &Orb, reference: &str) -> Guard {
    Guard::unchecked_narrow(&orb.string_to_object(reference).unwrap())
}

#[test]
fn a_service_decides_about_paths() {
    let authorizer = allow("path = 'house'");
    let orb = authorizer.install(Orb::builder()).unwrap().build().unwrap();
    let object = Poa::root(&orb).unwrap().activate(GuardSkeleton::new(Porter(Some(authorizer.clone())))).unwrap();
    let porter = guard(&Orb::builder().build().unwrap(), &object.to_string());
    assert_denied(porter.check_access());
    authorizer.check_paths_of("RootPOA");
    porter.check_access().unwrap();
    for (rules, is_permitted) in [
        ("[[rule]]\naction = 'allow'\npath = 'house/door'\ninterface = '*Guard*'", true),
        ("[[rule]]\naction = 'allow'\npath = 'house/window'", false),
        ("[[rule]]\naction = 'deny'\npath = 'house'\n[[rule]]\naction = 'allow'", false),
        ("[[rule]]\naction = 'allow'\npath = 'house'\noperation = ['check_access', 'enter']", true),
        ("[[rule]]\naction = 'allow'\npath = 'house'\noperation = 'check_access'", false),
        ("[[rule]]\naction = 'allow'", true),
    ] {
        authorizer.replace(policy(rules));
        match porter.check_access() {
            Ok(()) => assert!(is_permitted, "{rules}"),
            Err(error) => assert_eq!((kind_and_completion(&error), is_permitted), (DENIED, false), "{rules}"),
        }
    }
    authorizer.permits_path("enter", "house/door").unwrap(); // this process asks for itself
}

/// A TLS server with clients that need no certificate.
fn tls(authorizer: &Authorizer) -> (Orb, String, String) {
    tls_with(authorizer, trusting(authority()))
}

fn tls_with(authorizer: &Authorizer, ssliop: Ssliop) -> (Orb, String, String) {
    let ssliop = ssliop.identity_of(&authority().issue("127.0.0.1")).verify_clients(ClientVerification::Requested);
    let orb = authorizer.install(serving(ssliop)).unwrap().build().unwrap();
    let poa = Poa::root(&orb).unwrap();
    let porter = poa.activate(GuardSkeleton::new(Porter(None))).unwrap().to_string();
    let asynchronous = poa.activate(GuardAsyncSkeleton::new(AsynchronousPorter)).unwrap().to_string();
    (orb, porter, asynchronous)
}

fn client_named(host: &str, change: impl FnOnce(&mut CertificateParams)) -> Orb {
    let identity = authority().issue_with(&[host, "teller.bank.example"], change);
    client().protocol(trusting(authority()).identity_of(&identity)).build().unwrap()
}

#[test]
fn servants_are_told_the_identity_and_the_address() {
    let (_orb, porter, asynchronous) = tls(&allow(""));
    let teller = client_named("teller", |_| {});
    let expected = "ssliop teller|an authority teller,teller.bank.example| ";
    assert_eq!(guard(&teller, &porter).caller().unwrap(), expected);
    assert_eq!(guard(&teller, &asynchronous).caller().unwrap(), expected);
    let anonymous = client().build().unwrap();
    assert_eq!(guard(&anonymous, &porter).caller().unwrap(), "ssliop | | ");
    assert!(ReceivedCredentials::current().is_none());
}

#[test]
fn certificates_decide() {
    let authorizer = Authorizer::new(policy(""));
    let (_orb, porter, _) = tls(&authorizer);
    let (teller, thief, anonymous) =
        (client_named("teller", |_| {}), client_named("thief", |_| {}), client().build().unwrap());
    for (rule, expected) in [
        ("identity = 'cn:teller'", [true, false, false]),
        ("identity = 'dns:*.bank.example'", [true, true, false]),
        ("identity = 'dns:thief'", [false, true, false]),
        ("identity = 'authenticated'", [true, true, false]),
        ("identity = 'anonymous'", [false, false, true]),
        ("issuer = 'an authority'", [true, true, false]),
        ("issuer = 'another'", [false, false, false]),
    ] {
        authorizer.replace(policy(&format!("[[rule]]\naction = 'allow'\n{rule}")));
        for (orb, is_permitted) in [&teller, &thief, &anonymous].into_iter().zip(expected) {
            let porter = guard(orb, &porter);
            assert_eq!(porter.caller().is_ok(), is_permitted, "{rule}");
            let located = porter.as_object().locate();
            assert_eq!(located.is_ok(), is_permitted, "{rule}: {located:?}");
        }
    }
}

#[test]
fn an_authority_with_the_name_of_another_is_told_apart_by_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let impostor = Authority::new("an authority");
    let file = |name: &str, text: &str| {
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        file.display().to_string()
    };
    let (genuine, both) = (authority().pem(), authority().pem() + &impostor.pem());
    let (file_of_one, file_of_both) = (file("one.pem", &genuine), file("both.pem", &both));
    let authorizer = Authorizer::new(policy(""));
    let trusted = trusting(authority()).trust(pem::authorities(both.as_bytes()).unwrap());
    let (_orb, porter, _) = tls_with(&authorizer, trusted);
    let thief = impostor.issue_with(&["teller", "teller.bank.example"], |_| {});
    let thief = client().protocol(trusting(authority()).identity_of(&thief)).build().unwrap();
    let (teller, anonymous) = (client_named("teller", |_| {}), client().build().unwrap());
    for (rules, expected) in [
        ("[[rule]]\naction = 'allow'\nissuer = 'an authority'".to_owned(), [true, true, false]),
        (format!("[[rule]]\naction = 'allow'\nissuer = 'file:{file_of_one}'"), [true, false, false]),
        (format!("[[rule]]\naction = 'allow'\nissuer = ['another', 'file:{file_of_both}']"), [true, true, false]),
        (
            format!("[[rule]]\naction = 'deny'\nissuer = 'file:{file_of_one}'\n[[rule]]\naction = 'allow'"),
            [false, true, true],
        ),
    ] {
        authorizer.replace(policy(&rules));
        for (orb, is_permitted) in [&teller, &thief, &anonymous].into_iter().zip(expected) {
            for _ in 0..2 {
                assert_eq!(guard(orb, &porter).caller().is_ok(), is_permitted, "{rules}");
            }
        }
    }
    // Files are named from the folder of the policy, and must have certificates.
    let read = |issuer: &str| {
        let text = format!("[[rule]]\naction = 'allow'\nissuer = 'file:{issuer}'");
        Policy::read(Path::new(&file("policy.toml", &text))).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(read("one.pem"), Ok(()));
    for (issuer, text) in [("absent.pem", "cannot read"), ("policy.toml", "no certificate"), (".", "cannot read")] {
        let error = read(issuer).unwrap_err();
        assert!(error.contains("policy.toml:3:10: ") && error.contains(text), "{error}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn users_decide_over_unix_domain_sockets() {
    use std::os::unix::fs::MetadataExt as _;

    let user = fs::metadata("/proc/self").unwrap().uid();
    let folder = tempfile::tempdir().unwrap();
    let endpoint = format!("uds://{}", folder.path().join("socket").display()).parse().unwrap();
    let authorizer = allow(&format!("identity = 'uid:{user}'\naddress = 'uds'"));
    let orb = authorizer.install(Orb::builder().listen(endpoint)).unwrap().build().unwrap();
    let object = Poa::root(&orb).unwrap().activate(GuardSkeleton::new(Porter(None))).unwrap();
    let porter = guard(&Orb::builder().transports(["uds"]).build().unwrap(), &object.to_string());
    assert_eq!(porter.caller().unwrap(), format!("uds | | {user}"));
    authorizer.replace(policy(&format!("[[rule]]\naction = 'allow'\nidentity = 'uid:{}'", user + 1)));
    assert_denied(porter.caller());
}

fn audited(file: &Path, options: AuditOptions, text: &str) -> (Server, Target) {
    let authorizer = Authorizer::audited(policy(text), AuditLog::open(file, options).unwrap());
    let builder: OrbBuilder = Orb::builder();
    let server = Server::with(authorizer.install(builder).unwrap());
    let target = target(&server);
    (server, target)
}

fn lines(file: &Path) -> Vec<String> {
    fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
}

#[test]
fn decisions_are_written_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.log");
    let (_server, target) =
        audited(&file, AuditOptions::default(), "[[rule]]\naction = 'allow'\noperation = 'ping'\naddress = 'loopback'");
    target.ping().unwrap();
    assert_denied(target.echo("text"));
    wait_until("both lines are written", || lines(&file).len() == 2);
    let [allowed, denied] = &lines(&file)[..] else { panic!("two lines") };
    assert!(allowed.starts_with("{\"time\":\"20") && allowed.contains("Z\",\"decision\":\"allow\",\"rule\":1,"));
    assert!(allowed.contains("\"operation\":\"ping\"") && allowed.contains("\"address\":\"iiop://127.0.0.1:"));
    assert!(denied.contains("\"decision\":\"deny\",\"address\"") && denied.contains("\"operation\":\"echo\""));
}

#[test]
fn only_denials_are_written_if_the_policy_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.log");
    let text = "audit = 'denied'\n[[rule]]\naction = 'allow'\noperation = 'ping'";
    let (_server, target) = audited(&file, AuditOptions::default(), text);
    target.ping().unwrap();
    assert_denied(target.count());
    wait_until("the denial is written", || !lines(&file).is_empty());
    assert!(lines(&file)[0].contains("\"deny\""));
}

#[test]
fn the_audit_log_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.log");
    let options = AuditOptions { max_octets: 600, kept_files: 2, ..AuditOptions::default() };
    let (_server, target) = audited(&file, options, "[[rule]]\naction = 'allow'");
    let name = |number: u32| folder.path().join(format!("audit.log.{number}"));
    // Lines that wait together are written at once, to one file.
    wait_until("files are renamed", || {
        target.ping().unwrap();
        name(1).exists() && name(2).exists()
    });
    (0..40).for_each(|_| target.ping().unwrap());
    assert!(!name(3).exists());
}

#[test]
fn a_flood_is_counted_instead_of_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.log");
    let options = AuditOptions { max_lines_per_second: 3, ..AuditOptions::default() };
    let (_server, target) = audited(&file, options, "[[rule]]\naction = 'allow'");
    let mut calls = 0;
    wait_until("a line tells the number of those that are missing", || {
        target.ping().unwrap();
        calls += 1;
        lines(&file).iter().any(|line| line.contains("\"suppressed\":"))
    });
    assert!(lines(&file).len() < calls);
}

#[test]
#[cfg(target_os = "linux")]
fn requests_are_served_while_the_audit_log_cannot_be_written() {
    let (_server, target) =
        audited(Path::new("/dev/full"), AuditOptions::default(), "[[rule]]\naction = 'allow'\noperation = 'ping'");
    for _ in 0..100 {
        target.ping().unwrap();
        assert_denied(target.count());
    }
    let folder = tempfile::tempdir().unwrap();
    let error = AuditLog::open(&folder.path().join("none/audit.log"), AuditOptions::default()).unwrap_err();
    assert!(error.to_string().starts_with("cannot write the audit log "), "{error}");
    assert!(AuditLog::open(folder.path(), AuditOptions::default()).is_err());
}

#[test]
fn calls_for_a_caller_of_another_protocol_are_decided_in_the_same_process() {
    let authorizer = allow("identity = 'token:tester'\noperation = 'count'");
    let server = serve(&authorizer);
    let target = Target::unchecked_narrow(&server.object);
    // The process itself may do everything.
    target.ping().unwrap();
    let caller = |name: &str| {
        let address = spandrel::net::transport::Address::new("http", "127.0.0.1:1");
        ReceivedCredentials::of_caller(address, spandrel::authorization::Identity::of_token(name))
    };
    assert_eq!(authorizer.as_caller(&caller("tester"), || target.count()).unwrap(), 0);
    assert_denied(authorizer.as_caller(&caller("tester"), || target.ping()));
    assert_denied(authorizer.as_caller(&caller("other"), || target.count()));
    let (interface, path) = ("IDL:Probe/Target:1.0", Some("a/b"));
    authorizer.permits_caller(&caller("tester"), "count", interface, path).unwrap();
    assert_denied(authorizer.permits_caller(&caller("tester"), "ping", interface, path));
    // A panic ends the caller's operation, too.
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        authorizer.as_caller(&caller("other"), || panic!("a panic of the test"));
    }));
    assert!(panicked.is_err());
    target.ping().unwrap();
}
