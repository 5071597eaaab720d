//! The texts that a client gets with system exceptions: the operation, the object and the reason, without options.

use std::{
    fmt::Debug,
    sync::{Arc, Mutex},
};

use spandrel::{
    CompletionStatus, Orb, Poa, SystemException, SystemExceptionKind,
    authorization::{Authorizer, Policy},
    cdr::GiopVersion,
    poa::{EtherealizeObjects, LifespanPolicy, WaitForCompletion},
    server::{Replied, Servant, ServerCall},
};
use spandrel_giop::{ReplyStatus, ids, minor};
use spandrel_orb_tests::{
    Server,
    probe::{Target, TargetSkeleton},
    scripted::{ior_at, scripted},
    support::{block_on, wait_until},
};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{Layer, Registry, layer::Context, prelude::*};

fn client(reference: &str) -> Target {
    Orb::builder().build().unwrap().string_to_object(reference).unwrap().unchecked_narrow()
}

/// Fails unless the exception has this kind and minor code, and its text these parts.
#[track_caller]
fn assert_told(error: &SystemException, kind: SystemExceptionKind, minor: u32, parts: &[&str]) {
    assert_eq!((error.kind(), error.minor()), (kind, minor), "{error}");
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn an_unknown_key_is_named_with_the_operation() {
    let server = Server::start();
    let target = client(&server.ior());
    target.ping().unwrap();
    server.poa.deactivate_object(&server.poa.reference_to_id(&server.object).unwrap()).unwrap();
    let address = format!("`ping` of 127.0.0.1:{}/", server.port());
    let parts = [&*address, "the adapter has no active object for the object key"];
    for error in [target.ping().unwrap_err(), block_on(target.ping_async()).unwrap_err()] {
        assert_told(&error, SystemExceptionKind::ObjectNotExist, ids::OBJECT_NOT_EXIST_KEY, &parts);
    }
}

#[test]
fn an_unknown_adapter_is_named() {
    let server = Server::start();
    let poa = server.poa.create_poa("gone", None, [LifespanPolicy::Persistent.into()]).unwrap();
    poa.the_poa_manager().activate().unwrap();
    let target = client(&poa.activate(TargetSkeleton::new(Arc::clone(&server.probe))).unwrap().to_string());
    target.ping().unwrap();
    poa.destroy(EtherealizeObjects::No, WaitForCompletion::Yes).unwrap();
    let error = target.ping().unwrap_err();
    let parts = ["`ping` of ", "the server says: the adapter `gone` does not exist"];
    assert_told(&error, SystemExceptionKind::ObjectNotExist, minor::NO_SUCH_ADAPTER, &parts);
    assert!(!error.to_string().contains("activator"), "{error}");
}

#[test]
fn an_unknown_operation_is_named_with_the_interface() {
    let server = Server::start();
    let object = client(&server.ior());
    let outcome = object.as_object().invoke::<(), SystemException>("fly", |_| Ok(()), |_| Ok(()));
    let parts = ["the server says: `IDL:", "has no operation `fly`"];
    assert_told(&outcome.unwrap_err(), SystemExceptionKind::BadOperation, minor::UNKNOWN_OPERATION, &parts);
}

#[test]
fn a_panic_is_told_without_its_message() {
    let server = Server::start();
    let error = client(&server.ior()).panic().unwrap_err();
    assert_told(&error, SystemExceptionKind::Unknown, ids::UNKNOWN_PANIC, &["the servant panicked in `panic`"]);
    assert!(!error.to_string().contains("intended"), "{error}");
}

#[test]
fn a_denial_names_the_operation_and_the_identity_but_not_the_rule() {
    let policy: Policy = "[[rule]]\naction = 'deny'\noperation = 'ping'".parse().unwrap();
    let server = Server::with(Authorizer::new(policy).install(Orb::builder()).unwrap());
    let error = client(&server.ior()).ping().unwrap_err();
    let parts = ["`ping` is denied to a caller without a verified identity"];
    assert_told(&error, SystemExceptionKind::NoPermission, ids::NO_PERMISSION_POLICY, &parts);
    assert!(!error.to_string().contains("line"), "{error}");
}

#[test]
fn what_a_servants_own_call_was_told_is_not_passed_on() {
    let [front, back] = [(); 2].map(|()| Server::start());
    back.poa.deactivate_object(&back.poa.reference_to_id(&back.object).unwrap()).unwrap();
    let orb = Orb::builder().build().unwrap();
    let [front_object, back_object] =
        [&front, &back].map(|server| Target::unchecked_narrow(&orb.string_to_object(&server.ior()).unwrap()));
    let error = front_object.call_back(Some(&back_object)).unwrap_err();
    let parts = ["`call_back` of "];
    assert_told(&error, SystemExceptionKind::ObjectNotExist, ids::OBJECT_NOT_EXIST_KEY, &parts);
    assert!(!error.to_string().contains(&back.port().to_string()), "{error}");
}

#[test]
fn replies_and_arguments_of_another_idl_are_told_as_such() {
    let (port, _) = scripted(|request| {
        let octets = if &*request.operation == "add" { 2 } else { 0 };
        Some(request.reply_with(ReplyStatus::NoException, &[], |out| (0..octets).for_each(|_| out.u8(0))))
    });
    let target: Target =
        Orb::builder().build().unwrap().reference(ior_at(port, GiopVersion::V1_2, "key")).unchecked_narrow();
    let error = target.add(1, 2).unwrap_err();
    let parts = ["the reply of `add` has at least 2 octets fewer than this IDL says"];
    assert_told(&error, SystemExceptionKind::Marshal, ids::MARSHAL_TRUNCATED, &parts);
    assert_eq!(error.completed(), CompletionStatus::Yes);

    let server = Server::start();
    let target = client(&server.ior());
    let outcome = target.as_object().invoke::<(), SystemException>(
        "add",
        |out| {
            out.u32(1);
            Ok(())
        },
        |_| Ok(()),
    );
    let parts = [
        "the message ended inside a value",
        "`add` of 127.0.0.1:",
        ": its arguments are shorter than the IDL of the server says",
    ];
    assert_told(&outcome.unwrap_err(), SystemExceptionKind::Marshal, ids::MARSHAL_TRUNCATED, &parts);
}

/// The messages of the events of a thread, with their fields.
#[derive(Clone, Default)]
struct Messages(Arc<Mutex<Vec<String>>>);

impl<S: Subscriber> Layer<S> for Messages {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        struct Message(String);
        impl Visit for Message {
            fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
                match field.name() {
                    "message" => self.0 = format!("{value:?}{}", self.0),
                    name => self.0 += &format!(" {name}={value:?}"),
                }
            }
        }
        let mut message = Message(String::new());
        event.record(&mut message);
        self.0.lock().unwrap().push(message.0);
    }
}

/// A servant whose operations fail with a reason for the log.
struct Failing;

impl Servant for Failing {
    fn repository_id(&self) -> &str {
        "IDL:Failing:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        false
    }

    fn dispatch(&self, _: &str, _: ServerCall<'_>) -> Result<Replied, SystemException> {
        Err(SystemException::raised(SystemExceptionKind::Internal, "no file /etc/vault"))
    }
}

#[test]
fn a_withheld_reason_is_in_the_log_of_the_server_and_the_client_is_told_so() {
    let orb = Orb::builder().build().unwrap();
    let poa = Poa::root(&orb).unwrap().child("main").main_thread().create().unwrap();
    let target = client(&poa.activate(Failing).unwrap().to_string());
    let calling = std::thread::spawn(move || target.ping().unwrap_err());
    let messages = Messages::default();
    tracing::subscriber::with_default(Registry::default().with(messages.clone()), || {
        wait_until("the end of the call", || {
            orb.perform_work().unwrap();
            calling.is_finished()
        });
    });
    let error = calling.join().unwrap();
    let parts = ["the server says: the reason is in this server's log (`-ORBExceptionDetails yes` sends it)"];
    assert_told(&error, SystemExceptionKind::Internal, 0, &parts);
    assert!(!error.to_string().contains("vault"), "{error}");
    let messages = messages.0.lock().unwrap();
    let is_reason = |message: &String| {
        ["an exception is sent without its reason", "operation=ping", "no file /etc/vault"]
            .iter()
            .all(|part| message.contains(part))
    };
    assert!(messages.iter().any(is_reason), "{messages:?}");
    orb.shutdown().unwrap();
}

#[test]
fn surplus_octets_of_a_reply_are_logged() {
    let (port, _) = scripted(|request| {
        Some(request.reply_with(ReplyStatus::NoException, &[], |out| {
            out.u32(3);
            out.u32(4);
        }))
    });
    let target: Target =
        Orb::builder().build().unwrap().reference(ior_at(port, GiopVersion::V1_2, "key")).unchecked_narrow();
    let messages = Messages::default();
    let sum = tracing::subscriber::with_default(Registry::default().with(messages.clone()), || target.add(1, 2));
    assert_eq!(sum.unwrap(), 3);
    let messages = messages.0.lock().unwrap();
    let expected = "the reply of `add` has 4 octets more than this IDL says";
    assert!(messages.iter().any(|message| message == expected), "{messages:?}");
}
