//! The operations of the standard on each kind of definition (CORBA 3.3 Part 1, 14.5).

use spandrel::services::repository::corba::{
    AttributeMode, DefinitionKind, IdlType, OperationMode, ParameterDescription, ParameterMode, PrimitiveKind,
    StructMember, UnionMember, contained, container, interface_def::FullInterfaceDescription,
};
use spandrel::types::{Any, Interface as _, TcKind, TypeCode};
use spandrel::{ObjectRef, SystemExceptionKind as Kind, minor};

use crate::support::{Served, call, failure, lookup_id, make, send};

fn primitive(root: &ObjectRef, kind: PrimitiveKind) -> Option<IdlType> {
    Some(IdlType::from_object(make(root, "get_primitive", &[&kind])))
}

fn member(name: &str, idl_type: &Option<IdlType>) -> StructMember {
    StructMember { name: name.to_owned(), r#type: TypeCode::VOID, type_def: idl_type.clone() }
}

fn none() -> Vec<Option<ObjectRef>> {
    Vec::new()
}

fn started() -> (tempfile::TempDir, Served) {
    let folder = tempfile::tempdir().expect("a folder");
    let served = Served::start(folder.path());
    (folder, served)
}

#[test]
fn all_kinds_are_created_and_described() {
    let (_folder, served) = started();
    let root = &served.root;
    let long = primitive(root, PrimitiveKind::PkLong);
    let module = make(root, "create_module", &[&"IDL:M:1.0", &"M", &"1.0"]);
    let point = make(&module, "create_struct", &[&"IDL:M/P:1.0", &"P", &"1.0", &vec![member("x", &long)]]);
    make(&module, "create_exception", &[&"IDL:M/E:1.0", &"E", &"1.0", &vec![member("why", &long)]]);
    make(&module, "create_enum", &[&"IDL:M/C:1.0", &"C", &"1.0", &vec!["red".to_owned(), "green".to_owned()]]);
    let branch = |name: &str, label: Any| UnionMember {
        name: name.to_owned(),
        label,
        r#type: TypeCode::VOID,
        type_def: long.clone(),
    };
    let branches = vec![branch("a", Any::new(1_i32).expect("a label")), branch("b", Any::new(0_u8).expect("default"))];
    let union = make(&module, "create_union", &[&"IDL:M/U:1.0", &"U", &"1.0", &long, &branches]);
    make(&module, "create_alias", &[&"IDL:M/L:1.0", &"L", &"1.0", &long]);
    make(&module, "create_native", &[&"IDL:M/N:1.0", &"N", &"1.0"]);
    make(&module, "create_value_box", &[&"IDL:M/B:1.0", &"B", &"1.0", &long]);
    make(&module, "create_constant", &[&"IDL:M/K:1.0", &"K", &"1.0", &long, &Any::new(7_i32).expect("a value")]);
    let base = make(&module, "create_interface", &[&"IDL:M/Base:1.0", &"Base", &"1.0", &none()]);
    let interface = make(&module, "create_interface", &[&"IDL:M/I:1.0", &"I", &"1.0", &vec![Some(base.clone())]]);
    make(&module, "create_abstract_interface", &[&"IDL:M/A:1.0", &"A", &"1.0", &none()]);
    make(&module, "create_local_interface", &[&"IDL:M/Lo:1.0", &"Lo", &"1.0", &none()]);
    make(&base, "create_attribute", &[&"IDL:M/Base/x:1.0", &"x", &"1.0", &long, &AttributeMode::AttrReadonly]);
    let parameter = |name: &str, mode| ParameterDescription {
        name: name.to_owned(),
        r#type: TypeCode::VOID,
        type_def: Some(IdlType::from_object(point.clone())),
        mode,
    };
    let parameters = vec![parameter("a", ParameterMode::ParamIn), parameter("b", ParameterMode::ParamOut)];
    let exception = lookup_id(root, "IDL:M/E:1.0");
    let (void, normal) = (primitive(root, PrimitiveKind::PkVoid), OperationMode::OpNormal);
    make(
        &interface,
        "create_operation",
        &[&"IDL:M/I/f:1.0", &"f", &"1.0", &void, &normal, &parameters, &vec![exception], &Vec::<String>::new()],
    );
    let nil: Option<ObjectRef> = None;
    let initializers: Vec<spandrel::services::repository::corba::Initializer> = Vec::new();
    let value = make(
        &module,
        "create_value",
        &[&"IDL:M/V:1.0", &"V", &"1.0", &false, &false, &nil, &false, &none(), &none(), &initializers],
    );
    make(&value, "create_value_member", &[&"IDL:M/V/x:1.0", &"x", &"1.0", &long, &1_i16]);

    let contents: Vec<container::Description> =
        call(&module, "describe_contents", &[&DefinitionKind::DkAll, &true, &-1_i32]).expect("descriptions");
    let kinds: Vec<DefinitionKind> = contents.iter().map(|it| it.kind).collect();
    use DefinitionKind as D;
    assert_eq!(
        kinds,
        [
            D::DkStruct,
            D::DkException,
            D::DkEnum,
            D::DkUnion,
            D::DkAlias,
            D::DkNative,
            D::DkValueBox,
            D::DkConstant,
            D::DkInterface,
            D::DkInterface,
            D::DkAbstractInterface,
            D::DkLocalInterface,
            D::DkValue
        ]
    );
    let types: Vec<Option<ObjectRef>> = call(&module, "contents", &[&D::DkTypedef, &true]).expect("contents");
    assert_eq!(types.len(), 6);

    // Inherited operations and attributes are in the description (14.5.24.3).
    let described: FullInterfaceDescription = call(&interface, "describe_interface", &[]).expect("a description");
    assert_eq!(described.attributes[0].name, "x");
    assert_eq!(described.operations[0].parameters[1].mode, ParameterMode::ParamOut);
    assert_eq!(described.operations[0].exceptions[0].id, "IDL:M/E:1.0");
    assert_eq!(described.base_interfaces, ["IDL:M/Base:1.0"]);
    for (id, expected) in [("IDL:M/Base:1.0", true), ("IDL:omg.org/CORBA/Object:1.0", true), ("IDL:M/A:1.0", false)] {
        assert_eq!(call::<bool>(&interface, "is_a", &[&id]).expect("is_a"), expected, "{id}");
    }
    let type_code: TypeCode = call(&union, "_get_type", &[]).expect("a type code");
    assert_eq!((type_code.kind(), type_code.member_count().expect("members")), (TcKind::Union, 2));
    assert_eq!(type_code.default_index().expect("a union"), Some(1));
    let type_code: TypeCode = call(&value, "_get_type", &[]).expect("a type code");
    assert_eq!((type_code.kind(), type_code.member_name(0).expect("a member")), (TcKind::Value, "x"));
    let description: contained::Description = call(&point, "describe", &[]).expect("a description");
    let description: spandrel::services::repository::corba::TypeDescription =
        description.value.extract().expect("a struct");
    assert_eq!((&*description.id, &*description.defined_in), ("IDL:M/P:1.0", "IDL:M:1.0"));

    // The types of references are the standard's; the extended interfaces are offered.
    assert_eq!(interface.type_id(), "IDL:omg.org/CORBA/InterfaceDef:1.0");
    assert!(interface.is_a("IDL:omg.org/CORBA/ExtInterfaceDef:1.0").expect("is_a"));
    assert!(!point.is_a("IDL:omg.org/CORBA/InterfaceDef:1.0").expect("is_a"));
    served.stop();
}

#[test]
fn names_are_looked_up() {
    let (_folder, served) = started();
    let root = &served.root;
    let outer = make(root, "create_module", &[&"IDL:A:1.0", &"A", &"1.0"]);
    let inner = make(&outer, "create_module", &[&"IDL:A/B:1.0", &"B", &"1.0"]);
    make(&inner, "create_native", &[&"IDL:A/B/N:1.0", &"N", &"1.0"]);
    let lookup = |from: &ObjectRef, name: &str| call::<Option<ObjectRef>>(from, "lookup", &[&name]).expect("lookup");
    assert!(lookup(root, "A::B::N").is_some() && lookup(&inner, "N").is_some() && lookup(&inner, "::A::B").is_some());
    assert!(lookup(root, "N").is_none() && lookup(&inner, "A").is_none());
    let by_name = |levels: i32| {
        call::<Vec<Option<ObjectRef>>>(root, "lookup_name", &[&"N", &levels, &DefinitionKind::DkAll, &true])
            .expect("lookup_name")
    };
    assert_eq!((by_name(-1).len(), by_name(3).len(), by_name(2).len()), (1, 1, 0));
    let found = by_name(-1).remove(0).expect("a definition");
    assert_eq!(call::<String>(&found, "_get_absolute_name", &[]).expect("a name"), "::A::B::N");
    let defined_in: Option<ObjectRef> = call(&found, "_get_defined_in", &[]).expect("a container");
    assert_eq!(call::<String>(&defined_in.expect("a module"), "_get_id", &[]).expect("an id"), "IDL:A/B:1.0");
    served.stop();
}

#[test]
fn errors_have_the_minor_codes_of_the_standard() {
    let (_folder, served) = started();
    let root = &served.root;
    let long = primitive(root, PrimitiveKind::PkLong);
    let module = make(root, "create_module", &[&"IDL:M:1.0", &"M", &"1.0"]);
    let create = |container: &ObjectRef, id: &str, name: &str| {
        call::<Option<ObjectRef>>(container, "create_module", &[&id, &name, &"1.0"])
    };
    assert_eq!(failure(create(root, "IDL:M:1.0", "Other")), (Kind::BadParam, minor::REPOSITORY_ID_EXISTS));
    assert_eq!(failure(create(root, "IDL:Other:1.0", "m")), (Kind::BadParam, minor::NAME_USED_IN_CONTAINER));
    assert_eq!(failure(create(root, "IDL:Other:1.0", "no name")), (Kind::BadParam, minor::BAD_NAME));
    let interface = make(&module, "create_interface", &[&"IDL:M/I:1.0", &"I", &"1.0", &none()]);
    assert_eq!(failure(create(&interface, "IDL:Other:1.0", "X")), (Kind::BadParam, minor::INVALID_CONTAINER));

    let point = make(&module, "create_struct", &[&"IDL:M/P:1.0", &"P", &"1.0", &vec![member("x", &long)]]);
    let of_point = Some(IdlType::from_object(point.clone()));
    let line = make(&module, "create_struct", &[&"IDL:M/Q:1.0", &"Q", &"1.0", &vec![member("from", &of_point)]]);
    let destroyed = |it: &ObjectRef| send(it, "destroy", &[]);
    assert_eq!(failure(destroyed(&point)), (Kind::BadInvOrder, minor::DEPENDENCY_EXISTS));
    assert_eq!(failure(destroyed(root)), (Kind::BadInvOrder, minor::INDESTRUCTIBLE));
    let of_long = long.as_ref().expect("a type").as_object();
    assert_eq!(failure(destroyed(of_long)), (Kind::BadInvOrder, minor::INDESTRUCTIBLE));
    // A struct cannot contain itself, also not through another one.
    let of_line = Some(IdlType::from_object(line.clone()));
    let cycle = send(&point, "_set_members", &[&vec![member("line", &of_line)]]);
    assert_eq!(failure(cycle).0, Kind::BadParam);
    // The failed change is undone.
    let members: Vec<StructMember> = call(&point, "_get_members", &[]).expect("members");
    assert_eq!(members[0].name, "x");
    let twice = send(&point, "_set_members", &[&vec![member("a", &long), member("A", &long)]]);
    assert_eq!(failure(twice), (Kind::BadParam, minor::INVALID_MEMBER_NAME));
    let foreign = Some(IdlType::from_object(root.clone()));
    assert_eq!(failure(send(&point, "_set_members", &[&vec![member("a", &foreign)]])).0, Kind::BadParam);
    let oneway = call::<Option<ObjectRef>>(
        &interface,
        "create_operation",
        &[
            &"IDL:M/I/f:1.0",
            &"f",
            &"1.0",
            &long,
            &OperationMode::OpOneway,
            &Vec::<ParameterDescription>::new(),
            &none(),
            &Vec::<String>::new(),
        ],
    );
    assert_eq!(failure(oneway), (Kind::BadParam, minor::INVALID_ONEWAY));
    let itself = send(&interface, "_set_base_interfaces", &[&vec![Some(interface.clone())]]);
    assert_eq!(failure(itself).0, Kind::BadParam);
    assert_eq!(failure(send(&point, "_set_bound", &[&1_u32])), (Kind::BadOperation, minor::UNKNOWN_OPERATION));

    // With its user the struct can go, and its module with all contents.
    destroyed(&line).expect("nothing uses it");
    destroyed(&point).expect("nothing uses it any more");
    assert_eq!(failure(call::<String>(&point, "_get_name", &[])).0, Kind::ObjectNotExist);
    assert!(point.non_existent().expect("an answer"));
    destroyed(&module).expect("the module");
    assert!(lookup_id(root, "IDL:M/I:1.0").is_none());
    assert_eq!(served.repository.definitions(), 0);
    served.stop();
}

#[test]
fn attributes_change_and_definitions_move() {
    let (_folder, served) = started();
    let root = &served.root;
    let long = primitive(root, PrimitiveKind::PkLong);
    let [one, two] =
        ["One", "Two"].map(|name| make(root, "create_module", &[&format!("IDL:{name}:1.0"), &name, &"1.0"]));
    let sequence = make(root, "create_sequence", &[&4_u32, &long]);
    let array = make(root, "create_array", &[&2_u32, &Some(sequence.clone())]);
    let alias = make(&one, "create_alias", &[&"IDL:One/T:1.0", &"T", &"1.0", &Some(array)]);
    send(&sequence, "_set_bound", &[&5_u32]).expect("another bound");
    let type_code: TypeCode = call(&alias, "_get_type", &[]).expect("a type code");
    let element = type_code.content_type().and_then(|it| it.content_type()).expect("a sequence");
    assert_eq!(element.length().expect("a bound"), 5);
    assert_eq!(served.repository.definitions(), 5);
    // The types without a name go with their last user.
    send(&alias, "_set_original_type_def", &[&long]).expect("another type");
    assert_eq!(served.repository.definitions(), 3);

    send(&alias, "move", &[&Some(two.clone()), &"Moved", &"2.0"]).expect("another place");
    assert_eq!(call::<String>(&alias, "_get_absolute_name", &[]).expect("a name"), "::Two::Moved");
    assert_eq!(call::<String>(&alias, "_get_version", &[]).expect("a version"), "2.0");
    let contents: Vec<Option<ObjectRef>> = call(&one, "contents", &[&DefinitionKind::DkAll, &true]).expect("contents");
    assert!(contents.is_empty());
    send(&alias, "_set_name", &[&"Named"]).expect("another name");
    send(&alias, "_set_id", &[&"IDL:Two/Named:2.0"]).expect("another id");
    assert!(lookup_id(root, "IDL:One/T:1.0").is_none() && lookup_id(root, "IDL:Two/Named:2.0").is_some());
    let canonical: TypeCode = call(root, "get_canonical_typecode", &[&type_code]).expect("a type code");
    assert_eq!(canonical.kind(), TcKind::Alias);
    // A plain key denotes the repository as a container, too.
    let plain = format!("corbaloc::{}/InterfaceRepository", address(root));
    let plain = served.client().string_to_object(&plain).expect("a URL");
    send(&alias, "move", &[&Some(plain), &"Top", &"1.0"]).expect("the top level");
    assert_eq!(call::<String>(&alias, "_get_absolute_name", &[]).expect("a name"), "::Top");
    served.stop();
}

fn address(object: &ObjectRef) -> String {
    let profile = spandrel::types::IiopProfile::decode(&object.ior().profiles[0]).expect("a profile").expect("IIOP");
    format!("{}:{}", profile.host, profile.port)
}
