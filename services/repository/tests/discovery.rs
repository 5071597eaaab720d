//! Interfaces that clients and servers without IDL find in the repository (CORBA 3.3 Part 1, 8.3.1).

use spandrel::dynamic::{DescribedCall, DescribedServant, DynamicObject, NvList, RequestError, TextContext, describe};
use spandrel::services::repository::{documentation, fill, interface_by_id, interface_of, repository_of, type_by_id};
use spandrel::types::Any;
use spandrel::{CompletionStatus, Endpoint, Orb, Poa, SystemException, SystemExceptionKind, minor};

use crate::support::{Served, call};

const IDL: &str = "module Bank {
    /** Why not. */
    enum Reason {
        /** Too much. */
        limit, other };
    exception Refused { /** The reason. */ Reason why; };
    interface Base { /** In cents. */ readonly attribute long long balance; };
    /** An account. */
    interface Account : Base { /** Adds. */ long long deposit(in long long cents) raises (Refused); }; };";

#[test]
fn an_object_is_called_without_idl() {
    let folder = tempfile::tempdir().expect("a folder");
    let served = Served::start(folder.path());
    let idl = describe(IDL).expect("valid IDL");
    let url = served.repository.reference().to_string();
    let mut args = vec!["-ORBInitRef".to_owned(), format!("InterfaceRepository={url}")];
    let bank = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).take_args(&mut args).expect("an option");
    let bank = bank.build().expect("an ORB");
    let deposit = |_: &DescribedCall<'_>, list: &mut NvList| -> Result<Any, RequestError> {
        Ok(Any::new(list.extract::<i64>(0)? + 1).expect("a value"))
    };
    let account = DescribedServant::described(idl.interface("Bank::Account").expect("an interface"), deposit);
    let account = Poa::root(&bank).expect("the adapter").activate(account).expect("an object");

    let client = Orb::builder().build().expect("an ORB");
    let object = client.string_to_object(&account.to_string()).expect("a reference");
    // The repository does not know the interface yet.
    let error = object.interface().expect_err("no definition");
    assert_eq!((error.kind(), error.minor()), (SystemExceptionKind::IntfRepos, minor::NO_SUCH_INTERFACE));
    fill(&served.root, &idl).expect("definitions");
    let definition = object.interface().expect("an answer").expect("a definition");
    assert_eq!(call::<String>(&definition, "_get_id", &[]).expect("an id"), "IDL:Bank/Account:1.0");

    // The client has no repository of its own: the server names it.
    let interface = interface_of(&client, &object).expect("an interface");
    assert!(interface.is_a("IDL:Bank/Base:1.0") && interface.find("_get_balance").is_some());
    // The comments are those of the IDL.
    let repository = repository_of(&client, &object).expect("a repository");
    for name in ["Bank::Reason", "::Bank::Reason", "IDL:Bank/Reason:1.0"] {
        let reason = type_by_id(&repository, name).expect("an answer").expect("a type");
        assert_eq!(reason, idl.type_code("Bank::Reason").expect("a type"), "{name}");
    }
    for name in ["Bank", "Bank::Account::deposit", "Bank::Base::balance", "Bank::Nothing", "IDL:Bank/Nothing:1.0"] {
        assert_eq!(type_by_id(&repository, name).expect("an answer"), None, "{name}");
    }
    let found = documentation(&repository, &interface).expect("documentation");
    let documented = interface.clone().with_documentation(&found);
    let read = idl.interface("Bank::Account").expect("an interface");
    for of in [&documented, &read] {
        let text = |text: Option<&str>| text.map(|text| text.trim().to_owned());
        assert_eq!(text(of.documentation().of("IDL:Bank/Account:1.0")).as_deref(), Some("An account."));
        assert_eq!(text(of.documentation_of("deposit")).as_deref(), Some("Adds."));
        assert_eq!(text(of.documentation_of("_get_balance")).as_deref(), Some("In cents."));
        assert_eq!(text(of.documentation().of_part("IDL:Bank/Reason:1.0", "limit")).as_deref(), Some("Too much."));
        assert_eq!(text(of.documentation().of_part("IDL:Bank/Refused:1.0", "why")).as_deref(), Some("The reason."));
    }
    let outcome = DynamicObject::new(object, interface).call("deposit", &[Any::new(500_i64).expect("a value")]);
    assert_eq!(outcome.expect("a call").result.extract::<i64>().expect("a number"), 501);
    bank.shutdown().expect("the end");
    client.shutdown().expect("the end");
    served.stop();
}

#[test]
fn a_server_without_a_repository_says_so() -> Result<(), SystemException> {
    let server = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().expect("an ORB");
    let idl = describe(IDL).expect("valid IDL");
    let fails = |_: &DescribedCall<'_>, _: &mut NvList| -> Result<Any, RequestError> {
        Err(SystemException::no_implement(0, CompletionStatus::No).into())
    };
    let servant = DescribedServant::described(idl.interface("Bank::Base").expect("an interface"), fails);
    let object = Poa::root(&server)?.activate(servant)?;
    let client = Orb::builder().build().expect("an ORB");
    let object = client.string_to_object(&object.to_string())?;
    let error = object.interface().expect_err("no repository");
    assert_eq!((error.kind(), error.minor()), (SystemExceptionKind::IntfRepos, minor::NO_INTERFACE_REPOSITORY));
    let error = interface_of(&client, &object).expect_err("no repository");
    assert_eq!(error.kind(), SystemExceptionKind::IntfRepos);
    client.shutdown()?;
    server.shutdown()
}

/// As those of an IDL file: a value of a derived type is read where its base is declared.
#[test]
fn an_interface_knows_the_derived_types_of_its_values() {
    let folder = tempfile::tempdir().expect("a folder");
    let served = Served::start(folder.path());
    let idl = describe(
        "valuetype Node { public long number; };
        module Further { module Inside {
            valuetype Leaf : Node { public string name; };
            abstract valuetype Basis {};
            valuetype Carrier : Leaf { public Basis load; };
            valuetype Load : Basis { public short weight; };
            valuetype Unrelated { public long other; };
        }; };
        interface Nodes { void put(in Node node); };
        interface Numbers { void put(in long number); };",
    )
    .expect("valid IDL");
    fill(&served.root, &idl).expect("definitions");
    let repository = served.repository.reference();
    let interface = interface_by_id(repository, "IDL:Nodes:1.0").expect("an interface");
    let mut ids: Vec<_> = interface.value_types().iter().map(|of| of.id().expect("an id")).collect();
    ids.sort_unstable();
    let inside = |name: &str| format!("IDL:Further/Inside/{name}:1.0");
    // The abstract value type in one of them may be any.
    let expected = ["Carrier", "Leaf", "Load", "Unrelated"].map(inside);
    assert_eq!(
        ids.iter().filter(|id| !id.contains("Basis")).copied().collect::<Vec<_>>(),
        [&expected[..], &["IDL:Node:1.0".to_owned()]].concat()
    );
    let context = TextContext::new().value_types(interface.value_types());
    let put = interface.find("put").expect("an operation");
    put.read_arguments(r#"{"node": {"_type": "IDL:Further/Inside/Leaf:1.0", "number": 1, "name": "x"}}"#, &context)
        .expect("a derived value");
    let numbers = interface_by_id(repository, "IDL:Numbers:1.0").expect("an interface");
    assert!(numbers.value_types().is_empty());
}
