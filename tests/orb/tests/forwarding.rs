//! Location forwarding in replies (CORBA 3.3 Part 2, 9.4.3.1, 9.4.6 and 9.6).

use spandrel::poa::{EtherealizeObjects, WaitForCompletion};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use spandrel::{
    CompletionStatus, ObjectRef, Orb, Poa, SystemException, SystemExceptionKind,
    cdr::GiopVersion,
    minor,
    poa::{
        Cookie, IdAssignmentPolicy, Incarnation, ObjectId, PoaManager, RequestProcessingPolicy, ServantLocator,
        ServantManager, ServantRetentionPolicy,
    },
    policy::Policy,
    server::Servant,
    types::{Ior, Located},
};
use spandrel_cdr::Limits;
use spandrel_giop::{LocateStatus, Message, ReplyHeader, ReplyStatus, ids};
use spandrel_message::MessageBlock;
use spandrel_orb_tests::{
    Probe, Server,
    probe::{Target, TargetSkeleton},
    scripted::{ReceivedRequest, ior_at, scripted, write_ior},
    support::{block_on, kind_and_completion},
    wiretap::{Wiretap, at_port},
};

const VERSIONS: [GiopVersion; 3] = [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2];

fn target(orb: &Orb, ior: &Ior) -> Target {
    Target::unchecked_narrow(&orb.reference(ior.clone()))
}

type Script = Box<dyn Fn(&ReceivedRequest) -> Vec<u8> + Send + Sync>;

/// The exceptions of a synchronous and of an asynchronous call.
#[track_caller]
fn exceptions_of_both_calls(target: impl Fn() -> Target) -> [SystemException; 2] {
    [target().ping().unwrap_err(), block_on(target().ping_async()).unwrap_err()]
}

#[test]
fn every_forward_status_is_followed_and_cached_in_every_version() {
    let server = Server::start();
    for version in VERSIONS {
        for status in [ReplyStatus::LocationForward, ReplyStatus::LocationForwardPerm] {
            if status == ReplyStatus::LocationForwardPerm && version < GiopVersion::V1_2 {
                continue;
            }
            let forwarded = server.object.ior().clone();
            let (port, received) = scripted(move |request| Some(request.forward(status, &forwarded)));
            let orb = Orb::builder().build().unwrap();
            let target = target(&orb, &ior_at(port, version, "key"));
            assert_eq!(target.add(1, 2).unwrap(), 3);
            assert_eq!(block_on(target.add_async(1, 3)).unwrap(), 4);
            assert_eq!(received.lock().unwrap().len(), 1, "GIOP {version} {status}: cached");
        }
    }
}

#[test]
fn giop_1_2_reply_statuses_are_refused_in_earlier_versions() {
    for version in [GiopVersion::V1_0, GiopVersion::V1_1] {
        for status in [ReplyStatus::LocationForwardPerm, ReplyStatus::NeedsAddressingMode] {
            let (port, _) = scripted(move |request| Some(request.forward(status, &ior_at(1, version, "key"))));
            let orb = Orb::builder().build().unwrap();
            for error in exceptions_of_both_calls(|| target(&orb, &ior_at(port, version, "key"))) {
                assert_eq!(error.kind(), SystemExceptionKind::CommFailure, "{error}");
            }
        }
    }
}

/// Answers with OBJECT_NOT_EXIST.
fn object_not_exist(request: &ReceivedRequest) -> Option<Vec<u8>> {
    let gone = SystemException::object_not_exist(0, CompletionStatus::No);
    Some(request.reply(ReplyStatus::SystemException, |out| gone.encode(out).unwrap()))
}

#[test]
fn a_temporary_forwarding_is_dropped_on_object_not_exist_and_a_permanent_one_kept() {
    let server = Server::start();
    for (status, requests) in [(ReplyStatus::LocationForward, 2), (ReplyStatus::LocationForwardPerm, 1)] {
        // The object exists at first, and then does not.
        let is_gone = Arc::new(AtomicBool::new(false));
        let gone = Arc::clone(&is_gone);
        let (new, _) = scripted(move |request| match gone.load(Ordering::SeqCst) {
            false => Some(request.reply(ReplyStatus::NoException, |out| out.i32(5))),
            true => object_not_exist(request),
        });
        let (new, last) = (ior_at(new, GiopVersion::V1_2, "key"), server.object.ior().clone());
        let gone = Arc::clone(&is_gone);
        let (old, received) = scripted(move |request| {
            let forwarded = if gone.load(Ordering::SeqCst) { &last } else { &new };
            Some(request.forward(status, forwarded))
        });
        let orb = Orb::builder().build().unwrap();
        let object = orb.reference(ior_at(old, GiopVersion::V1_2, "key"));
        let target = Target::unchecked_narrow(&object);
        assert_eq!(target.add(2, 3).unwrap(), 5);
        is_gone.store(true, Ordering::SeqCst);
        let outcome = target.add(2, 3);
        match status {
            ReplyStatus::LocationForward => assert_eq!(outcome.unwrap(), 5, "the original server forwards it again"),
            _ => assert_eq!(outcome.unwrap_err().kind(), SystemExceptionKind::ObjectNotExist),
        }
        assert_eq!(received.lock().unwrap().len(), requests);
        // A permanent forwarding applies to references of the object with other policies, too.
        let other = Target::unchecked_narrow(&object.with_timeout(Some(std::time::Duration::from_secs(20))));
        let outcome = block_on(other.add_async(2, 3));
        assert_eq!(outcome.is_ok(), status == ReplyStatus::LocationForward, "{outcome:?}");
        assert_eq!(received.lock().unwrap().len(), 2 * requests - 1, "{status}");
    }
}

/// A permanent forwarding may be followed by temporary ones, which are forgotten without it.
#[test]
fn dropping_a_temporary_forwarding_keeps_the_permanent_one_before_it() {
    let order_log = Arc::new(Mutex::new(Vec::new()));
    let order = Arc::clone(&order_log);
    let (third, _) = scripted(move |request| {
        order.lock().unwrap().push("third");
        object_not_exist(request)
    });
    let third = ior_at(third, GiopVersion::V1_2, "third");
    let (order, calls) = (Arc::clone(&order_log), AtomicUsize::new(0));
    let (second, _) = scripted(move |request| {
        order.lock().unwrap().push("second");
        match calls.fetch_add(1, Ordering::SeqCst) {
            0 => Some(request.forward(ReplyStatus::LocationForward, &third)),
            _ => Some(request.reply(ReplyStatus::NoException, |out| out.i32(5))),
        }
    });
    let second = ior_at(second, GiopVersion::V1_2, "second");
    let order = Arc::clone(&order_log);
    let (first, _) = scripted(move |request| {
        order.lock().unwrap().push("first");
        Some(request.forward(ReplyStatus::LocationForwardPerm, &second))
    });
    let orb = Orb::builder().build().unwrap();
    let target = target(&orb, &ior_at(first, GiopVersion::V1_2, "first"));
    assert_eq!(target.add(2, 3).unwrap(), 5);
    assert_eq!(*order_log.lock().unwrap(), ["first", "second", "third", "second"]);
}

#[test]
fn a_circle_of_forwardings_is_detected_and_described() {
    let ports = Arc::new(Mutex::new([0; 2]));
    let servers = [0, 1].map(|nth| {
        let ports = Arc::clone(&ports);
        scripted(move |request| {
            let port = ports.lock().unwrap()[1 - nth];
            let to = ior_at(port, GiopVersion::V1_2, if nth == 0 { "B" } else { "A" });
            Some(request.forward(ReplyStatus::LocationForward, &to))
        })
    });
    let [a, b] = [servers[0].0, servers[1].0];
    *ports.lock().unwrap() = [a, b];
    let orb = Orb::builder().build().unwrap();
    for error in exceptions_of_both_calls(|| target(&orb, &ior_at(a, GiopVersion::V1_2, "A"))) {
        assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Transient, CompletionStatus::No), "{error}");
        assert_eq!(error.minor(), ids::TRANSIENT_FORWARD_LOOP);
        let chain = format!("127.0.0.1:{a}/A → 127.0.0.1:{b}/B → 127.0.0.1:{a}/A");
        assert!(error.to_string().contains(&chain), "{error}");
    }
    let requests: usize = servers.iter().map(|(_, received)| received.lock().unwrap().len()).sum();
    assert!(requests <= 10, "{requests} requests for two calls");
}

#[test]
fn endless_forwardings_end_after_16() {
    let port = Arc::new(AtomicUsize::new(0));
    let (own, count) = (Arc::clone(&port), AtomicUsize::new(0));
    let (at, received) = scripted(move |request| {
        let key = format!("key {}", count.fetch_add(1, Ordering::SeqCst));
        let port = u16::try_from(own.load(Ordering::SeqCst)).unwrap();
        Some(request.forward(ReplyStatus::LocationForwardPerm, &ior_at(port, GiopVersion::V1_2, &key)))
    });
    port.store(at.into(), Ordering::SeqCst);
    let orb = Orb::builder().build().unwrap();
    for error in exceptions_of_both_calls(|| target(&orb, &ior_at(at, GiopVersion::V1_2, "key"))) {
        assert_eq!(error.minor(), ids::TRANSIENT_FORWARD_LOOP, "{error}");
        assert!(error.to_string().contains("forwarded 16 times in a row"), "{error}");
    }
    assert_eq!(received.lock().unwrap().len(), 2 * 17);
}

#[test]
fn every_locate_reply_status_is_returned() {
    let forwarded = ior_at(7, GiopVersion::V1_2, "there");
    let forwards = [LocateStatus::ObjectForward, LocateStatus::ObjectForwardPerm];
    let orb = Orb::builder().build().unwrap();
    let locate_with = |version, status, answer: Script| {
        let (port, _) = scripted(move |request| Some(answer(request)));
        let object: ObjectRef = orb.reference(ior_at(port, version, "key"));
        (object.locate(), status)
    };
    for version in VERSIONS {
        for status in forwards {
            if status == LocateStatus::ObjectForwardPerm && version < GiopVersion::V1_2 {
                continue;
            }
            let to = forwarded.clone();
            let (answer, _) = locate_with(
                version,
                status,
                Box::new(move |request| request.located(status, |out| write_ior(&to, out))),
            );
            let located = match status {
                LocateStatus::ObjectForward => Located::Forward(forwarded.clone()),
                _ => Located::ForwardPermanently(forwarded.clone()),
            };
            assert_eq!(answer.unwrap(), located, "GIOP {version} {status}");
        }
        let (answer, _) = locate_with(
            version,
            LocateStatus::UnknownObject,
            Box::new(|request| request.located(LocateStatus::UnknownObject, |_| {})),
        );
        assert_eq!(answer.unwrap(), Located::Unknown);
    }
    let transient = SystemException::transient(minor::NO_USABLE_PROFILE, CompletionStatus::No);
    let raised = transient.clone();
    let status = LocateStatus::LocSystemException;
    let answer = Box::new(move |request: &ReceivedRequest| request.located(status, |out| raised.encode(out).unwrap()));
    assert_eq!(locate_with(GiopVersion::V1_2, status, answer).0.unwrap_err(), transient);
}

/// A servant's permanent forwarding is encoded according to the client's version.
#[test]
fn a_servants_permanent_forwarding_is_followed_in_every_version() {
    use spandrel::server::{Replied, Servant, ServerCall};

    struct ForwardingServant(ObjectRef);

    impl Servant for ForwardingServant {
        fn repository_id(&self) -> &'static str {
            "IDL:Probe/Target:1.0"
        }

        fn is_a(&self, repository_id: &str) -> bool {
            repository_id == "IDL:Probe/Target:1.0"
        }

        fn dispatch(&self, _operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
            call.forward_permanently(&self.0)
        }
    }

    let (new, old) = (Server::start(), Server::start());
    let object = old.poa.activate(ForwardingServant(old.orb.reference(new.object.ior().clone()))).unwrap();
    for version in VERSIONS {
        let orb = Orb::builder().giop_version(version).build().unwrap();
        let target = target(&orb, object.ior());
        assert_eq!(target.add(1, 2).unwrap(), 3, "GIOP {version}");
        assert_eq!(block_on(target.add_async(1, 2)).unwrap(), 3, "GIOP {version}");
    }
}

/// A servant locator that forwards each request, permanently or not.
struct ForwardingLocator(ObjectRef, bool);

impl ServantLocator for ForwardingLocator {
    fn preinvoke(&self, _: &ObjectId, _: &Poa, _: &str) -> Result<(Arc<dyn Servant>, Cookie), Incarnation> {
        let to = self.0.clone();
        Err(if self.1 { Incarnation::ForwardPermanently(to) } else { Incarnation::ForwardRequest(to) })
    }

    fn postinvoke(
        &self,
        _: &ObjectId,
        _: &Poa,
        _: &str,
        _: Cookie,
        _: Arc<dyn Servant>,
    ) -> Result<(), SystemException> {
        panic!("no servant was found");
    }
}

/// An object of an adapter with such a servant locator.
fn forwarded_object(server: &Server, name: &str, manager: ForwardingLocator) -> ObjectRef {
    let policies = [
        RequestProcessingPolicy::UseServantManager.into(),
        ServantRetentionPolicy::NonRetain.into(),
        Policy::from(IdAssignmentPolicy::UserId),
    ];
    let poa = server.poa.create_poa(name, None, policies).unwrap();
    poa.set_servant_manager(ServantManager::Locator(Arc::new(manager))).unwrap();
    poa.the_poa_manager().activate().unwrap();
    poa.create_reference_with_id(&"any".into(), "IDL:Probe/Target:1.0").unwrap()
}

/// The status of the first reply.
fn first_status(replies: &[Vec<u8>]) -> ReplyStatus {
    let message = Message::whole(MessageBlock::from(&*replies[0])).unwrap();
    ReplyHeader::decode(&mut message.decoder(Limits::default())).unwrap().status
}

/// The same for forwardings by adapters and servant managers, and for LocateRequests.
#[test]
fn permanent_forwarding_is_sent_to_giop_1_2_clients_only() {
    let (new, old) = (Server::start(), Server::start());
    let tap = Wiretap::before(&old);
    let forwarded = || old.orb.reference(new.object.ior().clone());
    for is_permanent in [false, true] {
        let moved = old.poa.activate(TargetSkeleton::new(Probe::new(&old.orb))).unwrap();
        match is_permanent {
            true => old.poa.forward_permanently(&moved, forwarded()).unwrap(),
            false => old.poa.forward(&moved, forwarded()).unwrap(),
        }
        let managed =
            forwarded_object(&old, &format!("forwarding {is_permanent}"), ForwardingLocator(forwarded(), is_permanent));
        for version in VERSIONS {
            let is_permanent_reply = is_permanent && version == GiopVersion::V1_2;
            let orb = Orb::builder().giop_version(version).build().unwrap();
            for object in [&moved, &managed] {
                _ = tap.take_replies();
                let target = target(&orb, &at_port(object.ior(), tap.port()));
                assert_eq!(target.add(1, 2).unwrap(), 3, "GIOP {version}");
                let expected =
                    if is_permanent_reply { ReplyStatus::LocationForwardPerm } else { ReplyStatus::LocationForward };
                assert_eq!(first_status(&tap.take_replies()), expected, "GIOP {version}");
            }
            let located = if is_permanent_reply { Located::ForwardPermanently } else { Located::Forward };
            let object = orb.reference(at_port(moved.ior(), tap.port()));
            assert_eq!(object.locate().unwrap(), located(new.object.ior().clone()), "GIOP {version}");
            assert!(object.validate_connection().unwrap().0);
        }
        assert_eq!(
            old.orb.reference(moved.ior().clone()).locate().unwrap(),
            match is_permanent {
                true => Located::ForwardPermanently(new.object.ior().clone()),
                false => Located::Forward(new.object.ior().clone()),
            }
        );
    }
}

/// As of GIOP 1.2, a LocateReply names the exception with which a request would be refused (9.4.6.1).
#[test]
fn a_locate_reply_has_the_exception_of_a_refusing_adapter() {
    let server = Server::start();
    let manager = server.poa.the_poa_manager();
    type Change = fn(&PoaManager);
    let states: [(Change, Option<SystemExceptionKind>); 3] = [
        // Held requests are not refused.
        (|manager| manager.hold_requests(WaitForCompletion::No).unwrap(), None),
        (|manager| manager.discard_requests(WaitForCompletion::No).unwrap(), Some(SystemExceptionKind::Transient)),
        (
            |manager| manager.deactivate(EtherealizeObjects::No, WaitForCompletion::No).unwrap(),
            Some(SystemExceptionKind::ObjAdapter),
        ),
    ];
    for (change, refusal) in states {
        change(&manager);
        for version in VERSIONS {
            let orb = Orb::builder().giop_version(version).build().unwrap();
            let located = orb.reference(server.object.ior().clone()).locate();
            match refusal.filter(|_| version == GiopVersion::V1_2) {
                None => assert_eq!(located.unwrap(), Located::Here, "GIOP {version}"),
                Some(kind) => assert_eq!(kind_and_completion(&located.unwrap_err()), (kind, CompletionStatus::No)),
            }
        }
    }
}

/// A malformed forwarding ends the call with an exception.
#[test]
fn malformed_forwardings_end_the_call() {
    let sound = ior_at(7, GiopVersion::V1_2, "there");
    let mut octets = spandrel_cdr::Encoder::new(spandrel_cdr::Wire::default());
    write_ior(&sound, &mut octets);
    let sound = octets.to_vec();
    let many = {
        let mut out = spandrel_cdr::Encoder::new(spandrel_cdr::Wire::default());
        let profiles = vec![spandrel_cdr::TaggedProfile { tag: 0x7777, data: vec![1; 9] }; 20_000];
        write_ior(&Ior { type_id: "x".repeat(100_000), profiles }, &mut out);
        out.to_vec()
    };
    let nil = vec![1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let false_length = [&[1, 0, 0, 0, 0, 0, 0, 0][..], &u32::MAX.to_le_bytes()].concat();
    let cut = (0..sound.len()).map(|at| sound[..at].to_vec());
    for body in cut.chain([nil, false_length, many]) {
        for status in [ReplyStatus::LocationForward, ReplyStatus::LocationForwardPerm] {
            let octets = body.clone();
            let (port, requests) = scripted(move |request| Some(request.reply(status, |out| out.octets(&octets))));
            let orb = Orb::builder().byte_order(spandrel::cdr::ByteOrder::Little).build().unwrap();
            for error in exceptions_of_both_calls(|| target(&orb, &ior_at(port, GiopVersion::V1_2, "key"))) {
                let kinds = [SystemExceptionKind::Marshal, SystemExceptionKind::InvObjref];
                assert!(kinds.contains(&error.kind()), "{error}");
                assert_eq!(error.completed(), CompletionStatus::No, "{error}");
            }
            assert_eq!(requests.lock().unwrap().len(), 2, "neither request is repeated");
        }
    }
}
