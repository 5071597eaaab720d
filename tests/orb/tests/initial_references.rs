//! Initial references (CORBA 3.3 Part 1, 8.5.2 and 8.5.3), `corbaloc:rir:` (Part 2, 7.6.10.2), plain object
//! keys, and `corbaname:` (Naming Service 1.3, 2.5.3).

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use spandrel::poa::{
    Current, EtherealizeObjects, IdAssignmentPolicy, IdUniquenessPolicy, LifespanPolicy, ObjectId, PoaError,
    RequestProcessingPolicy, WaitForCompletion,
};
use spandrel::{
    CompletionStatus, Endpoint, InitError, ObjectRef, Orb, OrbBuilder, SystemException, SystemExceptionKind, minor,
    server::Servant,
    types::{InvalidName, Located},
};
use spandrel_orb_tests::{
    Server,
    cos_naming::{
        NameComponent, NamingContextServant, NamingContextSkeleton,
        naming_context::{CannotProceed, InvalidName as NoName, NotFound, NotFoundReason, ResolveError},
    },
    probe::Target,
    support::{TEST_TIMEOUT, block_on, in_background, servant},
};

fn init(args: &[&str]) -> Orb {
    Orb::init(args.iter().map(ToString::to_string)).unwrap()
}

#[track_caller]
fn ping(object: Result<ObjectRef, SystemException>) {
    Target::narrow(&object.unwrap()).unwrap().ping().unwrap();
}

#[track_caller]
fn assert_refused(object: Result<ObjectRef, SystemException>, minor: u32, reason: &str) {
    let error = object.unwrap_err();
    assert_eq!((error.kind(), error.minor()), (SystemExceptionKind::BadParam, minor), "{error}");
    assert!(error.to_string().contains(reason), "{error}");
}

/// Identifies a resolved reference: those of these tests differ in their type ids.
fn type_id_of(object: &ObjectRef) -> &str {
    object.type_id()
}

fn reference_of_type(orb: &Orb, type_id: &str) -> ObjectRef {
    let ior = "corbaloc::localhost:1/key";
    let mut ior = orb.string_to_object(ior).unwrap().ior().clone();
    ior.type_id = type_id.to_owned();
    orb.reference(ior)
}

// 8.5.3.3: registered references, then -ORBInitRef, then -ORBDefaultInitRef.
#[test]
fn registered_references_precede_init_ref_and_default_init_ref() {
    let configured = reference_of_type(&Orb::builder().build().unwrap(), "IDL:Configured:1.0").to_string();
    let orb = init(&["-ORBInitRef", &format!("A={configured}"), "-ORBDefaultInitRef", "corbaloc::default:99"]);
    let by_default = orb.resolve_initial_references("B").unwrap();
    assert_eq!(by_default, orb.string_to_object("corbaloc::default:99/B").unwrap());
    assert_eq!(type_id_of(&orb.resolve_initial_references("A").unwrap()), "IDL:Configured:1.0");
    for name in ["A", "B"] {
        orb.register_initial_reference(name, &reference_of_type(&orb, "IDL:Registered:1.0")).unwrap();
        assert_eq!(type_id_of(&orb.resolve_initial_references(name).unwrap()), "IDL:Registered:1.0");
    }
    assert_eq!(orb.list_initial_services(), ["A", "B"]);
}

// 8.5.3.2: the standard's own examples.
#[test]
fn default_init_ref_is_completed_with_a_slash_and_the_name() {
    let orb = init(&["-ORBDefaultInitRef", "corbaloc::555objs.com,:555backup.com"]);
    let expected = orb.string_to_object("corbaloc::555objs.com,:555backup.com/NotificationService").unwrap();
    assert_eq!(orb.resolve_initial_references("NotificationService").unwrap(), expected);
}

// 8.5.2.
#[test]
fn an_initial_reference_name_is_registered_once() {
    let orb = Orb::builder().build().unwrap();
    let object = reference_of_type(&orb, "IDL:X:1.0");
    assert_eq!(orb.register_initial_reference("", &object), Err(InvalidName::Empty));
    orb.register_initial_reference("X", &object).unwrap();
    assert_eq!(orb.register_initial_reference("X", &object), Err(InvalidName::Registered("X".into())));
    assert!(matches!(orb.register_initial_reference("RootPOA", &object), Err(InvalidName::Local(..))));
    assert_refused(orb.resolve_initial_references("RootPOA"), minor::BAD_URL_OTHER, "Poa::root");
    assert_refused(orb.resolve_initial_references("Y"), minor::BAD_URL_OTHER, "-ORBInitRef Y=URL");
}

// Part 2, 7.6.10.2: `rir:` is an initial reference of this ORB, NameService unless the key names another.
#[test]
fn corbaloc_rir_is_an_initial_reference() {
    let orb = init(&["-ORBInitRefNameService=corbaloc::names:1/N", "-ORBInitRef", "Two words=corbaloc::two:1/W"]);
    for url in ["corbaloc:rir:", "corbaloc:rir:/", "corbaloc:rir:/NameService", "CorbaLoc:rir:/Name%53ervice"] {
        let found = orb.string_to_object(url).unwrap();
        assert_eq!(found, orb.string_to_object("corbaloc::names:1/N").unwrap(), "{url}");
    }
    let spaced = orb.string_to_object("corbaloc:rir:/Two%20words").unwrap();
    assert_eq!(spaced, orb.string_to_object("corbaloc::two:1/W").unwrap());
    assert_refused(orb.string_to_object("corbaloc:rir:,:host/X"), minor::BAD_SCHEME_SPECIFIC_PART, "must stand alone");
}

#[test]
fn init_refs_may_refer_to_each_other_and_circles_are_refused() {
    let orb = init(&[
        "-ORBInitRef",
        "A=corbaloc:rir:/B",
        "-ORBInitRef",
        "B=corbaloc::b:1/B",
        "-ORBInitRef",
        "C=corbaloc:rir:/C",
        "-ORBDefaultInitRef",
        "corbaloc:rir:",
    ]);
    let expected = orb.string_to_object("corbaloc::b:1/B").unwrap();
    assert_eq!(orb.resolve_initial_references("A").unwrap(), expected);
    assert_refused(orb.resolve_initial_references("C"), minor::BAD_URL_OTHER, "more than 8 others");
    assert_refused(orb.resolve_initial_references("D"), minor::BAD_URL_OTHER, "more than 8 others");
}

#[test]
fn an_initial_reference_that_cannot_be_read_ends_the_creation_of_the_orb() {
    let folder = tempfile::tempdir().unwrap();
    let nested = folder.path().join("nested.ior");
    std::fs::write(&nested, "file:///other.ior").unwrap();
    let url = |path: &std::path::Path| format!("A=file://{}", path.display());
    for (option, value) in [
        ("-ORBInitRef", "A=garbage".to_owned()),
        ("-ORBInitRef", "A=corbaloc:x:y".to_owned()),
        ("-ORBInitRef", "A=corbaname::host#a//b".to_owned()),
        ("-ORBInitRef", url(&folder.path().join("missing.ior"))),
        ("-ORBInitRef", url(folder.path())),
        ("-ORBInitRef", url(&nested)),
        ("-ORBDefaultInitRef", "garbage".to_owned()),
    ] {
        let error = Orb::init([option.to_owned(), value.clone()]).unwrap_err().to_string();
        assert!(error.contains("cannot use the given initial reference"), "{value}: {error}");
        let mut args = vec![option.to_owned(), value];
        let error = Orb::builder().take_args(&mut args).unwrap().build().unwrap_err();
        assert_eq!(error.kind(), SystemExceptionKind::BadParam, "{error}");
    }
}

#[test]
fn a_file_has_a_reference() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("of bank.ior");
    let server = Server::start();
    std::fs::write(&file, format!("{}\n", server.ior())).unwrap();
    let url = format!("file://{}", file.display());
    let orb = init(&["-ORBInitRef", &format!("Bank={url}")]);
    ping(orb.resolve_initial_references("Bank"));
    ping(orb.string_to_object(&url));
    ping(orb.string_to_object(&url.replace(' ', "%20").replace("file:", "FILE:")));
    ping(orb.string_to_object(&url.replace("file://", "file://localhost")));
    std::fs::write(&file, "secret of another user").unwrap();
    let error = orb.string_to_object(&url).unwrap_err().to_string();
    assert!(error.contains("the file has no reference") && !error.contains("secret"), "{error}");
    std::fs::write(&file, vec![b' '; (1 << 20) + 1]).unwrap();
    assert_refused(orb.string_to_object(&url), minor::BAD_SCHEME_SPECIFIC_PART, "more than a mebibyte");
}

// 8.5.1.
#[test]
fn orb_id_and_server_id_are_set_by_options() {
    let orb = init(&["-ORBid", "mine", "-ORBServerId", "that one"]);
    assert_eq!((orb.id(), orb.server_id()), ("mine", "that one"));
    assert_eq!(Orb::builder().build().unwrap().id(), "");
    let missing = Orb::init(["-ORBServerId".to_owned()]).unwrap_err();
    assert_eq!(missing, InitError::MissingValue("-ORBServerId".into()));
}

/// A corbaloc URL with a plain key of this server.
fn plain_key_url(server: &Server, rest: &str) -> String {
    format!("corbaloc:iiop:1.2@127.0.0.1:{}/{rest}", server.port())
}

#[test]
fn clients_wait_for_an_orb_that_accepts_later() {
    let server = Server::with(Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).accept_later());
    let url = plain_key_url(&server, "Probe");
    let orb = Orb::builder().build().unwrap();
    let object = orb.string_to_object(&url).unwrap();
    let called = in_background(move || Target::narrow(&object).unwrap().ping());
    // One that is not held has this answer soon: the object does not exist yet.
    let hurried = Orb::builder().request_timeout(Some(Duration::from_millis(100))).build().unwrap();
    let error = hurried.string_to_object(&url).unwrap().locate().unwrap_err();
    assert_eq!(error.kind(), SystemExceptionKind::Timeout, "{error}");
    server.orb.set_object_key_alias("Probe", &server.object).unwrap();
    server.orb.accept_connections();
    called.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
}

#[test]
fn a_plain_key_is_forwarded_to_its_object() {
    let (server, other) = (Server::start(), Server::start());
    let orb = Orb::builder().build().unwrap();
    assert_eq!(orb.string_to_object(&plain_key_url(&server, "Probe")).unwrap().locate().unwrap(), Located::Unknown);
    server.orb.set_object_key_alias("Probe", &server.object).unwrap();
    server.orb.set_object_key_alias("There/and back", &other.object).unwrap();
    for version in ["1.0", "1.1", "1.2"] {
        let orb = init(&["-ORBGiopVersion", version]);
        ping(orb.string_to_object(&plain_key_url(&server, "Probe")));
        ping(orb.string_to_object(&plain_key_url(&server, "There/and%20back")));
    }
    // Part 2, 9.4.5: a LocateRequest is answered with OBJECT_FORWARD.
    let located = orb.string_to_object(&plain_key_url(&server, "Probe")).unwrap().locate().unwrap();
    assert_eq!(located, Located::Forward(server.object.ior().clone()));
    // The same key with another object.
    server.orb.set_object_key_alias("Probe", &other.object).unwrap();
    let located = orb.string_to_object(&plain_key_url(&server, "Probe")).unwrap().locate().unwrap();
    assert_eq!(located, Located::Forward(other.object.ior().clone()));
    assert!(server.orb.remove_object_key_alias("Probe"));
    assert!(!server.orb.remove_object_key_alias("Probe"));
    let destroyed = orb.string_to_object(&plain_key_url(&server, "Probe")).unwrap();
    assert!(destroyed.non_existent().unwrap());
    server.client().ping().unwrap();
}

#[test]
fn a_one_way_to_a_plain_key_arrives_after_validate_connection() {
    let server = Server::start();
    server.orb.set_object_key_alias("Probe", &server.object).unwrap();
    let target = Target::unchecked_narrow(
        &Orb::builder().build().unwrap().string_to_object(&plain_key_url(&server, "Probe")).unwrap(),
    );
    target.as_object().validate_connection().unwrap();
    target.note(&[7]).unwrap();
    assert_eq!(target.count().unwrap(), 1);
}

#[test]
fn a_key_in_the_adapters_format_is_refused_as_plain_key() {
    let server = Server::start();
    for name in [&b""[..], &[1, 2, 3]] {
        let error = server.orb.set_object_key_alias(name, &server.object).unwrap_err();
        assert_eq!(error.kind(), SystemExceptionKind::BadParam);
    }
}

/// A naming context with a few fixed bindings.
struct FixedBindings {
    probe: ObjectRef,
    elsewhere: Mutex<Option<ObjectRef>>,
}

impl NamingContextServant for FixedBindings {
    fn resolve(&self, n: &[NameComponent]) -> Result<Option<ObjectRef>, ResolveError> {
        let name: Vec<(&str, &str)> = n.iter().map(|part| (&*part.id, &*part.kind)).collect();
        let rest_of_name = n[n.len() - 1..].to_vec();
        match name[..] {
            [("a", ""), ("b", "kind")] | [("a/b.c\\", "k.k")] | [("caf\u{e9}", "")] => Ok(Some(self.probe.clone())),
            [("nil", "")] => Ok(None),
            [("elsewhere", ""), ..] => {
                let cxt = self.elsewhere.lock().unwrap().clone();
                let cxt = cxt.map(|object| spandrel_orb_tests::cos_naming::NamingContext::unchecked_narrow(&object));
                Err(CannotProceed { cxt, rest_of_name: n[1..].to_vec() }.into())
            }
            [("bad", "")] => Err(NoName {}.into()),
            [("context", ""), ..] => Err(NotFound { why: NotFoundReason::NotContext, rest_of_name }.into()),
            [("fail", "")] => Err(SystemException::persist_store(7, spandrel::CompletionStatus::No).into()),
            _ => Err(NotFound { why: NotFoundReason::MissingNode, rest_of_name }.into()),
        }
    }
}

struct NamingServer {
    server: Server,
    elsewhere: Server,
}

impl NamingServer {
    fn start() -> Self {
        let (server, elsewhere) = (Server::start(), Server::start());
        let far = FixedBindings { probe: elsewhere.object.clone(), elsewhere: Mutex::default() };
        let far = elsewhere.poa.activate(NamingContextSkeleton::new(far)).unwrap();
        let near = FixedBindings { probe: server.object.clone(), elsewhere: Mutex::new(Some(far)) };
        let near = server.poa.activate(NamingContextSkeleton::new(near)).unwrap();
        for key in ["NameService", "Other"] {
            server.orb.set_object_key_alias(key, &near).unwrap();
        }
        Self { server, elsewhere }
    }

    fn url(&self, rest: &str) -> String {
        format!("corbaname:iiop:1.2@127.0.0.1:{}{rest}", self.server.port())
    }

    fn find(&self, rest: &str) -> Result<ObjectRef, SystemException> {
        Orb::builder().build().unwrap().string_to_object(&self.url(rest))
    }
}

// 2.5.3.2 and 2.4.
#[test]
fn corbaname_resolves_names_of_the_naming_service() {
    let names = NamingServer::start();
    ping(names.find("/NameService#a/b.kind"));
    ping(names.find("#a/b.kind"));
    ping(names.find("/Other#a/b.kind"));
    ping(names.find("#%61/b%2ekind"));
    ping(names.find(r"#a\/b\.c\\.k\.k"));
    ping(names.find("#a%5c/b%5c.c%5c%5c.k%5c.k"));
    let found = names.find("#a/b.kind").unwrap();
    assert!(found.is_equivalent(&names.server.object));
}

#[test]
fn corbaname_without_a_name_is_the_naming_context() {
    let names = NamingServer::start();
    for rest in ["", "#", "/NameService", "/NameService#"] {
        let context = names.find(rest).unwrap();
        assert!(context.is_a("IDL:omg.org/CosNaming/NamingContext:1.0").unwrap(), "{rest}");
    }
    // Resolving it contacts no server.
    Orb::builder().build().unwrap().string_to_object("corbaname::no-such-host.invalid:1/NameService").unwrap();
}

// 2.5.3.4, and the second example of 8.5.3.2.
#[test]
fn corbaname_can_be_combined_with_initial_references() {
    let names = NamingServer::start();
    let orb = init(&["-ORBInitRef", &format!("NameService={}", names.url(""))]);
    ping(orb.string_to_object("corbaname:rir:#a/b.kind"));
    ping(orb.string_to_object("corbaname:rir:/NameService#a/b.kind"));
    let orb = init(&["-ORBDefaultInitRef", &names.url("#a")]);
    ping(orb.resolve_initial_references("b.kind"));
    let orb = init(&["-ORBInitRef", &format!("Probe={}", names.url("#a/b.kind"))]);
    ping(orb.resolve_initial_references("Probe"));
    ping(orb.string_to_object("corbaloc:rir:/Probe"));
}

// 2.3.2: CannotProceed names a context that can continue the resolution.
#[test]
fn cannot_proceed_is_continued_at_the_context_that_it_names() {
    let names = NamingServer::start();
    let found = names.find("#elsewhere/a/b.kind").unwrap();
    assert!(found.is_equivalent(&names.elsewhere.object));
    assert_refused(names.find("#elsewhere/elsewhere/x"), minor::BAD_URL_OTHER, "cannot proceed");
    assert_refused(names.find("#elsewhere"), minor::BAD_URL_OTHER, "cannot proceed");
}

#[test]
fn naming_service_exceptions_are_described_in_the_error() {
    let names = NamingServer::start();
    assert_refused(
        names.find("#a/x.y"),
        minor::BAD_URL_OTHER,
        "does not find `a/x.y`: the name is not bound, from `x.y`",
    );
    assert_refused(names.find("#context/x"), minor::BAD_URL_OTHER, "not a naming context");
    assert_refused(names.find("#bad"), minor::BAD_URL_OTHER, "as an invalid name");
    assert_refused(names.find("#nil"), minor::BAD_URL_OTHER, "bound to nil");
    assert_eq!(names.find("#fail").unwrap_err().kind(), SystemExceptionKind::PersistStore);
    // The object is no naming context.
    names.server.orb.set_object_key_alias("Probe", &names.server.object).unwrap();
    assert_eq!(names.find("/Probe#a").unwrap_err().kind(), SystemExceptionKind::BadOperation);
}

#[test]
fn malformed_corbaname_urls_are_refused() {
    let orb = Orb::builder().build().unwrap();
    let malformed = minor::BAD_SCHEME_SPECIFIC_PART;
    assert_refused(orb.string_to_object("corbaname::host#a//b"), malformed, "a component is empty");
    assert_refused(orb.string_to_object("corbaname::host#a%"), malformed, "`%` at position 17 must be followed by two");
    assert_refused(orb.string_to_object("corbaname:#a"), minor::BAD_ADDRESS, "no address");
    assert_refused(orb.string_to_object("corbaname:bogus#a"), minor::BAD_ADDRESS, "names no protocol");
    assert_refused(orb.string_to_object("corbanym::host#a"), minor::BAD_SCHEME_NAME, "corbanym");
}

#[test]
fn the_builder_takes_initial_references() {
    let server = Server::start();
    let builder = OrbBuilder::default().init_ref("Probe", server.ior());
    ping(builder.build().unwrap().resolve_initial_references("Probe"));
}

#[test]
fn an_initial_reference_to_itself_is_refused() {
    let orb = Orb::builder().init_ref("A", " corbaloc:rir:/A").build().unwrap();
    orb.resolve_initial_references("A").unwrap_err();
}

#[test]
fn names_are_resolved_asynchronously() {
    let names = NamingServer::start();
    let orb = init(&["-ORBInitRef", &format!("NameService={}", names.url(""))]);
    let find = |text: String| block_on(orb.string_to_object_async(&text));
    for rest in ["/NameService#a/b.kind", "#elsewhere/a/b.kind"] {
        assert!(find(names.url(rest)).unwrap().is_equivalent(&names.find(rest).unwrap()), "{rest}");
    }
    ping(find("corbaname:rir:#a/b.kind".to_owned()));
    ping(find(names.server.ior()));
    ping(block_on(orb.resolve_initial_references_async("NameService")).and_then(|_| find(names.url("#a/b.kind"))));
    assert_refused(find(names.url("#nil")), minor::BAD_URL_OTHER, "bound to nil");
    assert_refused(find(names.url("#elsewhere")), minor::BAD_URL_OTHER, "cannot proceed");
    assert_eq!(find(names.url("#fail")).unwrap_err().kind(), SystemExceptionKind::PersistStore);
    assert_refused(find("corbaname:#a".to_owned()), minor::BAD_ADDRESS, "no address");
}

#[test]
fn a_name_is_resolved_without_blocking_the_caller() {
    let names = NamingServer::start();
    names.server.poa.the_poa_manager().hold_requests(WaitForCompletion::No).unwrap();
    let orb = Orb::builder().build().unwrap();
    let found = orb.string_to_object_async(&names.url("#a/b.kind"));
    names.server.poa.the_poa_manager().activate().unwrap();
    assert!(block_on(found).unwrap().is_equivalent(&names.server.object));
}

/// A servant of which `echo` returns the object id.
fn plain_servant() -> Arc<dyn Servant> {
    Arc::new(servant(|operation, call| match operation {
        "echo" => {
            let key = Current::new().object_id().map_err(|_| SystemException::internal(0, CompletionStatus::No))?;
            let key = String::from_utf8_lossy(&key).into_owned();
            call.reply(|out| out.str(&key))
        }
        "_is_a" => call.reply(|out| {
            out.bool(true);
            Ok(())
        }),
        _ => call.reply(|_| Ok(())),
    }))
}

#[test]
fn a_default_servant_serves_all_plain_keys() {
    let server = Server::start();
    let policies = [
        IdAssignmentPolicy::UserId.into(),
        IdUniquenessPolicy::MultipleId.into(),
        RequestProcessingPolicy::UseDefaultServant.into(),
        LifespanPolicy::Persistent.into(),
    ];
    let plain = server.poa.create_poa("plain", None, policies).unwrap();
    plain.set_servant(plain_servant()).unwrap();
    plain.the_poa_manager().activate().unwrap();
    let orb = Orb::builder().build().unwrap();
    let find = |rest: &str| orb.string_to_object(&plain_key_url(&server, rest)).unwrap();
    assert_eq!(find("Any").locate().unwrap(), Located::Unknown, "before the adapter serves plain keys");

    plain.serve_plain_keys().unwrap();
    for version in ["1.0", "1.2"] {
        let orb = init(&["-ORBGiopVersion", version]);
        for (rest, key) in [("Any", "Any"), ("dev/lab%201", "dev/lab 1"), ("%c3%a9", "\u{e9}")] {
            let object = orb.string_to_object(&plain_key_url(&server, rest)).unwrap();
            assert_eq!(Target::unchecked_narrow(&object).echo("").unwrap(), key);
        }
    }
    assert!(Target::narrow(&find("Other")).is_ok(), "the servant tells its interface");
    // An object that is active has its own servant, and an alias comes first.
    plain
        .activate_object_with_id(
            &ObjectId::from("Active"),
            Arc::new(servant(|_, call| call.reply(|out| out.str("own")))),
        )
        .unwrap();
    assert_eq!(Target::unchecked_narrow(&find("Active")).echo("").unwrap(), "own");
    server.orb.set_object_key_alias("Probe", &server.object).unwrap();
    assert_eq!(Target::narrow(&find("Probe")).unwrap().echo("of the alias").unwrap(), "of the alias");

    plain.destroy(EtherealizeObjects::No, WaitForCompletion::Yes).unwrap();
    assert_eq!(find("Any").locate().unwrap(), Located::Unknown, "the adapter is destroyed");
    assert!(matches!(server.poa.serve_plain_keys(), Err(PoaError::WrongPolicy { .. })), "it assigns its ids itself");
}
