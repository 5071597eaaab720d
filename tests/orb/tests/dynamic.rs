//! The dynamic invocation interface: requests composed at run time, to servants of every kind.

use spandrel::{
    CompletionStatus, Orb, OrbBuilder, SystemExceptionKind,
    cdr::{ByteOrder, GiopVersion},
    dynamic::{
        ArgMode, CreateRequest, DynamicObject, InterfaceDescription, MultipleRequests, NamedValue, NvList,
        OperationDescription, Request, RequestError,
    },
    minor,
    types::{Any, TypeCode, Typed},
};
use spandrel_orb_tests::{
    Server,
    probe::{Refused, Target},
    support::{block_on, in_background},
};

const VERSIONS: [GiopVersion; 3] = [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2];
const ORDERS: [ByteOrder; 2] = [ByteOrder::Big, ByteOrder::Little];

/// Runs a test with every GIOP version and byte order of the client.
fn with_every_version_and_byte_order(test: impl Fn(&Server, Target)) {
    let server = Server::start();
    for version in VERSIONS {
        for order in ORDERS {
            let builder: OrbBuilder = Orb::builder().giop_version(version).byte_order(order);
            test(&server, server.client_with(builder));
        }
    }
}

fn system(error: RequestError) -> spandrel::SystemException {
    match error {
        RequestError::System(exception) => exception,
        other => panic!("{other}"),
    }
}

fn addition(target: &Target, a: i32, b: i32) -> Request {
    let mut request = target.request("add");
    request.add_in_arg(&a).unwrap().add_in_arg(&b).unwrap().set_return_type(TypeCode::LONG);
    request
}

#[test]
fn results_are_returned_in_every_version_and_byte_order() {
    with_every_version_and_byte_order(|_, target| {
        let mut ping = target.request("ping");
        ping.invoke().unwrap();
        assert_eq!(ping.return_any().unwrap().type_code(), &TypeCode::VOID);
        let mut add = addition(&target, 40, 2);
        add.invoke().unwrap();
        assert_eq!(add.return_value::<i32>().unwrap(), 42);
        assert_eq!(add.return_any().unwrap(), Any::new(42_i32).unwrap());
        let mut echo = target.request("echo");
        echo.add_in_arg("caf\u{e9} \u{ff}").unwrap().set_return_type(TypeCode::STRING);
        echo.invoke().unwrap();
        assert_eq!(echo.return_value::<String>().unwrap(), "caf\u{e9} \u{ff}");
    });
}

#[test]
fn sequences_of_any_length_are_echoed_unchanged() {
    with_every_version_and_byte_order(|_, target| {
        for len in [0, 1, 300, 100_000] {
            let doubles: Vec<f64> = (0..len).map(f64::from).collect();
            let mut request = target.request("echo_doubles");
            request.add_in_arg(&doubles).unwrap().set_return_type(Vec::<f64>::type_code());
            request.invoke().unwrap();
            assert_eq!(request.return_value::<Vec<f64>>().unwrap(), doubles);
        }
    });
}

#[test]
fn references_are_passed_and_returned() {
    with_every_version_and_byte_order(|_, target| {
        let mut request = target.request("same");
        let of = Option::<Target>::type_code();
        request.add_in_arg(&Some(target.clone())).unwrap().set_return_type(of);
        request.invoke().unwrap();
        assert_eq!(request.return_value::<Option<Target>>().unwrap(), Some(target.clone()));
        assert_eq!(request.argument::<Option<Target>>(0).unwrap(), Some(target.clone()));
        request.set_argument(0, &None::<Target>).unwrap();
        request.invoke().unwrap();
        assert_eq!(request.return_value::<Option<Target>>().unwrap(), None);
    });
}

#[test]
fn only_listed_user_exceptions_are_extracted() {
    with_every_version_and_byte_order(|_, target| {
        let mut request = target.request("refuse");
        request.add_in_arg(&7_i32).unwrap();
        let unlisted = system(request.invoke().unwrap_err());
        assert_eq!(unlisted.kind(), SystemExceptionKind::Unknown);
        assert_eq!((unlisted.minor(), unlisted.completed()), (minor::UNLISTED_USER_EXCEPTION, CompletionStatus::Yes));
        request.add_exception(Refused::type_code());
        let raised = request.invoke().unwrap_err();
        let refused = Refused { why: "because of 7".into(), code: 7 };
        assert_eq!(raised.extract::<Refused>(), Some(refused));
        assert!(raised.to_string().contains("IDL:Probe/Refused:1.0"), "{raised}");
        // The failed invocation has no results; the next one has.
        assert_eq!(request.return_any().unwrap_err().kind(), SystemExceptionKind::BadInvOrder);
        request.set_argument(0, &0_i32).unwrap().invoke().unwrap();
        request.return_any().unwrap();

        let mut fail = target.request("fail");
        fail.add_in_arg(&0x1234_u32).unwrap();
        let failed = system(fail.invoke().unwrap_err());
        assert_eq!((failed.kind(), failed.minor()), (SystemExceptionKind::BadParam, 0x1234));
        let unknown = system(target.request("nothing_of_the_sort").invoke().unwrap_err());
        assert_eq!((unknown.kind(), unknown.minor()), (SystemExceptionKind::BadOperation, minor::UNKNOWN_OPERATION));
    });
}

#[test]
fn is_a_can_be_invoked_dynamically() {
    let server = Server::start();
    let target = server.client();
    let mut request = target.request("_is_a");
    request.add_in_arg("IDL:Probe/Target:1.0").unwrap().set_return_type(TypeCode::BOOLEAN);
    request.invoke().unwrap();
    assert!(request.return_value::<bool>().unwrap());
    request.set_argument(0, "IDL:Probe/Other:1.0").unwrap().invoke().unwrap();
    assert!(!request.return_value::<bool>().unwrap());
}

#[test]
fn a_request_can_be_reused_with_other_arguments_operations_and_targets() {
    with_every_version_and_byte_order(|server, target| {
        let mut request = addition(&target, 1, 2);
        for (a, b) in [(3, 4), (-5, 5)] {
            request.set_argument(1, &b).unwrap().set_argument(0, &a).unwrap().invoke().unwrap();
            assert_eq!(request.return_value::<i32>().unwrap(), a + b);
        }
        request.reset().add_in_arg(&20_i32).unwrap().add_in_arg(&2_i32).unwrap().invoke().unwrap();
        assert_eq!(request.return_value::<i32>().unwrap(), 22);
        request.reset_for("echo").add_in_arg("once").unwrap().set_return_type(TypeCode::STRING).invoke().unwrap();
        assert_eq!(request.return_value::<String>().unwrap(), "once");
        // A collocated object.
        request.set_target(&server.object).invoke().unwrap();
        assert_eq!(request.return_value::<String>().unwrap(), "once");
    });
}

#[test]
fn a_request_can_be_created_from_an_nv_list() {
    let server = Server::start();
    let target = server.client();
    let mut list = NvList::new();
    list.add_in("a", &40_i32).unwrap().add_in("b", &2_i32).unwrap();
    let mut request = Request::with_arguments(target.as_object(), "add", &list).unwrap();
    request.set_return_type(TypeCode::LONG).invoke().unwrap();
    assert_eq!(request.return_value::<i32>().unwrap(), 42);
    assert_eq!(request.arguments().unwrap(), list);
    let mut unset = NvList::new();
    unset.add(NamedValue::of_type("a", ArgMode::In, TypeCode::LONG));
    let refused = Request::with_arguments(target.as_object(), "add", &unset).unwrap_err();
    assert_eq!(refused.kind(), SystemExceptionKind::BadParam);
    assert!(refused.to_string().contains("`a`"), "{refused}");
}

#[test]
fn arguments_and_results_of_another_type_are_refused() {
    let server = Server::start();
    let target = server.client();
    let mut request = addition(&target, 1, 2);
    assert_eq!(request.return_value::<i32>().unwrap_err().minor(), minor::REQUEST_NOT_SENT);
    let kinds = [
        request.set_argument(0, &1_i64).unwrap_err(),
        request.set_argument(2, &1_i32).unwrap_err(),
        request.set_argument_any(0, &Any::new("text").unwrap()).unwrap_err(),
    ];
    assert_eq!(kinds.map(|error| error.kind()), [SystemExceptionKind::BadParam; 3]);
    request.invoke().unwrap();
    assert_eq!(request.return_value::<u32>().unwrap_err().kind(), SystemExceptionKind::BadParam);
    assert_eq!(request.return_value::<i32>().unwrap(), 3);
    // A return value of another type than requested cannot be read.
    let mut wrong = addition(&target, 1, 2);
    wrong.set_return_type(TypeCode::DOUBLE).invoke().unwrap();
    let unreadable = wrong.return_value::<f64>().unwrap_err();
    assert_eq!((unreadable.kind(), unreadable.completed()), (SystemExceptionKind::Marshal, CompletionStatus::Yes));
}

#[test]
fn an_unencodable_argument_leaves_the_request_unchanged() {
    let server = Server::start();
    let target = server.client();
    let mut request = target.request("echo");
    request.set_return_type(TypeCode::STRING);
    assert!(request.add_in_arg("nul \0").is_err());
    request.add_in_arg("sound").unwrap();
    assert!(request.set_argument(0, "nul \0").is_err());
    request.invoke().unwrap();
    assert_eq!(request.return_value::<String>().unwrap(), "sound");
}

#[test]
fn one_way_requests_have_no_result() {
    with_every_version_and_byte_order(|_, target| {
        let before = target.count().unwrap();
        let mut request = target.request("note");
        request.add_in_arg(&vec![7_u8; 3000]).unwrap();
        for _ in 0..10 {
            request.send_oneway().unwrap();
        }
        assert_eq!(target.count().unwrap(), before + 10);
        assert_eq!(request.return_any().unwrap_err().kind(), SystemExceptionKind::BadInvOrder);
    });
}

#[test]
fn a_deferred_request_can_be_polled_until_its_reply_arrives() {
    let server = Server::start();
    let target = server.client();
    let mut request = target.request("hold");
    request.add_in_arg(&1_u32).unwrap();
    assert_eq!(request.poll_response().unwrap_err().minor(), minor::REQUEST_NOT_SENT);
    request.send_deferred().unwrap();
    assert!(request.is_response_expected());
    server.probe.await_held(1);
    assert!(!request.poll_response().unwrap());
    for again in [request.send_deferred(), request.send_oneway()] {
        assert_eq!(again.unwrap_err().minor(), minor::REQUEST_ALREADY_SENT);
    }
    assert_eq!(system(request.invoke().unwrap_err()).minor(), minor::REQUEST_ALREADY_SENT);
    server.probe.open(1);
    request.get_response().unwrap();
    assert!(!request.is_response_expected());
    assert_eq!(request.poll_response().unwrap_err().minor(), minor::RESULT_ALREADY_RECEIVED);
    assert_eq!(system(request.get_response().unwrap_err()).minor(), minor::RESULT_ALREADY_RECEIVED);
    request.invoke().unwrap();
    assert_eq!(request.poll_response().unwrap_err().minor(), minor::REQUEST_IS_SYNCHRONOUS);
}

#[test]
fn multiple_deferred_requests_complete_in_any_order() {
    let server = Server::start();
    let target = server.client();
    let requests: Vec<_> = (0..20)
        .map(|gate: u32| {
            let mut request = target.request("hold");
            request.add_in_arg(&gate).unwrap();
            request
        })
        .collect();
    let mut responses = target.as_object().orb().send_multiple_requests_deferred(requests).unwrap();
    assert_eq!(responses.left(), 20);
    assert!(!responses.poll_next_response());
    for gate in (0..20).rev() {
        server.probe.open(gate);
    }
    let mut received = [false; 20];
    while let Some((index, mut request)) = responses.get_next_response() {
        request.get_response().unwrap();
        assert_eq!(request.argument::<u32>(0).unwrap(), u32::try_from(index).unwrap());
        assert!(!std::mem::replace(&mut received[index], true));
    }
    assert_eq!((received, responses.left()), ([true; 20], 0));
}

#[test]
fn get_next_response_returns_the_first_reply_to_arrive() {
    let server = Server::start();
    let target = server.client();
    let mut held = target.request("hold");
    held.add_in_arg(&1_u32).unwrap();
    // Over its own connection, so that the held call does not delay it.
    let quick = addition(&server.client(), 1, 2);
    let mut responses = target.as_object().orb().send_multiple_requests_deferred(vec![held, quick]).unwrap();
    let (index, mut quick) = responses.get_next_response().unwrap();
    quick.get_response().unwrap();
    assert_eq!((index, quick.return_value::<i32>().unwrap()), (1, 3));
    assert!(!responses.poll_next_response());
    let rest = in_background(move || {
        let (index, mut held) = responses.get_next_response().unwrap();
        held.get_response().unwrap();
        (index, responses.get_next_response().is_none())
    });
    server.probe.await_held(1);
    server.probe.open(1);
    assert_eq!(rest.recv().unwrap(), (0, true));
}

#[test]
fn multiple_one_way_requests_are_sent_at_once() {
    let server = Server::start();
    let target = server.client();
    let mut requests: Vec<_> = (0..5)
        .map(|_| {
            let mut request = target.request("note");
            request.add_in_arg(&[7_u8; 4][..]).unwrap();
            request
        })
        .collect();
    let orb = target.as_object().orb();
    orb.send_multiple_requests_oneway(&mut requests).unwrap();
    assert_eq!(target.count().unwrap(), 5);
    requests[2].send_deferred().unwrap();
    assert!(orb.send_multiple_requests_deferred(requests).is_err());
}

#[test]
fn invoke_async_stores_the_result_in_the_request() {
    let server = Server::start();
    let target = server.client();
    let mut request = addition(&target, 20, 22);
    block_on(request.invoke_async()).unwrap();
    assert_eq!(request.return_value::<i32>().unwrap(), 42);
    // After its future is dropped, the request can be sent again.
    let mut held = target.request("hold");
    held.add_in_arg(&9_u32).unwrap();
    drop(held.invoke_async());
    server.probe.open(9);
    held.invoke().unwrap();
}

#[test]
fn a_described_call_is_asynchronous() {
    let server = Server::start();
    let target = server.client();
    let long = |name: &str| OperationDescription::new(name).parameter(ArgMode::In, "a", TypeCode::LONG);
    let add = long("add").parameter(ArgMode::In, "b", TypeCode::LONG).returns(TypeCode::LONG);
    let hold = OperationDescription::new("hold").parameter(ArgMode::In, "gate", TypeCode::ULONG);
    let octets = TypeCode::sequence(&TypeCode::OCTET, 0).unwrap();
    let note = OperationDescription::new("note").parameter(ArgMode::In, "data", octets).oneway();
    let interface = InterfaceDescription::new(target.as_object().type_id(), "Target");
    let interface = [add, hold, note].into_iter().try_fold(interface, InterfaceDescription::operation).unwrap();
    let object = DynamicObject::new(target.as_object().clone(), interface);
    let sum = block_on(object.call_async("add", &[Any::new(20_i32).unwrap(), Any::new(22_i32).unwrap()])).unwrap();
    assert_eq!(sum.result::<i32>().unwrap(), 42);
    block_on(object.call_async("note", &[Any::new(vec![7_u8; 4]).unwrap()])).unwrap();
    assert_eq!(target.count().unwrap(), 1);
    assert!(block_on(object.call_async("add", &[])).is_err());
    // Dropped at its first wait, it leaves the connection usable.
    let gate = [Any::new(9_u32).unwrap()];
    let mut held = Box::pin(object.call_async("hold", &gate));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(held.as_mut().poll(&mut context).is_pending());
    drop(held);
    server.probe.open(9);
    target.ping().unwrap();
}
