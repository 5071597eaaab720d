//! ORBs without optional parts (`OrbBuilder::bare`), and parts that are plugged in one by one.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use spandrel::{
    CompletionStatus, OrbBuilder, SystemExceptionKind,
    interception::{ClientRequestInfo, ClientRequestInterceptor, Interceptor, Interruption},
    policy::{RequestEndTimePolicy, SetOverrideType},
};
use spandrel_orb_tests::{Server, probe::Target, support::kind_and_completion};

const LOCATION: &str = "corbaloc:iiop:127.0.0.1:1/key";

#[test]
fn a_bare_client_calls_by_iiop() {
    let server = Server::start();
    assert_eq!(server.client_with(OrbBuilder::bare()).add(1, 2).unwrap(), 3);
}

#[test]
fn corbaloc_needs_the_url_forms() {
    let bare = OrbBuilder::bare().build().unwrap();
    let refused = bare.string_to_object(LOCATION).unwrap_err();
    assert_eq!(refused.kind(), SystemExceptionKind::BadParam, "{refused}");
    assert!(OrbBuilder::bare().urls().build().unwrap().string_to_object(LOCATION).is_ok());
}

#[test]
fn a_bare_client_obeys_policies_once_they_are_set() {
    let server = Server::start();
    let target = server.client_with(OrbBuilder::bare());
    target.ping().unwrap();
    let passed = SystemTime::now() - Duration::from_secs(1);
    let late = target
        .as_object()
        .set_policy_overrides(&[RequestEndTimePolicy(passed).into()], SetOverrideType::AddOverride)
        .unwrap();
    let refused = Target::unchecked_narrow(&late).ping().unwrap_err();
    assert_eq!(kind_and_completion(&refused), (SystemExceptionKind::Timeout, CompletionStatus::No), "{refused}");
    target.ping().unwrap();
}

struct Counting(Arc<AtomicUsize>);

impl Interceptor for Counting {}

impl ClientRequestInterceptor for Counting {
    fn send_request(&self, _: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

#[test]
fn a_client_interceptor_is_plugged_in_by_its_registration() {
    let (server, sent) = (Server::start(), Arc::new(AtomicUsize::new(0)));
    let builder = OrbBuilder::bare().client_request_interceptor(Counting(Arc::clone(&sent))).unwrap();
    let target = server.client_with(builder);
    target.ping().unwrap();
    assert_eq!((target.add(1, 2).unwrap(), sent.load(Ordering::Relaxed)), (3, 2));
}
