//! Servants that learn at run time what they are asked, and descriptions that calls and servants go by.

use std::sync::{Arc, Mutex, mpsc};

use spandrel::{
    Any, CompletionStatus, Context, ObjectRef, Orb, Poa, SystemException, SystemExceptionKind, TypeCode, Typed,
    dynamic::{
        ArgMode, CreateRequest, DeferredRequest, DescribedCall, DescribedServant, DynAny, DynamicImplementation,
        DynamicObject, DynamicServant, InterfaceDescription, NamedValue, NvList, RequestError, ServerRequest,
        UnknownUserException, ValueTypes, describe,
    },
    minor,
};
use spandrel_orb_tests::{
    probe::{Refused, Target, target::RefuseError},
    support::in_background,
};

/// An ORB that serves, ended when dropped.
struct Serving(Orb, Poa);

impl Serving {
    fn new() -> Self {
        let orb = Orb::builder().build().unwrap();
        let poa = Poa::root(&orb).unwrap();
        Self(orb, poa)
    }

    /// The object, as a client with an ORB of its own sees it.
    fn seen(&self, object: &ObjectRef) -> ObjectRef {
        Orb::builder().build().unwrap().string_to_object(&object.to_string()).unwrap()
    }

    fn serve<D: DynamicImplementation + 'static>(&self, implementation: D) -> ObjectRef {
        self.seen(&self.1.activate(DynamicServant::new(implementation)).unwrap())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.shutdown(true).unwrap();
    }
}

fn parameters(of: &[(&'static str, ArgMode, TypeCode)]) -> NvList {
    of.iter().map(|(name, mode, of)| NamedValue::of_type(*name, *mode, of.clone())).collect()
}

/// Runs some operations of `Probe::Target` by hand.
#[derive(Default)]
struct ByHand {
    held: Mutex<Option<mpsc::Sender<DeferredRequest>>>,
}

impl DynamicImplementation for ByHand {
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
            "panic" => panic!("as asked"),
            // The order in which things may be asked and said (12.3).
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
            // No value for what is to be returned.
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

/// BAD_PARAM as a value.
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
    let serving = Serving::new();
    let target = Target::narrow(&serving.serve(ByHand::default())).unwrap();
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
    // What was sent is too little for what the servant says that it takes.
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
fn a_dynamic_request_is_answered_later_or_never() {
    let serving = Serving::new();
    let (send, held) = mpsc::channel();
    let by_hand = ByHand { held: Mutex::new(Some(send)) };
    let target = Target::narrow(&serving.serve(by_hand)).unwrap();
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

const BROKEN: &str = "interface Paper { attribute long grid raises; };";

/// Types that the other suites do not send.
const SHAPES: &str = r#"
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

fn till() -> Arc<InterfaceDescription> {
    Arc::new(describe(SHAPES).unwrap().interface("Shapes::Till").unwrap())
}

fn money(text: &str) -> Any {
    let of = describe(SHAPES).unwrap().type_code("Shapes::Money").unwrap();
    let mut value = DynAny::of_type(&of).unwrap();
    value.as_fixed().unwrap().set_value(text).unwrap();
    value.to_any().unwrap()
}

/// Serves a `Till` without any generated code.
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
            let said: Vec<_> = context.iter().map(|(name, value)| format!("{name}={value}")).collect();
            Ok(Any::new(&said.join(" ")).unwrap())
        }
        "knock" => Ok(Any::default()),
        other => panic!("{other}"),
    }
}

#[test]
fn an_interface_needs_no_generated_code_at_all() {
    let serving = Serving::new();
    let servant = serving.1.activate(DescribedServant::described(till(), serve)).unwrap();
    let object = serving.seen(&servant);
    assert_eq!(object.type_id(), "IDL:Shapes/Till:1.0");
    assert!(object.is_a("IDL:Shapes/Named:1.0").unwrap() && !object.is_a("IDL:Shapes/Other:1.0").unwrap());
    let till = DynamicObject::new(object, till());
    assert_eq!(till.get("name").unwrap().extract::<String>().unwrap(), "till");
    assert_eq!(till.get("balance").unwrap(), money("12.50"));
    till.set("balance", &money("3.00")).unwrap();
    let outcome = till.call("pay", &[money("1.25"), money("20.00")]).unwrap();
    assert_eq!(outcome.result, money("20.00"));
    let names: Vec<_> = outcome.outs.iter().map(|out| (&*out.name, out.mode)).collect();
    assert_eq!(names, [("purse", ArgMode::InOut), ("coins", ArgMode::Out)]);
    assert_eq!(outcome.outs[0].value, Some(money("1.25")));
    let coins = outcome.outs[1].value.as_ref().unwrap();
    assert_eq!(DynAny::new(coins).unwrap().as_sequence().unwrap().elements().unwrap(), [money("1.25"), money("20.00")]);
    // An `any` takes values of all types, and a value of type `any` is what is in it.
    let anything = till.call("anything", &[Any::new("text").unwrap()]).unwrap();
    assert_eq!(anything.result::<Any>().unwrap(), Any::new("text").unwrap());
    assert_eq!(anything.out::<TypeCode>("of").unwrap(), TypeCode::STRING);
    let mut context = Context::new();
    context.set("place", "here").set("user.name", "ada").set("secret", "no");
    let there = till.with_context(&context).call("where", &[Any::new("x").unwrap()]).unwrap();
    assert_eq!(there.result::<String>().unwrap(), "place=here user.name=ada");
    till.call("knock", &[Any::new(&7_u8).unwrap()]).unwrap();
}

#[test]
fn unions_and_arrays_go_through() {
    let serving = Serving::new();
    let servant = serving.1.activate(DescribedServant::described(till(), serve)).unwrap();
    let till = DynamicObject::new(serving.seen(&servant), till());
    let idl = describe(SHAPES).unwrap();
    let grid = Any::with_type(idl.type_code("Shapes::Matrix").unwrap(), &[[1, 2, 3], [4, 5, 6]]).unwrap();
    let shape = DynAny::of_type(&idl.type_code("Shapes::Shape").unwrap()).unwrap().to_any().unwrap();
    assert_eq!(till.call("turn", &[shape.clone(), grid]).unwrap().result, shape);
}

#[test]
fn exceptions_are_those_that_the_description_lists() {
    let serving = Serving::new();
    let servant = serving.1.activate(DescribedServant::described(till(), serve)).unwrap();
    let till = DynamicObject::new(serving.seen(&servant), till());
    let raised = match till.call("pay", &[money("99999.99"), money("1")]).unwrap_err() {
        RequestError::Raised(raised) => raised,
        other => panic!("{other}"),
    };
    assert_eq!(raised.repository_id(), "IDL:Shapes/Broke:1.0");
    let mut broke = DynAny::new(&raised.exception).unwrap();
    broke.seek(1);
    assert_eq!(broke.string().unwrap(), "too dear");
    // The servant returned something else than the operation does.
    match till.call("pay", &[money("0"), money("1")]).unwrap_err() {
        RequestError::System(wrong) => assert_eq!(wrong.kind(), SystemExceptionKind::Marshal),
        other => panic!("{other}"),
    }
}

#[test]
fn what_does_not_fit_is_refused_before_it_is_sent() {
    // Nobody is there.
    let nobody = Orb::builder().build().unwrap().string_to_object("corbaloc:iiop:1.2@127.0.0.1:1/nobody").unwrap();
    let till = DynamicObject::new(nobody, till());
    let refused = |operation: &str, arguments: &[Any]| match till.call(operation, arguments).unwrap_err() {
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

/// Answers with the context that came.
struct Surrounded;

impl DynamicImplementation for Surrounded {
    fn invoke(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        request.arguments(parameters(&[("what", ArgMode::In, TypeCode::STRING)]))?;
        let context = request.context()?;
        assert_eq!(request.context().unwrap_err().minor(), minor::CTX_OUT_OF_ORDER);
        let said: Vec<String> = context.iter().map(|(name, value)| format!("{name}={value}")).collect();
        request.set_result(&*said.join(" "))
    }

    fn primary_interface(&self, object_id: &[u8]) -> String {
        if object_id.is_empty() { "IDL:Shapes/Till:1.0".into() } else { format!("IDL:Object{}:1.0", object_id.len()) }
    }
}

#[test]
fn contexts_come_behind_the_arguments() {
    let serving = Serving::new();
    let object = serving.serve(Surrounded);
    let mut context = Context::new();
    context.set("place", "here").set("user.name", "ada").set("secret", "no");
    let mut request = object.request("where");
    request.add_in_arg("x").unwrap().set_return_type(TypeCode::STRING).set_context(&context, ["place", "user.*"]);
    request.invoke().unwrap();
    assert_eq!(request.return_value::<String>().unwrap(), "place=here user.name=ada");
}

#[test]
fn each_object_may_be_of_an_interface_of_its_own() {
    let serving = Serving::new();
    let object = serving.serve(Surrounded);
    let mut request = object.request("_repository_id");
    request.set_return_type(TypeCode::STRING).invoke().unwrap();
    let id: String = request.return_value().unwrap();
    assert!(id.starts_with("IDL:Object") && object.is_a(&id).unwrap(), "{id}");
}

#[test]
fn idl_that_is_none_and_names_that_are_not_there_are_said() {
    let broken = describe(BROKEN).unwrap_err();
    assert!(broken.to_string().contains("text.idl"), "{broken}");
    let shapes = describe(SHAPES).unwrap();
    assert_eq!(shapes.interfaces().collect::<Vec<_>>(), ["Shapes::Named", "Shapes::Till"]);
    let absent = shapes.interface("Shapes::Nothing").unwrap_err();
    assert_eq!(absent.to_string(), "the IDL declares no interface `Shapes::Nothing`");
    assert_eq!(shapes.interface("IDL:Shapes/Named:1.0").unwrap().name(), "Named");
    let local = describe("local interface Here { }; interface Fore;").unwrap();
    assert!(local.interface("Here").is_err() && local.interface("Fore").is_err());
}

/// A type may contain itself by way of a typedef, which may be met first (CORBA 3.3 Part 1, 7.11.1.3.1).
#[test]
fn a_recursive_type_is_described_from_its_typedef_on() {
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
fn an_operation_that_cannot_be_described_leaves_the_others() {
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

/// Values of every sort where another type is declared.
const GARDEN: &str = r#"
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

fn plot() -> (Arc<InterfaceDescription>, ValueTypes) {
    let garden = describe(GARDEN).unwrap();
    (Arc::new(garden.interface("Garden::Plot").unwrap()), garden.value_types())
}

/// Gives back what it was given; raises for a plant without a name.
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

fn planted(of: &TypeCode, types: &ValueTypes, text: &str) -> Any {
    let resolve = |url: &str| {
        Orb::builder().build().unwrap().string_to_object(url).map(|it| it.ior().clone()).map_err(|_| String::new())
    };
    DynAny::from_text_with(of, text, types, &resolve).unwrap().to_any().unwrap()
}

fn shown(value: &Any) -> String {
    DynAny::new(value).unwrap().to_string()
}

#[test]
fn values_go_both_ways_as_what_they_are() {
    let serving = Serving::new();
    let (interface, types) = plot();
    let servant = serving.1.activate(DescribedServant::described(interface.clone(), tend)).unwrap();
    let seen = serving.seen(&servant);
    // Through a bridge too, which knows no more than the description.
    let bridge = DescribedServant::described(interface.clone(), DynamicObject::new(seen.clone(), interface.clone()));
    let bridged = serving.seen(&serving.1.activate(bridge).unwrap());
    let of = |name: &str| describe(GARDEN).unwrap().type_code(name).unwrap();
    let plant = of("Garden::Plant");
    let circle = r#"{_id: 1, name: "a", next: {_id: 2, name: "b", next: {_ref: 1}, others: []}, others: [{_ref: 2}]}"#;
    let rose = r#"{_type: "IDL:Garden/Rose:1.0", name: "r", next: null, others: [], thorns: 9}"#;
    for object in [&seen, &bridged] {
        let plot = DynamicObject::new(object.clone(), interface.clone());
        let outcome = plot.call("swap", &[planted(&plant, &types, circle), planted(&plant, &types, rose)]).unwrap();
        assert_eq!(shown(&outcome.result), rose);
        let outs: Vec<_> = outcome.outs.iter().map(|out| shown(out.value.as_ref().unwrap())).collect();
        assert_eq!(outs, [circle.to_owned(), format!("[{circle}, {rose}]")]);
        // A value whose type code is that of the derived type.
        let own = planted(&of("Garden::Rose"), &types, &rose.replace(r#"_type: "IDL:Garden/Rose:1.0", "#, ""));
        let outcome = plot.call("swap", &[own.clone(), own.clone()]).unwrap();
        assert_eq!(shown(&outcome.result), rose);
        plot.set("best", &own).unwrap();
        // What is raised.
        let nameless = planted(&plant, &types, r#"{name: "", next: null, others: []}"#);
        let Err(RequestError::Raised(raised)) = plot.call("swap", &[nameless, own.clone()]) else { panic!() };
        assert_eq!(shown(&raised.exception), format!("{{what: {rose}}}"));

        let named = of("Garden::Named");
        let url = object.to_string();
        let label = r#"{_type: "IDL:Garden/Label:1.0", _value: "l"}"#;
        for text in ["null", rose, &url, label] {
            let outcome = plot.call("pass", &[planted(&named, &types, text)]).unwrap();
            assert_eq!(shown(&outcome.result), text);
        }
        let reference = outcome_of(&plot, "pass", &planted(&TypeCode::object(), &types, &url));
        assert_eq!(reference.to_object::<ObjectRef>().unwrap().unwrap().ior(), object.ior());
        assert_eq!(shown(&outcome_of(&plot, "pass", &own)), rose);
        for text in ["null", rose, label] {
            let value = planted(&TypeCode::value_base(), &types, text);
            assert_eq!(shown(&outcome_of(&plot, "keep", &value)), text);
        }
    }
}

fn outcome_of(object: &DynamicObject, operation: &str, argument: &Any) -> Any {
    object.call(operation, std::slice::from_ref(argument)).unwrap().result
}

/// Requests and skeletons by hand are told which types there are.
#[test]
fn requests_by_hand_know_the_types_that_they_are_told() {
    struct Keeper(ValueTypes);
    impl DynamicImplementation for Keeper {
        fn invoke(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
            request.set_value_types(&self.0);
            let list = request.arguments(parameters(&[("what", ArgMode::In, TypeCode::value_base())]))?;
            let kept = list.get(0).unwrap().value.clone().unwrap();
            request.set_result_any(kept)
        }

        fn primary_interface(&self, _: &[u8]) -> String {
            "IDL:Garden/Plot:1.0".to_owned()
        }
    }
    let serving = Serving::new();
    let (_, types) = plot();
    let rose = r#"{_type: "IDL:Garden/Rose:1.0", name: "r", next: null, others: [], thorns: 9}"#;
    let value = planted(&TypeCode::value_base(), &types, rose);
    let ask = |object: &ObjectRef, types: Option<&ValueTypes>| {
        let mut request = object.request("keep");
        request.add_arg(&NamedValue::new("what", ArgMode::In, value.clone()))?;
        request.set_return_type(TypeCode::value_base());
        if let Some(types) = types {
            request.set_value_types(types);
        }
        request.invoke()?;
        // Sent is what was given, and the other way round.
        assert_eq!(shown(&request.argument_any(0)?), rose);
        request.set_argument_any(0, &value)?;
        Ok::<_, RequestError>(request.return_any()?)
    };
    let knowing = serving.serve(Keeper(types.clone()));
    assert_eq!(shown(&ask(&knowing, Some(&types)).unwrap()), rose);
    let refused = ask(&knowing, None).unwrap_err().to_string();
    assert!(refused.contains("MARSHAL"), "{refused}");
    let refused = ask(&serving.serve(Keeper(ValueTypes::new())), Some(&types)).unwrap_err().to_string();
    assert!(refused.contains("MARSHAL"), "{refused}");
    // A value that is no `Plant` is no argument that is declared as one.
    let plant = describe(GARDEN).unwrap().type_code("Garden::Plant").unwrap();
    let other = NamedValue { type_code: plant, ..NamedValue::new("what", ArgMode::In, Any::new(&1_i32).unwrap()) };
    assert_eq!(knowing.request("keep").add_arg(&other).unwrap_err().kind(), SystemExceptionKind::BadParam);
}
