//! Type codes: properties, creation and comparison.

use spandrel_cdr::{
    Any, BoundedString, BoundedVec, Char, Defining, Fixed, Ior, Label, TcKind, TypeCode, TypeCodeError, Typed,
    ValueModifier, Visibility, WString,
};

/// `struct Tree { long value; sequence<Tree> children; }`
fn tree() -> TypeCode {
    let children = TypeCode::sequence(&TypeCode::recursive("IDL:Tree:1.0").unwrap(), 0).unwrap();
    TypeCode::structure("IDL:Tree:1.0", "Tree", &[("value", TypeCode::LONG), ("children", children)]).unwrap()
}

fn colour() -> TypeCode {
    TypeCode::enumeration("IDL:Colour:1.0", "Colour", &["red", "green", "blue"]).unwrap()
}

fn choice() -> TypeCode {
    let members = [
        (Label::Value(0), "number", TypeCode::LONG),
        (Label::Value(1), "text", TypeCode::STRING),
        (Label::Default, "rest", TypeCode::ANY),
    ];
    TypeCode::union("IDL:Choice:1.0", "Choice", &colour(), &members).unwrap()
}

fn account() -> TypeCode {
    let members = [("balance", TypeCode::DOUBLE, Visibility::Private), ("owner", TypeCode::STRING, Visibility::Public)];
    TypeCode::value("IDL:Account:1.0", "Account", ValueModifier::Truncatable, Some(&TypeCode::value_base()), &members)
        .unwrap()
}

#[test]
fn a_type_code_has_the_properties_it_was_created_with() {
    let tree = tree();
    assert_eq!((tree.kind(), tree.id(), tree.name()), (TcKind::Struct, Ok("IDL:Tree:1.0"), Ok("Tree")));
    assert_eq!((tree.member_count(), tree.member_name(1)), (Ok(2), Ok("children")));
    assert_eq!(tree.member_type(0), Ok(TypeCode::LONG));
    let choice = choice();
    assert_eq!(choice.discriminator_type(), Ok(colour()));
    assert_eq!(choice.default_index(), Ok(Some(2)));
    assert_eq!((choice.member_label(1), choice.member_label(2)), (Ok(Label::Value(1)), Ok(Label::Default)));
    assert_eq!((choice.selected_member(1), choice.selected_member(2)), (Ok(Some(1)), Ok(Some(2))));
    let account = account();
    assert_eq!(account.type_modifier(), Ok(ValueModifier::Truncatable));
    assert_eq!(account.concrete_base_type(), Ok(Some(TypeCode::value_base())));
    assert_eq!(account.member_visibility(1), Ok(Visibility::Public));
    let names = TypeCode::array(&TypeCode::string(7), 3).unwrap();
    assert_eq!((names.length(), names.content_type()), (Ok(3), Ok(TypeCode::string(7))));
    assert_eq!(TypeCode::string(7).length(), Ok(7));
    let fixed = TypeCode::fixed(9, 2).unwrap();
    assert_eq!((fixed.fixed_digits(), fixed.fixed_scale()), (Ok(9), Ok(2)));
}

#[test]
fn missing_properties_are_bad_kind_and_large_indices_are_bounds() {
    assert_eq!(TypeCode::LONG.id(), Err(TypeCodeError::BadKind(TcKind::Long)));
    assert_eq!(tree().member_label(0), Err(TypeCodeError::BadKind(TcKind::Struct)));
    assert_eq!(colour().member_type(0), Err(TypeCodeError::BadKind(TcKind::Enum)));
    assert_eq!(tree().length(), Err(TypeCodeError::BadKind(TcKind::Struct)));
    assert_eq!(TypeCode::STRING.content_type(), Err(TypeCodeError::BadKind(TcKind::String)));
    assert_eq!(tree().member_name(2), Err(TypeCodeError::Bounds { index: 2, len: 2 }));
    assert_eq!(choice().member_label(3), Err(TypeCodeError::Bounds { index: 3, len: 3 }));
}

#[test]
fn a_recursive_member_has_the_enclosing_type() {
    let tree = tree();
    assert!(!tree.is_open());
    let mut at = tree.clone();
    for _ in 0..100 {
        at = at.member_type(1).unwrap().content_type().unwrap();
    }
    assert_eq!((at.kind(), &at), (TcKind::Struct, &tree));
    let open = TypeCode::recursive("IDL:Tree:1.0").unwrap();
    assert!(open.is_open() && TypeCode::sequence(&open, 0).unwrap().is_open());
}

#[test]
fn types_beyond_idl_are_rejected() {
    let no_members: [(&str, TypeCode); 0] = [];
    let bad_param = |made: Result<TypeCode, TypeCodeError>| matches!(made, Err(TypeCodeError::BadParam(_)));
    let bad_type = |made: Result<TypeCode, TypeCodeError>| matches!(made, Err(TypeCodeError::BadTypeCode(_)));
    for id in ["no colon", ":", "IDL:", ":x"] {
        assert!(bad_param(TypeCode::structure(id, "S", &no_members)), "{id}");
    }
    assert!(bad_param(TypeCode::object_reference("", "S")));
    assert!(TypeCode::structure("", "", &no_members).is_ok());
    for name in ["1st", "a b", "naïve", "A::B"] {
        assert!(bad_param(TypeCode::structure("IDL:S:1.0", name.to_owned(), &no_members)), "{name}");
    }
    let twice = [("a", TypeCode::LONG), ("A", TypeCode::LONG)];
    assert!(bad_param(TypeCode::structure("IDL:S:1.0", "S", &twice)));
    assert!(bad_param(TypeCode::enumeration("IDL:E:1.0", "E", &["a", "b", "a"])));
    let error = TypeCode::exception("IDL:X:1.0", "X", &no_members).unwrap();
    for no_member in
        [TypeCode::NULL, TypeCode::VOID, error.clone(), TypeCode::alias("IDL:A:1.0", "A", &account()).unwrap()]
    {
        let allowed = no_member.kind() == TcKind::Alias;
        assert_eq!(bad_type(TypeCode::structure("IDL:S:1.0", "S", &[("a", no_member.clone())])), !allowed);
        assert_eq!(bad_type(TypeCode::sequence(&no_member, 0)), !allowed);
    }
    let union = |of: &TypeCode, labels: &[Label]| {
        let members: Vec<_> =
            labels.iter().enumerate().map(|(nth, label)| (*label, format!("m{nth}"), TypeCode::LONG)).collect();
        TypeCode::union("IDL:U:1.0", "U", of, &members)
    };
    assert!(bad_param(union(&TypeCode::DOUBLE, &[Label::Value(0)])));
    assert!(bad_param(union(&TypeCode::STRING, &[Label::Value(0)])));
    assert!(bad_param(union(&TypeCode::BOOLEAN, &[Label::Value(2)])));
    assert!(bad_param(union(&colour(), &[Label::Value(3)])));
    assert!(bad_param(union(&TypeCode::SHORT, &[Label::Value(1), Label::Value(1)])));
    assert!(bad_param(union(&TypeCode::SHORT, &[Label::Default, Label::Default])));
    assert!(union(&TypeCode::ULONGLONG, &[Label::from(u64::MAX), Label::from(false)]).is_ok());
    assert!(bad_param(TypeCode::array(&TypeCode::LONG, 0)));
    assert!(bad_param(TypeCode::fixed(32, 0)) && bad_param(TypeCode::fixed(3, 4)) && bad_param(TypeCode::fixed(0, 0)));
    assert!(bad_type(TypeCode::value(
        "IDL:V:1.0",
        "V",
        ValueModifier::None,
        Some(&tree()),
        &[("a", TypeCode::LONG, Visibility::Public)]
    )));
    let mut deep = TypeCode::LONG;
    let error = loop {
        match TypeCode::sequence(&deep, 0) {
            Ok(deeper) => deep = deeper,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, TypeCodeError::BadParam(_)));
}

#[test]
fn a_union_lists_a_member_once_per_label() {
    let members = [
        (Label::from(1_i16), "a", TypeCode::LONG),
        (Label::from(2_i16), "a", TypeCode::LONG),
        (Label::from(-3_i16), "b", TypeCode::CHAR),
    ];
    let union = TypeCode::union("IDL:U:1.0", "U", &TypeCode::SHORT, &members).unwrap();
    assert_eq!(
        (union.selected_member(2), union.selected_member(-3), union.selected_member(0)),
        (Ok(Some(1)), Ok(Some(2)), Ok(None))
    );
    assert_eq!(union.to_string(), "union U switch (short) { case 1: long a; case 2: long a; case -3: char b; }");
}

#[test]
fn equal_compares_names_and_equivalent_does_not() {
    let renamed = TypeCode::structure("IDL:Tree:1.0", "Baum", &[("wert", TypeCode::LONG)]).unwrap();
    assert!(!tree().equal(&renamed) && tree().equivalent(&renamed));
    let other = TypeCode::structure("IDL:Bush:1.0", "Tree", &[("value", TypeCode::LONG)]).unwrap();
    assert!(!tree().equivalent(&other));
    let alias = TypeCode::alias("IDL:Amount:1.0", "Amount", &TypeCode::LONG).unwrap();
    assert!(!alias.equal(&TypeCode::LONG) && alias.equivalent(&TypeCode::LONG) && TypeCode::LONG.equivalent(&alias));
    let amounts = TypeCode::sequence(&alias, 0).unwrap();
    assert!(amounts.equivalent(&Vec::<i32>::type_code()) && !amounts.equivalent(&Vec::<u32>::type_code()));
    assert!(!amounts.equivalent(&BoundedVec::<i32, 3>::type_code()));
    let anonymous = |name| TypeCode::structure("", name, &[(name, alias.clone())]).unwrap();
    assert!(anonymous("a").equivalent(&anonymous("b")) && !anonymous("a").equal(&anonymous("b")));
    let without_id = TypeCode::structure("", "Pair", &[("x", TypeCode::LONG), ("y", TypeCode::LONG)]).unwrap();
    let with_id = TypeCode::structure("IDL:P:1.0", "Pair", &[("x", TypeCode::LONG), ("y", TypeCode::LONG)]).unwrap();
    assert!(without_id.equivalent(&with_id) && !without_id.equal(&with_id));
}

#[test]
fn recursive_types_are_compared() {
    let unrolled = TypeCode::sequence(&tree(), 0).unwrap();
    let unrolled =
        TypeCode::structure("IDL:Tree:1.0", "Tree", &[("value", TypeCode::LONG), ("children", unrolled)]).unwrap();
    assert!(tree().equal(&unrolled) && unrolled.equal(&tree()) && unrolled.equivalent(&tree()));
    let children = TypeCode::sequence(&TypeCode::recursive("IDL:Tree:1.0").unwrap(), 1).unwrap();
    let bounded =
        TypeCode::structure("IDL:Tree:1.0", "Tree", &[("value", TypeCode::LONG), ("children", children)]).unwrap();
    assert!(!tree().equal(&bounded) && !unrolled.equal(&bounded));
}

#[test]
fn the_compact_form_has_no_names() {
    for full in [tree(), choice(), account(), TypeCode::array(&tree(), 2).unwrap()] {
        let compact = full.compact();
        assert!(compact.equivalent(&full) && !compact.equal(&full), "{full}");
        assert!(compact.equal(&compact.compact()));
    }
    let compact = tree().compact();
    assert_eq!((compact.id(), compact.name(), compact.member_name(0)), (Ok("IDL:Tree:1.0"), Ok(""), Ok("")));
}

#[test]
fn a_type_code_prints_as_idl() {
    assert_eq!(tree().to_string(), "struct Tree { long value; sequence<Tree> children; }");
    assert_eq!(
        choice().to_string(),
        "union Choice switch (Colour) { case red: long number; case green: string text; default: any rest; }"
    );
    assert_eq!(
        account().to_string(),
        "valuetype Account : truncatable ValueBase { private double balance; public string owner; }"
    );
    assert_eq!(<[[u8; 3]; 2]>::type_code().to_string(), "octet[2][3]");
    assert_eq!(BoundedVec::<BoundedString<4>, 2>::type_code().to_string(), "sequence<string<4>, 2>");
    assert_eq!(
        TypeCode::alias("IDL:A:1.0", "A", &Fixed::<5, 2>::type_code()).unwrap().to_string(),
        "typedef fixed<5, 2> A"
    );
    assert_eq!(TypeCode::object().compact().to_string(), "interface <IDL:omg.org/CORBA/Object:1.0>");
}

#[test]
fn rust_types_have_type_codes() {
    assert_eq!(Vec::<Char>::type_code(), TypeCode::sequence(&TypeCode::CHAR, 0).unwrap());
    assert_eq!(<[i16; 4]>::type_code(), TypeCode::array(&TypeCode::SHORT, 4).unwrap());
    assert_eq!((WString::type_code(), char::type_code()), (TypeCode::WSTRING, TypeCode::WCHAR));
    assert_eq!((<Any as Typed>::type_code(), TypeCode::type_code()), (TypeCode::ANY, TypeCode::TYPE_CODE));
    assert_eq!(Ior::type_code(), TypeCode::object());
}

/// Types in the form of generated code: `A` and `B` have sequences of each other, `C` of both, and `A` of
/// `C`.
struct A;
struct B;
struct C;

macro_rules! typed {
    ($type:ident, $id:literal: $($name:literal $of:ty),*) => {
        impl Typed for $type {
            fn type_code() -> TypeCode {
                static TYPE_CODE: Defining = Defining::new();
                TYPE_CODE.recursive($id, || {
                    TypeCode::structure($id, stringify!($type), &[$(($name, <$of>::type_code())),*])
                })
            }
        }
    };
}

typed!(A, "IDL:A:1.0": "b" Vec<B>, "c" Vec<C>, "n" i32);
typed!(B, "IDL:B:1.0": "a" Vec<A>);
typed!(C, "IDL:C:1.0": "a" Vec<A>, "b" Vec<B>, "c" Vec<C>);

#[test]
fn mutually_recursive_types_are_created_once() {
    let made = [C::type_code(), A::type_code(), B::type_code()];
    for (type_code, name) in made.iter().zip(["C", "A", "B"]) {
        assert!(!type_code.is_open());
        assert_eq!(type_code.name(), Ok(name));
    }
    let [c, a, b] = made;
    let within = |of: &TypeCode, nth| of.member_type(nth).unwrap().content_type().unwrap();
    assert_eq!((within(&a, 0), within(&a, 1), within(&b, 0)), (b.clone(), c.clone(), a.clone()));
    assert_eq!((within(&c, 0), within(&c, 1), within(&c, 2)), (a.clone(), b, c));
    assert_eq!(A::type_code(), a);
}
