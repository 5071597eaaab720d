//! Dynamic servants (DSI), and calls and servants that follow interface descriptions compiled at run time.

use std::sync::{Arc, Mutex, mpsc};

use spandrel::{
    CompletionStatus, ObjectRef, Orb, Poa, SystemException, SystemExceptionKind,
    dynamic::{
        ArgMode, CreateRequest, DeferredRequest, DescribedCall, DescribedServant, DynAny, DynamicImplementation,
        DynamicObject, DynamicServant, InterfaceDescription, NamedValue, NvList, RequestError, ServerRequest,
        TextContext, UnknownUserException, ValueTypes, describe,
    },
    minor,
    types::{Any, Context, TypeCode, Typed},
};
use spandrel_orb_tests::{
    probe::{Refused, Target, target::RefuseError},
    support::in_background,
};

/// An ORB with a root adapter; dropping it shuts the ORB down.
struct ServerOrb(Orb, Poa);

impl ServerOrb {
    fn new() -> Self {
        let orb = Orb::builder().build().unwrap();
        let poa = Poa::root(&orb).unwrap();
        Self(orb, poa)
    }

    /// The object as referred to by a client with its own ORB.
    fn as_client(&self, object: &ObjectRef) -> ObjectRef {
        Orb::builder().build().unwrap().string_to_object(&object.to_string()).unwrap()
    }

    fn serve<D: DynamicImplementation + 'static>(&self, implementation: D) -> ObjectRef {
        self.as_client(&self.1.activate(DynamicServant::new(implementation)).unwrap())
    }
}

impl Drop for ServerOrb {
    fn drop(&mut self) {
        self.0.shutdown().unwrap();
    }
}

fn parameters(of: &[(&'static str, ArgMode, TypeCode)]) -> NvList {
    of.iter().map(|(name, mode, of)| NamedValue::of_type(*name, *mode, of.clone())).collect()
}

/// Implements some operations of `Probe::Target` through the DSI.
#[derive(Default)]
struct DynamicTarget {
    held: Mutex<Option<mpsc::Sender<DeferredRequest>>>,
}

impl DynamicImplementation for DynamicTarget {
    fn invoke(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        match request.operation() {
            "ping" => request.arguments(NvList::new()).map(drop),
            "add" => {
                let list = parameters(&[("a", ArgMode::In, TypeCode::LONG), ("b", ArgMode::In, TypeCode::LONG)]);
                let list = request.arguments(list)?;
                let (a, b): (i32, i32) = (list.extract(0)?, list.extract(1)?);
                request.set_result(&(a + b))
            }
            "refuse" => {
                let list = request.arguments(parameters(&[("code", ArgMode::In, TypeCode::LONG)]))?;
                let code = list.extract(0)?;
                request.raise(&Refused { why: "by hand".into(), code })
            }
            "fail" => {
                let list = request.arguments(parameters(&[("minor", ArgMode::In, TypeCode::ULONG)]))?;
                let minor: u32 = list.extract(0)?;
                request.set_exception(bad_param(minor))
            }
            "hold" => {
                request.arguments(parameters(&[("gate", ArgMode::In, TypeCode::ULONG)]))?;
                let deferred = request.defer()?;
                assert!(request.defer().is_err());
                self.held.lock().unwrap().as_ref().unwrap().send(deferred).unwrap();
                Ok(())
            }
            "same" => {
                let of = Option::<Target>::type_code();
                let list = request.arguments(parameters(&[("other", ArgMode::In, of)]))?;
                let same = list.get(0).and_then(|item| item.value.clone()).unwrap();
                request.set_result_any(same)
            }
            "panic" => panic!("intended"),
            // The order in which arguments, context and result are accessed (12.3).
            "stop" => {
                let minors = [
                    request.set_result(&true).unwrap_err().minor(),
                    request.context().unwrap_err().minor(),
                    request.set_exception(Any::new("text").unwrap()).unwrap_err().minor(),
                ];
                assert_eq!(minors, [minor::RESULT_OUT_OF_ORDER, minor::CTX_OUT_OF_ORDER, minor::NOT_AN_EXCEPTION]);
                request.arguments(NvList::new())?;
                assert_eq!(request.arguments(NvList::new()).unwrap_err().minor(), minor::ARGUMENTS_OUT_OF_ORDER);
                request.set_result(&true)?;
                assert_eq!(request.set_result(&true).unwrap_err().minor(), minor::RESULT_OUT_OF_ORDER);
                Ok(())
            }
            // The out parameter has no value.
            "count" => {
                request.arguments(parameters(&[("missing", ArgMode::Out, TypeCode::LONG)]))?;
                request.set_result(&1_u32)
            }
            _ => Err(request.unknown_operation()),
        }
    }

    fn primary_interface(&self, _: &[u8]) -> String {
        "IDL:Probe/Target:1.0".into()
    }
}

/// A BAD_PARAM exception as an `any`.
fn bad_param(minor: u32) -> Any {
    let completed = TypeCode::enumeration(
        "IDL:omg.org/CORBA/completion_status:1.0",
        "completion_status",
        &["COMPLETED_YES", "COMPLETED_NO", "COMPLETED_MAYBE"],
    );
    let members = [("minor", TypeCode::ULONG), ("completed", completed.unwrap())];
    let id = "IDL:omg.org/CORBA/BAD_PARAM:1.0";
    let of = TypeCode::exception(id, "BAD_PARAM", &members).unwrap();
    Any::write(of, |out| {
        out.short_str(id)?;
        out.u32(minor);
        out.u32(1);
        Ok(())
    })
    .unwrap()
}

#[test]
fn a_stub_calls_a_dynamic_servant() {
    let server = ServerOrb::new();
    let target = Target::narrow(&server.serve(DynamicTarget::default())).unwrap();
    target.ping().unwrap();
    assert_eq!(target.add(40, 2).unwrap(), 42);
    match target.refuse(7).unwrap_err() {
        RefuseError::Refused(refused) => assert_eq!((refused.code, &*refused.why), (7, "by hand")),
        other => panic!("{other}"),
    }
    let failed = target.fail(0x77).unwrap_err();
    assert_eq!((failed.kind(), failed.minor()), (SystemExceptionKind::BadParam, 0x77));
    assert_eq!(failed.completed(), CompletionStatus::No);
    assert_eq!(target.same(Some(&target)).unwrap(), Some(target.clone()));
    assert_eq!(target.panic().unwrap_err().kind(), SystemExceptionKind::Unknown);
    assert!(target.stop().unwrap());
    let missing = target.count().unwrap_err();
    assert_eq!((missing.kind(), missing.completed()), (SystemExceptionKind::Marshal, CompletionStatus::Yes));
    assert_eq!(target.echo("x").unwrap_err().minor(), minor::UNKNOWN_OPERATION);
    // The request has fewer octets than the servant's parameters need.
    let mut short = target.request("add");
    short.add_in_arg(&1_i16).unwrap().set_return_type(TypeCode::LONG);
    match short.invoke().unwrap_err() {
        RequestError::System(exception) => assert_eq!(exception.kind(), SystemExceptionKind::Marshal),
        other => panic!("{other}"),
    }
    assert!(!target.as_object().is_a("IDL:Other:1.0").unwrap());
    assert!(!target.as_object().non_existent().unwrap());
}

#[test]
fn a_deferred_dynamic_request_is_answered_or_dropped() {
    let server = ServerOrb::new();
    let (send, held) = mpsc::channel();
    let dynamic = DynamicTarget { held: Mutex::new(Some(send)) };
    let target = Target::narrow(&server.serve(dynamic)).unwrap();
    let hold = || {
        let target = target.clone();
        in_background(move || target.hold(5))
    };
    let first = hold();
    let mut request = held.recv().unwrap();
    assert_eq!(request.operation(), "hold");
    assert_eq!(request.list().unwrap().extract::<u32>(0).unwrap(), 5);
    assert!(!request.is_cancelled());
    request.finish(Ok(()));
    first.recv().unwrap().unwrap();

    let second = hold();
    let mut request = held.recv().unwrap();
    request.set_exception(bad_param(3)).unwrap();
    request.finish(Ok(()));
    assert_eq!(second.recv().unwrap().unwrap_err().kind(), SystemExceptionKind::BadParam);

    let third = hold();
    held.recv().unwrap().finish(Err(SystemException::no_permission(9, CompletionStatus::No)));
    assert_eq!(third.recv().unwrap().unwrap_err().kind(), SystemExceptionKind::NoPermission);

    let fourth = hold();
    drop(held.recv().unwrap());
    assert_eq!(fourth.recv().unwrap().unwrap_err().kind(), SystemExceptionKind::NoResponse);
}

const BROKEN_IDL: &str = "interface Paper { attribute long grid raises; };";

/// Types that other tests do not send.
const SHAPES_IDL: &str = r#"
    module Shapes {
        typedef long Matrix[2][3];
        typedef fixed<7, 2> Money;
        typedef sequence<Money> Moneys;
        enum Kind { round, square };
        union Shape switch (Kind) { case round: double radius; default: Matrix grid; };
        exception Broke { Money missing; string why; };
        interface Named { readonly attribute string name; };
        interface Till : Named {
            attribute Money balance;
            Money pay(in Money price, inout Money purse, out Moneys coins) raises (Broke);
            Shape turn(in Shape one, in Matrix by);
            any anything(in any what, out CORBA::TypeCode of);
            string where(in string what) context ("place", "user.*");
            oneway void knock(in octet how);
        };
    };
"#;

fn till_description() -> Arc<InterfaceDescription> {
    Arc::new(describe(SHAPES_IDL).unwrap().interface("Shapes::Till").unwrap())
}

fn money(text: &str) -> Any {
    let of = describe(SHAPES_IDL).unwrap().type_code("Shapes::Money").unwrap();
    let mut value = DynAny::of_type(&of).unwrap();
    value.as_fixed().unwrap().set_value(text).unwrap();
    value.to_any().unwrap()
}

/// Implements `Till` without generated code.
fn serve(call: &DescribedCall<'_>, list: &mut NvList) -> Result<Any, RequestError> {
    let operation = call.operation;
    let value = |list: &NvList, index: usize| list.get(index).and_then(|item| item.value.clone()).unwrap();
    match &*operation.name {
        "_get_name" => Ok(Any::new("till").unwrap()),
        "_get_balance" => Ok(money("12.50")),
        "_set_balance" => Ok(Any::default()),
        "pay" if value(list, 0) == money("0.00") => Ok(Any::new("not what it returns").unwrap()),
        "pay" if value(list, 0) == money("99999.99") => {
            let of = operation.exceptions[0].clone();
            let mut broke = DynAny::of_type(&of).unwrap();
            broke.seek(1);
            broke.insert_string("too dear").unwrap();
            Err(UnknownUserException { exception: broke.to_any().unwrap() }.into())
        }
        "pay" => {
            let coins = TypeCode::sequence(&money("0").type_code().clone(), 0).unwrap();
            let mut given = DynAny::of_type(&coins).unwrap();
            given.as_sequence().unwrap().set_elements(&[value(list, 0), value(list, 1)]).unwrap();
            let (price, purse) = (value(list, 0), value(list, 1));
            list.set_any(1, &price)?;
            list.set_any(2, &given.to_any().unwrap())?;
            Ok(purse)
        }
        "turn" => Ok(value(list, 0)),
        "anything" => {
            let what: Any = list.extract(0)?;
            list.set(1, what.type_code())?;
            Ok(what)
        }
        "where" => {
            let context = call.context.as_ref().unwrap();
            let values: Vec<_> = context.iter().map(|(name, value)| format!("{name}={value}")).collect();
            Ok(Any::new(values.join(" ")).unwrap())
        }
        "knock" => Ok(Any::default()),
        other => panic!("{other}"),
    }
}

#[test]
fn a_described_interface_is_called_and_served_without_generated_code() {
    let server = ServerOrb::new();
    let servant = server.1.activate(DescribedServant::described(till_description(), serve)).unwrap();
    let object = server.as_client(&servant);
    assert_eq!(object.type_id(), "IDL:Shapes/Till:1.0");
    assert!(object.is_a("IDL:Shapes/Named:1.0").unwrap() && !object.is_a("IDL:Shapes/Other:1.0").unwrap());
    let till_description = DynamicObject::new(object, till_description());
    assert_eq!(till_description.get("name").unwrap().extract::<String>().unwrap(), "till");
    assert_eq!(till_description.get("balance").unwrap(), money("12.50"));
    till_description.set("balance", &money("3.00")).unwrap();
    let outcome = till_description.call("pay", &[money("1.25"), money("20.00")]).unwrap();
    assert_eq!(outcome.result, money("20.00"));
    let names: Vec<_> = outcome.outs.iter().map(|out| (&*out.name, out.mode)).collect();
    assert_eq!(names, [("purse", ArgMode::InOut), ("coins", ArgMode::Out)]);
    assert_eq!(outcome.outs[0].value, Some(money("1.25")));
    let coins = outcome.outs[1].value.as_ref().unwrap();
    assert_eq!(DynAny::new(coins).unwrap().as_sequence().unwrap().elements().unwrap(), [money("1.25"), money("20.00")]);
    // A parameter of type `any` takes values of all types; an argument of type `any` is passed as its
    // content.
    let anything = till_description.call("anything", &[Any::new("text").unwrap()]).unwrap();
    assert_eq!(anything.result::<Any>().unwrap(), Any::new("text").unwrap());
    assert_eq!(anything.out::<TypeCode>("of").unwrap(), TypeCode::STRING);
    let mut context = Context::new();
    context.set("place", "here").set("user.name", "ada").set("secret", "no");
    let there = till_description.with_context(&context).call("where", &[Any::new("x").unwrap()]).unwrap();
    assert_eq!(there.result::<String>().unwrap(), "place=here user.name=ada");
    till_description.call("knock", &[Any::new(7_u8).unwrap()]).unwrap();
}

#[test]
fn unions_and_arrays_are_marshaled_by_description() {
    let server = ServerOrb::new();
    let servant = server.1.activate(DescribedServant::described(till_description(), serve)).unwrap();
    let till_description = DynamicObject::new(server.as_client(&servant), till_description());
    let idl = describe(SHAPES_IDL).unwrap();
    let grid = Any::with_type(idl.type_code("Shapes::Matrix").unwrap(), &[[1, 2, 3], [4, 5, 6]]).unwrap();
    let shape = DynAny::of_type(&idl.type_code("Shapes::Shape").unwrap()).unwrap().to_any().unwrap();
    assert_eq!(till_description.call("turn", &[shape.clone(), grid]).unwrap().result, shape);
}

#[test]
fn only_exceptions_of_the_description_are_raised() {
    let server = ServerOrb::new();
    let servant = server.1.activate(DescribedServant::described(till_description(), serve)).unwrap();
    let till_description = DynamicObject::new(server.as_client(&servant), till_description());
    let raised = match till_description.call("pay", &[money("99999.99"), money("1")]).unwrap_err() {
        RequestError::Raised(raised) => raised,
        other => panic!("{other}"),
    };
    assert_eq!(raised.repository_id(), "IDL:Shapes/Broke:1.0");
    let mut broke = DynAny::new(&raised.exception).unwrap();
    broke.seek(1);
    assert_eq!(broke.string().unwrap(), "too dear");
    // The servant returned a value of another type than the operation's result.
    match till_description.call("pay", &[money("0"), money("1")]).unwrap_err() {
        RequestError::System(wrong) => assert_eq!(wrong.kind(), SystemExceptionKind::Marshal),
        other => panic!("{other}"),
    }
}

#[test]
fn arguments_that_do_not_match_the_description_are_refused_before_sending() {
    // The address is unreachable: nothing may be sent.
    let unreachable =
        Orb::builder().build().unwrap().string_to_object("corbaloc:iiop:1.2@127.0.0.1:1/no-such-key").unwrap();
    let till_description = DynamicObject::new(unreachable, till_description());
    let refused = |operation: &str, arguments: &[Any]| match till_description.call(operation, arguments).unwrap_err() {
        RequestError::System(exception) => exception,
        other => panic!("{other}"),
    };
    let count = refused("pay", &[money("1")]);
    assert_eq!(count.kind(), SystemExceptionKind::BadParam);
    assert!(count.to_string().contains("takes 2 arguments, not 1"), "{count}");
    let of = refused("pay", &[money("1"), Any::new("text").unwrap()]);
    assert_eq!(of.kind(), SystemExceptionKind::BadParam);
    assert!(of.to_string().contains("`purse` of `pay`") && of.to_string().contains("not `string`"), "{of}");
    assert_eq!(refused("fly", &[]).kind(), SystemExceptionKind::BadOperation);
    assert_eq!(refused("_set_name", &[Any::new("no").unwrap()]).kind(), SystemExceptionKind::BadOperation);
}

/// A dynamic servant that returns its request's context.
struct ContextEcho;

impl DynamicImplementation for ContextEcho {
    fn invoke(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        request.arguments(parameters(&[("what", ArgMode::In, TypeCode::STRING)]))?;
        let context = request.context()?;
        assert_eq!(request.context().unwrap_err().minor(), minor::CTX_OUT_OF_ORDER);
        let values: Vec<String> = context.iter().map(|(name, value)| format!("{name}={value}")).collect();
        request.set_result(&*values.join(" "))
    }

    fn primary_interface(&self, object_id: &[u8]) -> String {
        if object_id.is_empty() { "IDL:Shapes/Till:1.0".into() } else { format!("IDL:Object{}:1.0", object_id.len()) }
    }
}

#[test]
fn contexts_are_sent_behind_the_arguments() {
    let server = ServerOrb::new();
    let object = server.serve(ContextEcho);
    let mut context = Context::new();
    context.set("place", "here").set("user.name", "ada").set("secret", "no");
    let mut request = object.request("where");
    request.add_in_arg("x").unwrap().set_return_type(TypeCode::STRING).set_context(&context, ["place", "user.*"]);
    request.invoke().unwrap();
    assert_eq!(request.return_value::<String>().unwrap(), "place=here user.name=ada");
}

#[test]
fn primary_interface_may_differ_for_each_object() {
    let server = ServerOrb::new();
    let object = server.serve(ContextEcho);
    let mut request = object.request("_repository_id");
    request.set_return_type(TypeCode::STRING).invoke().unwrap();
    let id: String = request.return_value().unwrap();
    assert!(id.starts_with("IDL:Object") && object.is_a(&id).unwrap(), "{id}");
}

#[test]
fn invalid_idl_and_unknown_interfaces_are_reported() {
    let broken = describe(BROKEN_IDL).unwrap_err();
    assert!(broken.to_string().contains("text.idl"), "{broken}");
    let shapes = describe(SHAPES_IDL).unwrap();
    assert_eq!(shapes.interfaces().collect::<Vec<_>>(), ["Shapes::Named", "Shapes::Till"]);
    let absent = shapes.interface("Shapes::Nothing").unwrap_err();
    assert_eq!(absent.to_string(), "the IDL declares no interface `Shapes::Nothing`");
    assert_eq!(shapes.interface("IDL:Shapes/Named:1.0").unwrap().name(), "Named");
    let local = describe("local interface Here { }; interface Fore;").unwrap();
    assert!(local.interface("Here").is_err() && local.interface("Fore").is_err());
}

/// A type may contain itself through a typedef that is declared first (CORBA 3.3 Part 1, 7.11.1.3.1).
#[test]
fn a_recursive_type_can_be_described_from_its_typedef() {
    const IDL: &str = "
        struct Elt; typedef sequence<Elt> Elts; struct Elt { string name; Elts inner; };
        interface J { Elts b(); Elt c(in Elts e); };
    ";
    let idl = describe(IDL).unwrap();
    let (elts, elt) = (idl.type_code("Elts").unwrap(), idl.type_code("Elt").unwrap());
    assert!(!elts.is_open() && elts.without_aliases().content_type().unwrap().equal(&elt));
    assert!(elt.member_type(1).unwrap().equal(&elts));
    let described = describe(IDL).unwrap().interface("J").unwrap();
    assert!(described.find("b").unwrap().result.equal(&elts));
    let text = r#"[{name: "a", inner: [{name: "b", inner: []}]}]"#;
    assert_eq!(DynAny::from_text(&elts, text).unwrap().to_string(), text);
}

#[test]
fn an_undescribable_operation_does_not_affect_the_others() {
    let idl = describe(
        "native Handle;
         interface Base { void give(in Handle h); readonly attribute Handle grip; };
         interface K : Base { long fine(in long x); };",
    );
    let described = idl.unwrap().interface("K").unwrap();
    assert_eq!(described.find("fine").unwrap().to_string(), "long fine(in long x)");
    assert!(described.find("give").is_none() && described.find("_get_grip").is_none());
    let left_out: Vec<&str> = described.undescribed().iter().map(|it| &*it.name).collect();
    assert_eq!(left_out, ["give", "grip"]);
    assert!(described.undescribed()[0].reason.contains("Handle"), "{}", described.undescribed()[0].reason);
    let nowhere = "corbaloc::127.0.0.1:1/x";
    let object = DynamicObject::new(Orb::builder().build().unwrap().string_to_object(nowhere).unwrap(), described);
    let refused = object.call("give", &[]).unwrap_err().to_string();
    assert!(refused.contains("BAD_OPERATION") && refused.contains("Handle"), "{refused}");
}

/// Values of derived types where base types are declared.
const VALUE_IDL: &str = r#"
    module Garden {
        valuetype Plant { public string name; public Plant next; public sequence<Plant> others; };
        valuetype Rose : Plant { public long thorns; };
        valuetype Label string;
        abstract interface Named {};
        interface Gardener : Named {};
        exception Withered { Plant what; };
        interface Plot : Named {
            attribute Plant best;
            Plant swap(in Plant one, inout Plant two, out sequence<Plant> both) raises (Withered);
            Named pass(in Named what);
            ValueBase keep(in ValueBase what);
        };
    };
"#;

fn plot_description() -> (Arc<InterfaceDescription>, ValueTypes) {
    let garden = describe(VALUE_IDL).unwrap();
    (Arc::new(garden.interface("Garden::Plot").unwrap()), garden.value_types())
}

/// Returns its arguments; raises for a plant without a name.
fn tend(call: &DescribedCall<'_>, list: &mut NvList) -> Result<Any, RequestError> {
    let value = |list: &NvList, index: usize| list.get(index).and_then(|item| item.value.clone()).unwrap();
    match &*call.operation.name {
        "swap" => {
            let (one, two) = (value(list, 0), value(list, 1));
            if DynAny::new(&one).unwrap().components()[0].string() == Ok("") {
                let mut withered = DynAny::of_type(&call.operation.exceptions[0]).unwrap();
                withered.current_component_mut().unwrap().unwrap().from_any(&two).unwrap();
                return Err(UnknownUserException { exception: withered.to_any().unwrap() }.into());
            }
            let mut both = DynAny::of_type(&list.get(2).unwrap().type_code).unwrap();
            both.as_sequence().unwrap().set_elements(&[one.clone(), two.clone()]).unwrap();
            list.set_any(1, &one)?;
            list.set_any(2, &both.to_any().unwrap())?;
            Ok(two)
        }
        _ => Ok(list.get(0).map_or_else(Any::default, |item| item.value.clone().unwrap())),
    }
}

fn value_of(of: &TypeCode, types: &ValueTypes, text: &str) -> Any {
    let resolve = |url: &str| {
        Orb::builder().build().unwrap().string_to_object(url).map(|it| it.ior().clone()).map_err(|_| String::new())
    };
    let context = TextContext::new().value_types(types).references(&resolve);
    DynAny::from_text_with(of, text, &context).unwrap().to_any().unwrap()
}

fn text_of(value: &Any) -> String {
    DynAny::new(value).unwrap().to_string()
}

#[test]
fn values_keep_their_derived_types_in_both_directions() {
    let server = ServerOrb::new();
    let (interface, types) = plot_description();
    let servant = server.1.activate(DescribedServant::described(interface.clone(), tend)).unwrap();
    let as_client = server.as_client(&servant);
    // Also through a bridge that has only the description.
    let bridge =
        DescribedServant::described(interface.clone(), DynamicObject::new(as_client.clone(), interface.clone()));
    let bridged = server.as_client(&server.1.activate(bridge).unwrap());
    let of = |name: &str| describe(VALUE_IDL).unwrap().type_code(name).unwrap();
    let plant = of("Garden::Plant");
    let circle = r#"{_id: 1, name: "a", next: {_id: 2, name: "b", next: {_ref: 1}, others: []}, others: [{_ref: 2}]}"#;
    let rose = r#"{_type: "IDL:Garden/Rose:1.0", name: "r", next: null, others: [], thorns: 9}"#;
    for object in [&as_client, &bridged] {
        let plot_description = DynamicObject::new(object.clone(), interface.clone());
        let outcome =
            plot_description.call("swap", &[value_of(&plant, &types, circle), value_of(&plant, &types, rose)]).unwrap();
        assert_eq!(text_of(&outcome.result), rose);
        let outs: Vec<_> = outcome.outs.iter().map(|out| text_of(out.value.as_ref().unwrap())).collect();
        assert_eq!(outs, [circle.to_owned(), format!("[{circle}, {rose}]")]);
        // A value with the type code of the derived type.
        let own = value_of(&of("Garden::Rose"), &types, &rose.replace(r#"_type: "IDL:Garden/Rose:1.0", "#, ""));
        let outcome = plot_description.call("swap", &[own.clone(), own.clone()]).unwrap();
        assert_eq!(text_of(&outcome.result), rose);
        plot_description.set("best", &own).unwrap();
        // A value inside a user exception.
        let nameless = value_of(&plant, &types, r#"{name: "", next: null, others: []}"#);
        let Err(RequestError::Raised(raised)) = plot_description.call("swap", &[nameless, own.clone()]) else {
            panic!()
        };
        assert_eq!(text_of(&raised.exception), format!("{{what: {rose}}}"));

        let named = of("Garden::Named");
        let url = object.to_string();
        let label = r#"{_type: "IDL:Garden/Label:1.0", _value: "l"}"#;
        for text in ["null", rose, &url, label] {
            let outcome = plot_description.call("pass", &[value_of(&named, &types, text)]).unwrap();
            assert_eq!(text_of(&outcome.result), text);
        }
        let reference = outcome_of(&plot_description, "pass", &value_of(&TypeCode::object(), &types, &url));
        assert_eq!(reference.to_object::<ObjectRef>().unwrap().unwrap().ior(), object.ior());
        assert_eq!(text_of(&outcome_of(&plot_description, "pass", &own)), rose);
        for text in ["null", rose, label] {
            let value = value_of(&TypeCode::value_base(), &types, text);
            assert_eq!(text_of(&outcome_of(&plot_description, "keep", &value)), text);
        }
    }
}

fn outcome_of(object: &DynamicObject, operation: &str, argument: &Any) -> Any {
    object.call(operation, std::slice::from_ref(argument)).unwrap().result
}

/// Dynamic requests and servants decode the value types that they are given.
#[test]
fn dynamic_requests_and_servants_decode_the_given_value_types() {
    struct EchoServant(ValueTypes);
    impl DynamicImplementation for EchoServant {
        fn invoke(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
            request.set_value_types(&self.0);
            let list = request.arguments(parameters(&[("what", ArgMode::In, TypeCode::value_base())]))?;
            let echoed = list.get(0).unwrap().value.clone().unwrap();
            request.set_result_any(echoed)
        }

        fn primary_interface(&self, _: &[u8]) -> String {
            "IDL:Garden/Plot:1.0".to_owned()
        }
    }
    let server = ServerOrb::new();
    let (_, types) = plot_description();
    let rose = r#"{_type: "IDL:Garden/Rose:1.0", name: "r", next: null, others: [], thorns: 9}"#;
    let value = value_of(&TypeCode::value_base(), &types, rose);
    let invoke_keep = |object: &ObjectRef, types: Option<&ValueTypes>| {
        let mut request = object.request("keep");
        request.add_arg(&NamedValue::new("what", ArgMode::In, value.clone()))?;
        request.set_return_type(TypeCode::value_base());
        if let Some(types) = types {
            request.set_value_types(types);
        }
        request.invoke()?;
        // The argument keeps the value sent, and can be set again.
        assert_eq!(text_of(&request.argument_any(0)?), rose);
        request.set_argument_any(0, &value)?;
        Ok::<_, RequestError>(request.return_any()?)
    };
    let with_types = server.serve(EchoServant(types.clone()));
    assert_eq!(text_of(&invoke_keep(&with_types, Some(&types)).unwrap()), rose);
    let refused = invoke_keep(&with_types, None).unwrap_err().to_string();
    assert!(refused.contains("MARSHAL"), "{refused}");
    let refused = invoke_keep(&server.serve(EchoServant(ValueTypes::new())), Some(&types)).unwrap_err().to_string();
    assert!(refused.contains("MARSHAL"), "{refused}");
    // A value of another type is refused for an argument of type `Plant`.
    let plant = describe(VALUE_IDL).unwrap().type_code("Garden::Plant").unwrap();
    let other = NamedValue { type_code: plant, ..NamedValue::new("what", ArgMode::In, Any::new(1_i32).unwrap()) };
    assert_eq!(with_types.request("keep").add_arg(&other).unwrap_err().kind(), SystemExceptionKind::BadParam);
}
