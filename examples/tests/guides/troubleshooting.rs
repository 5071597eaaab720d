//! Each symptom of docs/troubleshooting.md, made: the message is that of the page.

use std::{error::Error, net::TcpListener, sync::Arc, time::Duration};

use spandrel::{
    Endpoint, ObjectRef, Orb, Poa, SystemException, SystemExceptionKind,
    authorization::{Authorizer, Policy},
    options::Site,
    poa::{IdAssignmentPolicy, RequestProcessingPolicy, ServantRetentionPolicy},
    ssliop::{ClientVerification, pem},
    types::{Any, Interface as _},
};
use spandrel_test_support::{
    certificates::{Authority, Identity},
    free_port,
};

use super::{BuyError, Fixture, Market, MarketServant, MarketSkeleton, Shop, Trade, idl::exchange::Feed};

type Made = Result<String, Box<dyn Error>>;
/// The heading on the page, and what makes the symptom.
type Symptom = (&'static str, fn() -> Made);

/// The symptoms in the order of the page.
const SYMPTOMS: [Symptom; 22] = [
    ("The server does not run", the_server_does_not_run),
    ("The object is unknown to its server", the_object_is_unknown),
    ("A call waits, and ends at its time limit", the_manager_holds),
    ("The object is of another type", the_object_is_of_another_type),
    ("The operation is unknown to the object", the_operation_is_unknown),
    ("The reference cannot be read", the_reference_is_malformed),
    ("No initial reference", no_initial_reference),
    ("The option is unknown", the_option_is_unknown),
    ("The option does not take the value", the_value_is_wrong),
    ("The site cannot be used", the_site_cannot_be_used),
    ("The address is in use", the_address_is_in_use),
    ("A file of TLS cannot be read", a_file_of_tls_is_missing),
    ("The reference offers TLS only", the_reference_offers_tls_only),
    ("The handshake of TLS fails", the_handshake_fails),
    ("The policy denies the call", the_policy_denies),
    ("The servant has panicked", the_servant_panics),
    ("The reason stays at the server", the_reason_stays_at_the_server),
    ("The text cannot be sent", the_text_cannot_be_sent),
    ("The value of an `any` is of another type", the_any_has_another_type),
    ("Policies of an adapter clash", policies_clash),
    ("The name of an adapter, or the id of an object, is in use", the_id_is_in_use),
    ("The ORB has been shut down", the_orb_is_shut_down),
];

#[test]
fn symptoms_have_the_messages_of_the_page() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/troubleshooting.md")).unwrap();
    let mut sections = page.split("\n## ").skip(1);
    let mut wrong = Vec::new();
    for (title, make) in SYMPTOMS {
        let message = make().unwrap_or_else(|error| panic!("{title}: {error}"));
        let section = sections.next().unwrap_or_default();
        let shown = section.split("```text\n").nth(1).and_then(|rest| rest.split("\n```").next()).unwrap_or_default();
        let is_complete = ["**Cause.** ", "**Remedy.** "].into_iter().all(|part| section.contains(part));
        if section.lines().next() != Some(title) || !is_complete || !is_like(&message, shown) {
            wrong.push(format!("## {title}\n{message}\n---- on the page:\n{shown}\n"));
        }
    }
    assert!(wrong.is_empty(), "sections that are missing, or have other messages:\n{}", wrong.join("\n"));
    assert_eq!(sections.next(), None, "a section without a test");
}

/// Whether a text has the parts between the `…` of a pattern, in this order, the first and the last at its ends.
fn is_like(text: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.is_empty() || pattern.ends_with('…')
}

/// The message of an error as `main` prints it, without the causes.
fn message<T>(outcome: Result<T, impl Error>) -> Made {
    outcome.err().map(|error| error.to_string()).ok_or_else(|| "no error".into())
}

/// The message, and those of the causes below it.
fn message_with_causes<T>(outcome: Result<T, impl Error>) -> Made {
    let Err(error) = outcome else { return Err("no error".into()) };
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        text += &format!("\n  cause: {error}");
        cause = error.source();
    }
    Ok(text)
}

/// A market at this URL.
fn at(orb: &Orb, url: &str) -> Result<Market, SystemException> {
    Ok(Market::unchecked_narrow(&orb.string_to_object(url)?))
}

/// The reference of the fixture's object with another type.
fn retyped(fixture: &Fixture, object: &ObjectRef, id: &str) -> ObjectRef {
    let mut ior = object.ior().clone();
    ior.type_id = id.into();
    fixture.client.string_to_object(&spandrel::types::ior_to_string(&ior)).unwrap()
}

fn the_server_does_not_run() -> Made {
    let orb = Orb::builder().build()?;
    message_with_causes(at(&orb, &format!("corbaloc::127.0.0.1:{}/gold", free_port()))?.good())
}

fn the_object_is_unknown() -> Made {
    let fixture = Fixture::new();
    let (host, port) = fixture.server.listen()?.remove(0);
    message(at(&fixture.client, &format!("corbaloc::{host}:{port}/copper"))?.good())
}

fn the_manager_holds() -> Made {
    let server = Orb::builder().build()?;
    let poa = Poa::root(&server)?.create_poa("markets", None, [])?;
    let object = poa.activate(MarketSkeleton::new(Shop::default()))?;
    let client = Orb::builder().request_timeout(Some(Duration::from_millis(200))).build()?;
    let waits = message(at(&client, &object.to_string())?.good());
    poa.the_poa_manager().activate()?;
    server.shutdown()?;
    waits
}

fn the_object_is_of_another_type() -> Made {
    let fixture = Fixture::new();
    let object = retyped(&fixture, fixture.market.as_object(), "");
    message(object.narrow::<Feed>())
}

fn the_operation_is_unknown() -> Made {
    let fixture = Fixture::new();
    let feed = Feed::unchecked_narrow(fixture.market.as_object());
    message(feed.subscribe(None))
}

fn the_reference_is_malformed() -> Made {
    message(Orb::builder().build()?.string_to_object("corbalok::127.0.0.1/gold"))
}

fn no_initial_reference() -> Made {
    message(Orb::builder().build()?.resolve_initial_references("NameService"))
}

fn the_option_is_unknown() -> Made {
    message(Orb::init(["-ORBRequestTimeOut", "500"].map(String::from)))
}

fn the_value_is_wrong() -> Made {
    message(Orb::init(["-ORBRequestTimeout", "5s"].map(String::from)))
}

fn the_site_cannot_be_used() -> Made {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("spandrel.toml");
    std::fs::write(&file, "[sites.plant]\ncertificate = \"plant.pem\"\n")?;
    message(Site::read(&file, "plant"))
}

fn the_address_is_in_use() -> Made {
    let taken = TcpListener::bind("127.0.0.1:0")?;
    let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", taken.local_addr()?.port())).build()?;
    Poa::root(&orb)?;
    message_with_causes(orb.listen())
}

fn ssliop() -> spandrel::ssliop::Ssliop {
    spandrel::ssliop::Ssliop::new(Arc::new(rustls::crypto::ring::default_provider()))
}

fn a_file_of_tls_is_missing() -> Made {
    message_with_causes(Orb::builder().protocol(ssliop()).option("-ORBSSLCA", "/nowhere/ca.pem"))
}

fn the_reference_offers_tls_only() -> Made {
    let reader = Orb::builder().protocol(ssliop()).build()?;
    let object = reader.string_to_object("corbaloc:ssliop:127.0.0.1:2809/gold")?.to_string();
    message_with_causes(at(&Orb::builder().build()?, &object)?.good())
}

fn the_handshake_fails() -> Made {
    let authority = Authority::new("an authority");
    let Identity { chain, key } = authority.issue("127.0.0.1");
    let trusting = || ssliop().trust(pem::authorities(authority.pem().as_bytes()).unwrap());
    let secure = trusting()
        .identity(pem::certificates(chain.as_bytes())?, pem::private_key(key.as_bytes())?)
        .verify_clients(ClientVerification::Required);
    let server = Orb::builder().protocol(secure).listen("ssliop://127.0.0.1:0".parse()?).build()?;
    let object = Poa::root(&server)?.activate(MarketSkeleton::new(Shop::default()))?;
    let client = Orb::builder().protocol(trusting()).build()?;
    let rejected = message_with_causes(at(&client, &object.to_string())?.good());
    server.shutdown()?;
    rejected
}

fn the_policy_denies() -> Made {
    let policy: Policy = "[[rule]]\naction = \"allow\"\nidentity = \"cn:teller\"\n".parse()?;
    let server = Authorizer::new(policy).install(Orb::builder())?.build()?;
    let object = Poa::root(&server)?.activate(MarketSkeleton::new(Shop::default()))?;
    let denied = message(at(&Orb::builder().build()?, &object.to_string())?.good());
    server.shutdown()?;
    denied
}

struct Broken;

impl MarketServant for Broken {
    fn good(&self) -> Result<String, SystemException> {
        panic!("it is broken")
    }

    fn last(&self) -> Result<Trade, SystemException> {
        Err(SystemException::raised(SystemExceptionKind::PersistStore, "/var/lib/market: No space left on device"))
    }

    fn buy(&self, _: u32, _: i64) -> Result<(), BuyError> {
        Ok(())
    }
}

fn the_servant_panics() -> Made {
    let server = Orb::builder().build()?;
    let object = Poa::root(&server)?.activate(MarketSkeleton::new(Broken))?;
    let panicked = message(at(&Orb::builder().build()?, &object.to_string())?.good());
    server.shutdown()?;
    panicked
}

fn the_reason_stays_at_the_server() -> Made {
    let server = Orb::builder().build()?;
    let object = Poa::root(&server)?.activate(MarketSkeleton::new(Broken))?;
    let failed = message(at(&Orb::builder().build()?, &object.to_string())?.last());
    server.shutdown()?;
    failed
}

fn the_text_cannot_be_sent() -> Made {
    let fixture = Fixture::new();
    let latin = ["-ORBNativeCharCodeSet", "ISO-8859-1", "-ORBConversionCodeSets", "none"].map(String::from);
    let server = Orb::init(latin)?;
    let servant = MarketSkeleton::new(Shop(std::sync::Mutex::new(Trade { good: "5 €".into(), ..Trade::default() })));
    let object = Poa::root(&server)?.activate(servant)?;
    let text = message(at(&fixture.client, &object.to_string())?.good());
    server.shutdown()?;
    text
}

fn the_any_has_another_type() -> Made {
    message(Any::new("gold".to_owned())?.extract::<i32>())
}

fn policies_clash() -> Made {
    let orb = Orb::builder().build()?;
    let policies = [ServantRetentionPolicy::NonRetain.into(), RequestProcessingPolicy::UseActiveObjectMapOnly.into()];
    message(Poa::root(&orb)?.create_poa("markets", None, policies))
}

fn the_id_is_in_use() -> Made {
    let orb = Orb::builder().build()?;
    let poa = Poa::root(&orb)?.create_poa("markets", None, [IdAssignmentPolicy::UserId.into()])?;
    assert!(Poa::root(&orb)?.create_poa("markets", None, []).is_err());
    let activate = || poa.activate_object_with_id(&"gold".into(), Arc::new(MarketSkeleton::new(Shop::default())));
    activate()?;
    message(activate())
}

fn the_orb_is_shut_down() -> Made {
    let fixture = Fixture::new();
    fixture.client.shutdown()?;
    message(fixture.market.good())
}
