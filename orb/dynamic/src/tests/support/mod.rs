//! Types shared by several test modules.
#![allow(dead_code, reason = "every test program compiles its own copy and uses a part")]

use spandrel_cdr::{Label, TypeCode, ValueModifier, Visibility};

/// `struct Point { long x; string name; };`
pub(crate) fn point() -> TypeCode {
    TypeCode::structure("IDL:Point:1.0", "Point", &[("x", TypeCode::LONG), ("name", TypeCode::string(0))]).unwrap()
}

/// `enum Colour { red, green, blue };`
pub(crate) fn colour() -> TypeCode {
    TypeCode::enumeration("IDL:Colour:1.0", "Colour", &["red", "green", "blue"]).unwrap()
}

/// `union Choice switch (long) { case 1: case 2: string text; case 5: Point point; };`
pub(crate) fn choice() -> TypeCode {
    let members = [
        (Label::Value(1), "text", TypeCode::string(0)),
        (Label::Value(2), "text", TypeCode::string(0)),
        (Label::Value(5), "point", point()),
    ];
    TypeCode::union("IDL:Choice:1.0", "Choice", &TypeCode::LONG, &members).unwrap()
}

/// `union Always switch (boolean) { case TRUE: long number; default: string text; };`
pub(crate) fn always() -> TypeCode {
    let members = [(Label::Value(1), "number", TypeCode::LONG), (Label::Default, "text", TypeCode::string(0))];
    TypeCode::union("IDL:Always:1.0", "Always", &TypeCode::BOOLEAN, &members).unwrap()
}

/// `union Full switch (boolean) { case TRUE: long number; case FALSE: string text; };`
pub(crate) fn full() -> TypeCode {
    let members = [(Label::Value(1), "number", TypeCode::LONG), (Label::Value(0), "text", TypeCode::string(0))];
    TypeCode::union("IDL:Full:1.0", "Full", &TypeCode::BOOLEAN, &members).unwrap()
}

/// `typedef sequence<T, bound> Many;`
pub(crate) fn many(type_code: &TypeCode, bound: u32) -> TypeCode {
    TypeCode::alias("IDL:Many:1.0", "Many", &TypeCode::sequence(type_code, bound).unwrap()).unwrap()
}

/// `exception Empty {};`, an exception without members.
pub(crate) fn empty() -> TypeCode {
    TypeCode::exception::<&str>("IDL:Empty:1.0", "Empty", &[]).unwrap()
}

/// `valuetype Base { public long id; }; valuetype Derived : truncatable Base { private string note; };`
pub(crate) fn derived() -> TypeCode {
    let members = [("note", TypeCode::string(0), Visibility::Private)];
    TypeCode::value("IDL:Derived:1.0", "Derived", ValueModifier::Truncatable, Some(&base()), &members).unwrap()
}

/// `valuetype Node { public string name; public Node next; public sequence<Node> others; };`
pub(crate) fn node() -> TypeCode {
    let link = TypeCode::recursive("IDL:Node:1.0").unwrap();
    let members = [
        ("name", TypeCode::string(0), Visibility::Public),
        ("next", link.clone(), Visibility::Public),
        ("others", TypeCode::sequence(&link, 0).unwrap(), Visibility::Public),
    ];
    TypeCode::value("IDL:Node:1.0", "Node", ValueModifier::None, None, &members).unwrap()
}

/// `valuetype Leaf : Base { public Base inner; };`, which is not truncatable.
pub(crate) fn leaf() -> TypeCode {
    let members = [("inner", base(), Visibility::Public)];
    TypeCode::value("IDL:Leaf:1.0", "Leaf", ValueModifier::None, Some(&base()), &members).unwrap()
}

/// `abstract interface Either {};`
pub(crate) fn either() -> TypeCode {
    TypeCode::abstract_interface("IDL:Either:1.0", "Either").unwrap()
}

pub(crate) fn base() -> TypeCode {
    let members = [("id", TypeCode::LONG, Visibility::Public)];
    TypeCode::value("IDL:Base:1.0", "Base", ValueModifier::None, None, &members).unwrap()
}

/// `valuetype Box string;`, a value box of a string.
pub(crate) fn boxed() -> TypeCode {
    TypeCode::value_box("IDL:Box:1.0", "Box", &TypeCode::string(0)).unwrap()
}
