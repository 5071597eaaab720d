//! Generated code of value types.

use super::{check, rust_of};

const SHAPES: &str = r#"
module Shapes {
  /** A place. */
  valuetype Point {
    /** Where it is. */
    public long x;
    private string note;
    public Point next;
  };
  valuetype Spot : truncatable Point {
    public double size;
    string name();
    factory make(in double size);
  };
  custom valuetype Raw { public octet kind; };
  valuetype Points sequence<Point>;
  abstract interface Drawable { void draw(in Point at); };
  interface Canvas { Spot put(in Drawable what, inout Points where); };
};
"#;

#[test]
fn a_whole_file() {
    insta::assert_snapshot!(rust_of("idl/shapes.idl", SHAPES));
}

#[test]
fn a_value_without_operations_is_its_state() {
    check(
        "valuetype A { public long x; }; valuetype B : A { public long y; };",
        &[
            "pub trait A: ::spandrel::generated::ValueBase {",
            "fn x(&self) -> i32 { self.a_state().x }",
            "pub trait B: A {",
            "pub struct BState { /// The members of its base. pub base: AState, pub y: i32, }",
            "impl A for BState { fn a_state(&self) -> &AState { &self.base } }",
            "impl B for BState { fn b_state(&self) -> &BState { self } }",
        ],
    );
}

#[test]
fn a_base_lists_its_derived_types() {
    check(
        "valuetype A {}; valuetype B : A {}; valuetype C : B { void f(); };",
        &[r#"match repository_id {
            "IDL:A:1.0" => Some(&::spandrel::generated::PlainFactory::<dyn A>::NEW),
            "IDL:B:1.0" => Some(&::spandrel::generated::PlainFactory::<dyn B>::NEW),
            _ => None, }"#],
    );
}

#[test]
fn ids_list_the_truncatable_bases() {
    let idl = "valuetype A {}; valuetype B : A {}; valuetype C : truncatable B {}; valuetype D : truncatable C {};";
    check(
        idl,
        &[
            r#"const IDS: &'static [&'static str] = &["IDL:A:1.0"];"#,
            r#"const IDS: &'static [&'static str] = &["IDL:B:1.0"];"#,
            r#"const IDS: &'static [&'static str] = &["IDL:C:1.0", "IDL:B:1.0"];"#,
            r#"const IDS: &'static [&'static str] = &["IDL:D:1.0", "IDL:C:1.0", "IDL:B:1.0"];"#,
        ],
    );
}
