//! Demultiplexing of objects and operations: every strategy, stale predictions, and wrong operation indices
//! from hostile clients (paper 001, chapter 6; paper 003).

use spandrel::poa::{EtherealizeObjects, WaitForCompletion};
use std::{
    io::Write,
    net::TcpStream,
    sync::{Arc, Mutex},
    time::Duration,
};

use spandrel::{
    CompletionStatus, InitError, ObjectRef, Orb, OrbBuilder, Poa, SystemException, SystemExceptionKind,
    interception::{Interceptor, IorInfo, IorInterceptor},
    poa::{IdAssignmentPolicy, ObjectDemux, ObjectId, OperationDemux},
    policy::Policy,
    server::{Replied, Servant, ServerCall},
    types::IiopProfile,
};
use spandrel_cdr::{Decoder, Encoder, GiopVersion, Wire};
use spandrel_giop::{ReplyStatus, RequestTemplate, ResponseFlags, ServiceContext, ids};
use spandrel_orb_tests::{
    Probe,
    probe::{Target, TargetSkeleton},
    support::{kind_and_completion, read_message},
};

/// A servant without an operation table that answers `count` with its number.
struct NumberedServant(u32);

impl Servant for NumberedServant {
    fn repository_id(&self) -> &str {
        "IDL:Probe/Target:1.0"
    }

    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == self.repository_id()
    }

    fn dispatch(&self, operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        match operation {
            "count" => call.reply(|out| {
                out.u32(self.0);
                Ok(())
            }),
            _ => call.implicit(self),
        }
    }
}

/// An active adapter below the root.
fn adapter(server: &Orb, policies: impl IntoIterator<Item = Policy>) -> Poa {
    let root = Poa::root(server).unwrap();
    root.create_poa("demux", Some(&root.the_poa_manager()), policies).unwrap()
}

fn bind(client: &Orb, object: &ObjectRef) -> Target {
    Target::unchecked_narrow(&client.reference(object.ior().clone()))
}

fn is_gone(outcome: Result<u32, SystemException>) -> bool {
    kind_and_completion(&outcome.unwrap_err()) == (SystemExceptionKind::ObjectNotExist, CompletionStatus::No)
}

#[test]
fn every_strategy_finds_every_object_with_and_without_prediction() {
    for strategy in [ObjectDemux::Active, ObjectDemux::DynamicHash, ObjectDemux::PerfectHash, ObjectDemux::Linear] {
        for is_adaptive in [false, true] {
            let server = Orb::builder().adaptive_demultiplexing(is_adaptive).build().unwrap();
            let root = Poa::root(&server).unwrap();
            let poa = root.create_poa("demux", None, [strategy.into()]).unwrap();
            let mut objects: Vec<ObjectRef> =
                (0..50).map(|number| poa.activate(NumberedServant(number)).unwrap()).collect();
            // The perfect hash is built when the manager is activated; objects added later must be found,
            // too.
            poa.the_poa_manager().activate().unwrap();
            objects.extend((50..60).map(|number| poa.activate(NumberedServant(number)).unwrap()));
            let client = Orb::builder().build().unwrap();
            let targets: Vec<Target> = objects.iter().map(|object| bind(&client, object)).collect();
            let trains_and_rounds = (0..60).chain([7, 7, 7, 58, 58, 7]).chain((0..60).rev());
            for number in trains_and_rounds {
                assert_eq!(targets[number].count(), Ok(number as u32), "{strategy:?}");
            }
            poa.deactivate(&objects[7]).unwrap();
            assert!(is_gone(targets[7].count()), "{strategy:?}");
            assert_eq!((targets[8].count(), targets[59].count()), (Ok(8), Ok(59)), "{strategy:?}");
        }
    }
}

#[test]
fn every_strategy_finds_existing_operations_only() {
    for strategy in OperationDemux::ALL {
        for (is_adaptive, sends_index) in [(false, false), (true, false), (false, true), (true, true)] {
            let server = Orb::builder().adaptive_demultiplexing(is_adaptive).build().unwrap();
            let poa = adapter(&server, [strategy.into()]);
            let object = poa.activate(TargetSkeleton::new(Arc::new(Probe::new(&server)))).unwrap();
            let client = Orb::builder().operation_index(sends_index).build().unwrap();
            let target = bind(&client, &object);
            for round in 0..3 {
                target.ping().unwrap();
                target.note(&[]).unwrap();
                assert_eq!((target.add(2, 3), target.count()), (Ok(5), Ok(round + 1)), "{strategy:?}");
                assert_eq!(target.echo("text").unwrap(), "text");
                assert!(target.refuse(7).is_err());
                assert!(target.as_object().is_a("IDL:Probe/Target:1.0").unwrap());
                assert!(!target.as_object().non_existent().unwrap());
                for unknown in ["", "pin", "ping_", "_get_ping", "\u{e9}", "withdraw"] {
                    let refused: Result<(), SystemException> =
                        target.as_object().invoke(unknown, |_| Ok(()), |_| Ok(()));
                    assert_eq!(refused.unwrap_err().kind(), SystemExceptionKind::BadOperation, "{unknown}");
                }
            }
        }
    }
}

#[test]
fn a_stale_prediction_never_selects_another_object() {
    let server = Orb::builder().build().unwrap();
    let poa = adapter(&server, [IdAssignmentPolicy::UserId.into()]);
    let client = Orb::builder().build().unwrap();
    let id = |number: u32| ObjectId::from(format!("object {number}").as_str());
    let activate = |number| poa.activate_object_with_id(&id(number), Arc::new(NumberedServant(number)));
    let target = |number| bind(&client, &poa.create_reference_with_id(&id(number), "IDL:Probe/Target:1.0").unwrap());
    let (one, two, three) = (target(1), target(2), target(3));
    activate(1).unwrap();
    activate(2).unwrap();
    assert_eq!((one.count(), one.count()), (Ok(1), Ok(1)));
    // Another object takes the slot in the table.
    poa.deactivate_object(&id(1)).unwrap();
    assert!(is_gone(one.count()));
    assert_eq!(two.count(), Ok(2));
    activate(3).unwrap();
    assert_eq!((three.count(), two.count()), (Ok(3), Ok(2)));
    assert!(is_gone(one.count()));
    // The object is activated again with another servant.
    poa.activate_object_with_id(&id(1), Arc::new(NumberedServant(100))).unwrap();
    assert_eq!((one.count(), three.count(), one.count()), (Ok(100), Ok(3), Ok(100)));
    poa.destroy(EtherealizeObjects::Yes, WaitForCompletion::Yes).unwrap();
    assert!(is_gone(one.count()));
}

#[test]
fn only_references_of_servants_with_operation_tables_have_an_index_component() {
    let server = Orb::builder().build().unwrap();
    let offers = |object: &ObjectRef| {
        let profile = IiopProfile::decode(&object.ior().profiles[0]).unwrap().unwrap();
        profile.components.iter().any(|component| component.tag == ids::TAG_OPERATION_INDEX)
    };
    let poa = adapter(&server, [OperationDemux::Active.into()]);
    let probe = || TargetSkeleton::new(Arc::new(Probe::new(&server)));
    assert!(offers(&poa.activate(probe()).unwrap()));
    assert!(!offers(&poa.activate(NumberedServant(1)).unwrap()), "the servant has no operation table");
    assert!(!offers(&poa.create_reference("IDL:Probe/Target:1.0").unwrap()), "the reference has no servant yet");
    assert!(!offers(&Poa::root(&server).unwrap().activate(probe()).unwrap()));
}

/// Records the tables that adapters choose for their objects.
#[derive(Clone, Default)]
struct TableInterceptor(Arc<Mutex<Vec<ObjectDemux>>>);

impl Interceptor for TableInterceptor {
    fn name(&self) -> &str {
        "tables"
    }
}

impl IorInterceptor for TableInterceptor {
    fn establish_components(&self, info: &mut IorInfo<'_>) {
        let policy = info.effective_policy(ids::POLICY_OBJECT_DEMUX).unwrap();
        self.0.lock().unwrap().push(*policy.value().unwrap());
    }
}

/// Settings of an ORB by these options of a command line.
fn with_options(builder: OrbBuilder, options: &str) -> Result<OrbBuilder, InitError> {
    builder.take_args(&mut options.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect())
}

#[test]
fn options_choose_the_tables_of_adapters_whose_policies_choose_none() {
    use ObjectDemux::{Active, DynamicHash, Linear, PerfectHash};
    for (options, system_ids, user_ids) in [
        ("", Active, DynamicHash),
        ("-ORBSystemIdDemux linear", Linear, DynamicHash),
        ("-ORBSystemIdDemux perfect-hash -ORBUserIdDemux linear", PerfectHash, Linear),
        ("-ORBSystemIdDemux dynamic-hash -ORBUserIdDemux perfect-hash", DynamicHash, PerfectHash),
    ] {
        let tables = TableInterceptor::default();
        let builder = Orb::builder().ior_interceptor(tables.clone()).unwrap();
        let server = with_options(builder, options).unwrap().build().unwrap();
        let root = Poa::root(&server).unwrap();
        let manager = root.the_poa_manager();
        let unnamed = adapter(&server, []);
        let named = root.create_poa("named", Some(&manager), [IdAssignmentPolicy::UserId.into()]).unwrap();
        let own = root.create_poa("own", Some(&manager), [DynamicHash.into()]).unwrap();
        let chosen = tables.0.lock().unwrap().clone();
        assert!(chosen.ends_with(&[system_ids, user_ids, DynamicHash]), "{options}: {chosen:?}");
        let client = Orb::builder().build().unwrap();
        let id = ObjectId::from("one");
        named.activate_object_with_id(&id, Arc::new(NumberedServant(3))).unwrap();
        let activate = |poa: &Poa, number| poa.activate(NumberedServant(number)).unwrap();
        let objects =
            [activate(&root, 0), activate(&unnamed, 1), activate(&own, 2), named.id_to_reference(&id).unwrap()];
        for (number, object) in objects.iter().enumerate() {
            assert_eq!(bind(&client, object).count(), Ok(number as u32), "{options}");
        }
    }
    for (options, reason) in [
        ("-ORBUserIdDemux active", "expected dynamic-hash, perfect-hash or linear"),
        ("-ORBSystemIdDemux binary-search", "expected active, dynamic-hash, perfect-hash or linear"),
        ("-ORBOperationDemux magic", "expected perfect-hash, dynamic-hash, binary-search, linear or active"),
    ] {
        let error = with_options(Orb::builder(), options).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn an_option_chooses_the_lookup_of_operations() {
    for strategy in OperationDemux::ALL {
        let options = format!("-ORBOperationDemux {}", strategy.name());
        let server = with_options(Orb::builder(), &options).unwrap().build().unwrap();
        let object = adapter(&server, []).activate(TargetSkeleton::new(Arc::new(Probe::new(&server)))).unwrap();
        let profile = IiopProfile::decode(&object.ior().profiles[0]).unwrap().unwrap();
        let has_index = profile.components.iter().any(|component| component.tag == ids::TAG_OPERATION_INDEX);
        assert_eq!(has_index, strategy == OperationDemux::Active, "{strategy:?}");
        let target = bind(&Orb::builder().build().unwrap(), &object);
        assert_eq!((target.add(2, 3), target.count()), (Ok(5), Ok(0)), "{strategy:?}");
    }
}

/// Sends a request with this operation index context; returns the reply's status and body.
fn request_with_index(object: &ObjectRef, operation: &str, data: &[u8]) -> (ReplyStatus, Vec<u8>) {
    let profile = IiopProfile::decode(&object.ior().profiles[0]).unwrap().unwrap();
    let wire = Wire::default();
    let contexts = [ServiceContext { id: ids::CONTEXT_OPERATION_INDEX, data: data.to_vec() }];
    let mut out = Encoder::new(wire);
    let template = RequestTemplate::new(wire, &profile.object_key);
    template.begin(&mut out, 1, ResponseFlags::TWO_WAY, operation, &contexts).end(&mut out).unwrap();
    let mut stream = TcpStream::connect((profile.host.as_str(), profile.port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(&out.to_vec()).unwrap();
    let message = read_message(&mut stream).unwrap();
    assert_eq!(message[7], 1, "a reply");
    let mut input = Decoder::new(&message[12..], Wire { version: GiopVersion::V1_2, ..wire });
    let (_id, status) = (input.u32().unwrap(), input.u32().unwrap());
    let status = [ReplyStatus::NoException, ReplyStatus::UserException, ReplyStatus::SystemException][status as usize];
    (status, message[24..].to_vec())
}

#[test]
fn a_wrong_operation_index_is_ignored() {
    let server = Orb::builder().build().unwrap();
    let object = adapter(&server, [OperationDemux::Active.into()])
        .activate(TargetSkeleton::new(Arc::new(Probe::new(&server))))
        .unwrap();
    let indices = (0..40_u8).map(|place| vec![0, 0, 0, place]).chain((0..40).map(|place| vec![1, 0, place, 0]));
    let hostile = [vec![], vec![0], vec![0, 0, 0], vec![0xff; 4], vec![0xff; 5], vec![0; 1000]];
    for data in indices.chain(hostile) {
        assert_eq!(request_with_index(&object, "count", &data), (ReplyStatus::NoException, vec![0; 4]), "{data:?}");
        assert_eq!(request_with_index(&object, "withdraw", &data).0, ReplyStatus::SystemException, "{data:?}");
    }
}
