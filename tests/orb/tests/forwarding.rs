//! Replies that send a call elsewhere (CORBA 3.3 Part 2, 9.4.3.1, 9.4.6 and 9.6).

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use spandrel::{
    CompletionStatus, GiopVersion, Ior, Located, ObjectRef, Orb, Poa, Policy, Servant, SystemException,
    SystemExceptionKind, minor,
    poa::{
        Cookie, IdAssignmentPolicy, Incarnation, ObjectId, PoaManager, RequestProcessingPolicy, ServantLocator,
        ServantManager, ServantRetentionPolicy,
    },
};
use spandrel_cdr::Limits;
use spandrel_giop::{LocateStatus, Message, ReplyHeader, ReplyStatus, ids};
use spandrel_message::MessageBlock;
use spandrel_orb_tests::{
    Probe, Server,
    probe::{Target, TargetSkeleton},
    scripted::{Heard, ior_at, scripted, write_ior},
    support::{block_on, kind_and_completion},
    wiretap::{Wiretap, at_port},
};

const VERSIONS: [GiopVersion; 3] = [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2];

fn target(orb: &Orb, ior: &Ior) -> Target {
    Target::unchecked_narrow(&orb.reference(ior.clone()))
}

type Script = Box<dyn Fn(&Heard) -> Vec<u8> + Send + Sync>;

/// Both kinds of call.
#[track_caller]
fn both_fail(target: impl Fn() -> Target) -> [SystemException; 2] {
    [target().ping().unwrap_err(), block_on(target().ping_async()).unwrap_err()]
}

#[test]
fn all_that_lead_elsewhere_are_followed_in_every_version() {
    let server = Server::start();
    for version in VERSIONS {
        for status in [ReplyStatus::LocationForward, ReplyStatus::LocationForwardPerm] {
            if status == ReplyStatus::LocationForwardPerm && version < GiopVersion::V1_2 {
                continue;
            }
            let there = server.object.ior().clone();
            let (port, said) = scripted(move |heard| Some(heard.forward(status, &there)));
            let orb = Orb::builder().build().unwrap();
            let target = target(&orb, &ior_at(port, version, "key"));
            assert_eq!(target.add(1, 2).unwrap(), 3);
            assert_eq!(block_on(target.add_async(1, 3)).unwrap(), 4);
            assert_eq!(said.lock().unwrap().len(), 1, "GIOP {version} {status}: remembered");
        }
    }
}

#[test]
fn statuses_of_later_versions_mean_nothing_in_earlier_ones() {
    for version in [GiopVersion::V1_0, GiopVersion::V1_1] {
        for status in [ReplyStatus::LocationForwardPerm, ReplyStatus::NeedsAddressingMode] {
            let (port, _) = scripted(move |heard| Some(heard.forward(status, &ior_at(1, version, "key"))));
            let orb = Orb::builder().build().unwrap();
            for error in both_fail(|| target(&orb, &ior_at(port, version, "key"))) {
                assert_eq!(error.kind(), SystemExceptionKind::CommFailure, "{error}");
            }
        }
    }
}

/// Ends the connection of whoever asks, or says that the object is no more.
fn lost(heard: &Heard) -> Option<Vec<u8>> {
    let gone = SystemException::object_not_exist(0, CompletionStatus::No);
    Some(heard.reply(ReplyStatus::SystemException, |out| gone.encode(out).unwrap()))
}

#[test]
fn a_temporary_forwarding_is_forgotten_and_a_permanent_one_is_kept() {
    let server = Server::start();
    for (status, asked) in [(ReplyStatus::LocationForward, 2), (ReplyStatus::LocationForwardPerm, 1)] {
        // The object is there at first, and then no more.
        let is_gone = Arc::new(AtomicBool::new(false));
        let gone = Arc::clone(&is_gone);
        let (new, _) = scripted(move |heard| match gone.load(Ordering::SeqCst) {
            false => Some(heard.reply(ReplyStatus::NoException, |out| out.i32(5))),
            true => lost(heard),
        });
        let (new, last) = (ior_at(new, GiopVersion::V1_2, "key"), server.object.ior().clone());
        let gone = Arc::clone(&is_gone);
        let (old, said) = scripted(move |heard| {
            let there = if gone.load(Ordering::SeqCst) { &last } else { &new };
            Some(heard.forward(status, there))
        });
        let orb = Orb::builder().build().unwrap();
        let object = orb.reference(ior_at(old, GiopVersion::V1_2, "key"));
        let target = Target::unchecked_narrow(&object);
        assert_eq!(target.add(2, 3).unwrap(), 5);
        is_gone.store(true, Ordering::SeqCst);
        let outcome = target.add(2, 3);
        match status {
            ReplyStatus::LocationForward => assert_eq!(outcome.unwrap(), 5, "its home knows where it is now"),
            _ => assert_eq!(outcome.unwrap_err().kind(), SystemExceptionKind::ObjectNotExist),
        }
        assert_eq!(said.lock().unwrap().len(), asked);
        // The same object with other policies knows what was said for good.
        let other = Target::unchecked_narrow(&object.with_timeout(Some(std::time::Duration::from_secs(20))));
        let outcome = block_on(other.add_async(2, 3));
        assert_eq!(outcome.is_ok(), status == ReplyStatus::LocationForward, "{outcome:?}");
        assert_eq!(said.lock().unwrap().len(), 2 * asked - 1, "{status}");
    }
}

/// A permanent forwarding may be followed by temporary ones, which are forgotten without it.
#[test]
fn what_is_forgotten_leaves_what_is_kept() {
    let good = Arc::new(Mutex::new(Vec::new()));
    let order = Arc::clone(&good);
    let (third, _) = scripted(move |heard| {
        order.lock().unwrap().push("third");
        lost(heard)
    });
    let third = ior_at(third, GiopVersion::V1_2, "third");
    let (order, calls) = (Arc::clone(&good), AtomicUsize::new(0));
    let (second, _) = scripted(move |heard| {
        order.lock().unwrap().push("second");
        match calls.fetch_add(1, Ordering::SeqCst) {
            0 => Some(heard.forward(ReplyStatus::LocationForward, &third)),
            _ => Some(heard.reply(ReplyStatus::NoException, |out| out.i32(5))),
        }
    });
    let second = ior_at(second, GiopVersion::V1_2, "second");
    let order = Arc::clone(&good);
    let (first, _) = scripted(move |heard| {
        order.lock().unwrap().push("first");
        Some(heard.forward(ReplyStatus::LocationForwardPerm, &second))
    });
    let orb = Orb::builder().build().unwrap();
    let target = target(&orb, &ior_at(first, GiopVersion::V1_2, "first"));
    assert_eq!(target.add(2, 3).unwrap(), 5);
    assert_eq!(*good.lock().unwrap(), ["first", "second", "third", "second"]);
}

#[test]
fn a_circle_is_found_early_and_told() {
    let ports = Arc::new(Mutex::new([0; 2]));
    let servers = [0, 1].map(|nth| {
        let ports = Arc::clone(&ports);
        scripted(move |heard| {
            let port = ports.lock().unwrap()[1 - nth];
            let to = ior_at(port, GiopVersion::V1_2, if nth == 0 { "B" } else { "A" });
            Some(heard.forward(ReplyStatus::LocationForward, &to))
        })
    });
    let [a, b] = [servers[0].0, servers[1].0];
    *ports.lock().unwrap() = [a, b];
    let orb = Orb::builder().build().unwrap();
    for error in both_fail(|| target(&orb, &ior_at(a, GiopVersion::V1_2, "A"))) {
        assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Transient, CompletionStatus::No), "{error}");
        assert_eq!(error.minor(), ids::TRANSIENT_FORWARD_LOOP);
        let chain = format!("127.0.0.1:{a}/A → 127.0.0.1:{b}/B → 127.0.0.1:{a}/A");
        assert!(error.to_string().contains(&chain), "{error}");
    }
    let asked: usize = servers.iter().map(|(_, said)| said.lock().unwrap().len()).sum();
    assert!(asked <= 10, "{asked} requests for two calls");
}

#[test]
fn a_server_that_always_has_another_place_is_given_up() {
    let port = Arc::new(AtomicUsize::new(0));
    let (own, count) = (Arc::clone(&port), AtomicUsize::new(0));
    let (at, said) = scripted(move |heard| {
        let key = format!("key {}", count.fetch_add(1, Ordering::SeqCst));
        let port = u16::try_from(own.load(Ordering::SeqCst)).unwrap();
        Some(heard.forward(ReplyStatus::LocationForwardPerm, &ior_at(port, GiopVersion::V1_2, &key)))
    });
    port.store(at.into(), Ordering::SeqCst);
    let orb = Orb::builder().build().unwrap();
    for error in both_fail(|| target(&orb, &ior_at(at, GiopVersion::V1_2, "key"))) {
        assert_eq!(error.minor(), ids::TRANSIENT_FORWARD_LOOP, "{error}");
        assert!(error.to_string().contains("16 times in a row without arriving"), "{error}");
    }
    assert_eq!(said.lock().unwrap().len(), 2 * 17);
}

#[test]
fn answers_where_an_object_is_say_all_that_they_can() {
    let there = ior_at(7, GiopVersion::V1_2, "there");
    let forwards = [LocateStatus::ObjectForward, LocateStatus::ObjectForwardPerm];
    let orb = Orb::builder().build().unwrap();
    let ask = |version, status, answer: Script| {
        let (port, _) = scripted(move |heard| Some(answer(heard)));
        let object: ObjectRef = orb.reference(ior_at(port, version, "key"));
        (object.locate(), status)
    };
    for version in VERSIONS {
        for status in forwards {
            if status == LocateStatus::ObjectForwardPerm && version < GiopVersion::V1_2 {
                continue;
            }
            let to = there.clone();
            let (answer, _) =
                ask(version, status, Box::new(move |heard| heard.located(status, |out| write_ior(&to, out))));
            let located = match status {
                LocateStatus::ObjectForward => Located::Forward(there.clone()),
                _ => Located::ForwardPermanently(there.clone()),
            };
            assert_eq!(answer.unwrap(), located, "GIOP {version} {status}");
        }
        let (answer, _) = ask(
            version,
            LocateStatus::UnknownObject,
            Box::new(|heard| heard.located(LocateStatus::UnknownObject, |_| {})),
        );
        assert_eq!(answer.unwrap(), Located::Unknown);
    }
    let transient = SystemException::transient(minor::NO_USABLE_PROFILE, CompletionStatus::No);
    let raised = transient.clone();
    let status = LocateStatus::LocSystemException;
    let answer = Box::new(move |heard: &Heard| heard.located(status, |out| raised.encode(out).unwrap()));
    assert_eq!(ask(GiopVersion::V1_2, status, answer).0.unwrap_err(), transient);
}

/// A servant that moves for good tells clients of each version as they can be told.
#[test]
fn our_servers_forward_for_good_where_clients_know_that() {
    use spandrel::{Replied, Servant, ServerCall};

    struct Gone(ObjectRef);

    impl Servant for Gone {
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
    let object = old.poa.activate(Gone(old.orb.reference(new.object.ior().clone()))).unwrap();
    for version in VERSIONS {
        let orb = Orb::builder().giop_version(version).build().unwrap();
        let target = target(&orb, object.ior());
        assert_eq!(target.add(1, 2).unwrap(), 3, "GIOP {version}");
        assert_eq!(block_on(target.add_async(1, 2)).unwrap(), 3, "GIOP {version}");
    }
}

/// Sends whoever calls elsewhere, for good or not.
struct Porter(ObjectRef, bool);

impl ServantLocator for Porter {
    fn preinvoke(&self, _: &ObjectId, _: &Poa, _: &str) -> Result<(Arc<dyn Servant>, Cookie), Incarnation> {
        let to = self.0.clone();
        Err(if self.1 { Incarnation::ForwardPermanently(to) } else { Incarnation::ForwardRequest(to) })
    }

    fn postinvoke(&self, _: &ObjectId, _: &Poa, _: &str, _: Cookie, _: Arc<dyn Servant>) {
        panic!("no servant was found");
    }
}

/// An adapter whose objects such a servant manager sends elsewhere.
fn porters(server: &Server, name: &str, manager: Porter) -> ObjectRef {
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

/// The status of the first of these replies.
fn first_status(replies: &[Vec<u8>]) -> ReplyStatus {
    let message = Message::whole(MessageBlock::from(&*replies[0])).unwrap();
    ReplyHeader::decode(&mut message.decoder(Limits::default())).unwrap().status
}

/// So do adapters and servant managers, and those who ask where the object is are told the same.
#[test]
fn adapters_and_servant_managers_forward_for_good_where_clients_know_that() {
    let (new, old) = (Server::start(), Server::start());
    let tap = Wiretap::before(&old);
    let there = || old.orb.reference(new.object.ior().clone());
    for is_permanent in [false, true] {
        let moved = old.poa.activate(TargetSkeleton::new(Probe::new(&old.orb))).unwrap();
        match is_permanent {
            true => old.poa.forward_permanently(&moved, there()).unwrap(),
            false => old.poa.forward(&moved, there()).unwrap(),
        }
        let managed = porters(&old, &format!("porters {is_permanent}"), Porter(there(), is_permanent));
        for version in VERSIONS {
            let is_told = is_permanent && version == GiopVersion::V1_2;
            let orb = Orb::builder().giop_version(version).build().unwrap();
            for object in [&moved, &managed] {
                _ = tap.take_replies();
                let target = target(&orb, &at_port(object.ior(), tap.port()));
                assert_eq!(target.add(1, 2).unwrap(), 3, "GIOP {version}");
                let expected = if is_told { ReplyStatus::LocationForwardPerm } else { ReplyStatus::LocationForward };
                assert_eq!(first_status(&tap.take_replies()), expected, "GIOP {version}");
            }
            let located = if is_told { Located::ForwardPermanently } else { Located::Forward };
            let asked = orb.reference(at_port(moved.ior(), tap.port()));
            assert_eq!(asked.locate().unwrap(), located(new.object.ior().clone()), "GIOP {version}");
            assert!(asked.validate_connection().unwrap().0);
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

/// Whoever asks where an object is is told by which exception a request would be refused, where its version can say that (9.4.6.1).
#[test]
fn who_asks_where_an_object_is_is_told_why_it_cannot_be_called() {
    let server = Server::start();
    let manager = server.poa.the_poa_manager();
    type Change = fn(&PoaManager);
    let states: [(Change, Option<SystemExceptionKind>); 3] = [
        // Its requests wait, and are not refused.
        (|manager| manager.hold_requests(false).unwrap(), None),
        (|manager| manager.discard_requests(false).unwrap(), Some(SystemExceptionKind::Transient)),
        (|manager| manager.deactivate(false, false).unwrap(), Some(SystemExceptionKind::ObjAdapter)),
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

/// Whatever a server says of where the object is: the call ends, and says why.
#[test]
fn forwardings_that_lead_nowhere_end_the_call() {
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
    let lies = [&[1, 0, 0, 0, 0, 0, 0, 0][..], &u32::MAX.to_le_bytes()].concat();
    let cut = (0..sound.len()).map(|at| sound[..at].to_vec());
    for body in cut.chain([nil, lies, many]) {
        for status in [ReplyStatus::LocationForward, ReplyStatus::LocationForwardPerm] {
            let said = body.clone();
            let (port, asked) = scripted(move |heard| Some(heard.reply(status, |out| out.octets(&said))));
            let orb = Orb::builder().byte_order(spandrel::ByteOrder::Little).build().unwrap();
            for error in both_fail(|| target(&orb, &ior_at(port, GiopVersion::V1_2, "key"))) {
                let kinds = [SystemExceptionKind::Marshal, SystemExceptionKind::InvObjref];
                assert!(kinds.contains(&error.kind()), "{error}");
                assert_eq!(error.completed(), CompletionStatus::No, "{error}");
            }
            assert_eq!(asked.lock().unwrap().len(), 2, "neither is asked again");
        }
    }
}
