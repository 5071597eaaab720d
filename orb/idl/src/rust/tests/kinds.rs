//! Unions, decimals, wide texts, `any`, type codes, local interfaces, native types and contexts.

use super::{check, flat, rust_of};
use crate::rust::Options;

#[test]
fn a_union_is_an_enum_with_its_codec() {
    insta::assert_snapshot!(rust_of(
        "shapes.idl",
        "module Shapes {
           enum Kind { none, round, square, oblong };
           /** What can be cut out. */
           union Shape switch (Kind) {
             /** Its radius. */
             case round: double radius;
             case square: case oblong: long sides[2];
           };
         };"
    ));
}

#[test]
fn every_discriminator_has_its_literals() {
    check(
        "enum E { a, b }; typedef E F;
         union ByLong switch (long) { case -5: long x; case 2: default: octet y; };
         union ByBoolean switch (boolean) { case TRUE: long x; case FALSE: octet y; };
         union ByHalf switch (boolean) { case TRUE: long x; };
         union ByChar switch (char) { case 'x': long x; case '\\n': octet y; };
         union ByWchar switch (wchar) { case L'\\u20ac': long x; };
         union ByOctet switch (octet) { case 255: long x; };
         union ByAlias switch (F) { case b: long x; case a: string s; };
         union ByLongLong switch (unsigned long long) { case 18446744073709551615: long x; };",
        &[
            "pub enum ByLong { X(i32), Y { /// One of the values that select this branch. discriminator: i32,",
            "ByLong::X(_) => -5, ByLong::Y { discriminator, .. } => *discriminator,",
            "impl Default for ByLong { fn default() -> Self { ByLong::X(Default::default()) } }",
            "if matches!(discriminator, - 5) {",
            "-5 => ByLong::X(::spandrel::generated::Decode::decode(input)?), discriminator => { ByLong::Y {",
            "pub enum ByBoolean { X(i32), Y(u8), }",
            "true => ByBoolean::X(::spandrel::generated::Decode::decode(input)?), \
             false => ByBoolean::Y(::spandrel::generated::Decode::decode(input)?), }",
            "pub enum ByHalf { X(i32), /// No member: the discriminator selects none. Unlisted(bool), }",
            "ByHalf::Unlisted(false)",
            "::spandrel::generated::Char(b'x') => { ByChar::X(",
            "::spandrel::generated::Char(b'\\n') => { ByChar::Y(",
            "'€' => ByWchar::X(",
            "255 => ByOctet::X(",
            "pub enum ByAlias { X(i32), S(String), }",
            "F::B => ByAlias::X(",
            "18446744073709551615 => { ByLongLong::X(",
        ],
    );
}

#[test]
fn branches_may_have_the_names_of_generated_items() {
    check(
        "union U switch (short) { case 1: long None; case 2: long Ok; case 3: long Unlisted; case 4: long unlisted_;
           case 5: long self; case 6: long Some; case 7: string Err; };",
        &[
            "pub enum U { None(i32), Ok(i32), Unlisted(i32), Unlisted_(i32), Self_(i32), Some(i32), Err(String), \
             /// No member: the discriminator selects none. Unlisted__(i16), }",
            "return ::std::result::Result::Err(",
            "::std::result::Result::Ok(match",
        ],
    );
}

#[test]
fn a_leading_default_branch_has_a_free_discriminator() {
    check(
        "union U switch (long) { default: long x; case 0: case 1: octet y; }; enum E { a, b, c };
         union V switch (E) { default: long x; case a: octet y; };",
        &[
            "U::X { discriminator: 2, value: Default::default()",
            "V::X { discriminator: E::B, value: Default::default()",
        ],
    );
}

#[test]
fn a_union_has_the_traits_that_its_members_allow() {
    check(
        "union A switch (long) { case 1: long x; }; union B switch (long) { case 1: double x; default: string s; };
         typedef long Many[40]; union C switch (boolean) { case TRUE: case FALSE: Many m; };
         union D switch (long) { case 1: any a; }; struct E { A a; D d; }; union F switch (long) { case 1: Object o; };",
        &[
            "#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)] pub enum A",
            "#[derive(Clone, Debug, PartialEq, PartialOrd)] pub enum B",
            "#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)] pub enum C",
            "#[derive(Clone, Debug, PartialEq)] pub enum D",
            "#[derive(Clone, Debug, Default, PartialEq)] pub struct E",
            "#[derive(Clone, Debug, PartialEq, Eq)] pub enum F",
        ],
    );
    let rust = rust_of("c.idl", "typedef long Many[40]; union C switch (boolean) { case TRUE: case FALSE: Many m; };");
    assert!(!rust.contains("impl Default"), "{rust}");
    // Every discriminator belongs to the one branch, so there is nothing to check.
    assert!(!rust.contains("BadDiscriminator"), "{rust}");
}

#[test]
fn a_union_may_be_recursive_and_contain_nested_types() {
    check(
        "union Tree; typedef sequence<Tree> Forest; union Tree switch (long) { case 0: Forest below; case 1: string leaf; };
         union Made switch (enum Inner { a, b }) { case a: long x; };",
        &["pub enum Tree { Below(Forest), Leaf(String),", "pub enum Inner { #[default] A = 0, B = 1, }", "pub enum Made"],
    );
}

#[test]
fn wide_strings_and_decimals_have_their_rust_types() {
    check(
        "typedef wstring<4> Four; typedef fixed<5, 2> Price; struct S { wstring w; Four f; Price p; wchar c; };
         interface I { wstring f(in wstring w, in Four x, in Price p, in wchar c, inout wstring io);
           oneway void g(in wstring w); attribute wstring a; };",
        &[
            "pub type Four = ::spandrel::generated::BoundedWString<4>;",
            "pub type Price = ::spandrel::generated::Fixed<5, 2>;",
            "pub w: ::spandrel::generated::WString, pub f: Four, pub p: Price, pub c: char,",
            "pub fn f(&self, w: &str, x: &Four, p: Price, c: char, io: &mut ::spandrel::generated::WString)",
            "let w = ::spandrel::generated::Wide(w); \
             ::spandrel::generated::call(self, \"f\", &(w, x, p, c, &*io)).map(",
            "let w = ::spandrel::generated::Wide(w); \
             ::spandrel::generated::call_oneway(self, \"g\", &(w,))",
            "fn set_a(&self, value: &str)",
            "let value = ::spandrel::generated::Wide(value);",
            "let w: ::spandrel::generated::WString = ::spandrel::generated::decode(input)?;",
            "IServant::f(servant, &w, &x, p, c, &mut io)?",
        ],
    );
}

#[test]
fn constants_of_wide_and_decimal_types_have_exactly_their_values() {
    check(
        "typedef fixed<5, 2> Price; const Price A = 1.5d; const fixed B = -0.125d; const wstring C = L\"\\u20ac\"; const wchar D = L'x';",
        &[
            "pub const A: Price = Price::from_unscaled(150);",
            "pub const B: ::spandrel::generated::Fixed<3, 3> = <::spandrel::generated::Fixed<3, 3>>::from_unscaled(-125);",
            "pub const C: &str = \"€\";",
            "pub const D: char = 'x';",
        ],
    );
}

#[test]
fn decimals_are_flattened_like_other_fixed_size_members() {
    check(
        "typedef fixed<5, 2> Price; struct S { octet o; Price p; long l; };",
        &[
            "const FIRST_ALIGN: usize = 1; const ALIGN: usize = 4; const SIZE: usize = 8;",
            "put::<SWAP>(&self.p, &mut out[1..4]);",
            "put::<SWAP>(&self.l, &mut out[4..8]);",
        ],
    );
}

#[test]
fn a_struct_with_a_decimal_is_not_padded() {
    let options = Options::new().pad_all();
    let rust = super::rust_with(
        &options,
        "p.idl",
        "typedef fixed<31, 0> P; struct S { long long l; P p; }; struct T { octet o; P p; };",
    );
    assert!(!rust.contains("zerocopy"), "{rust}");
}

#[test]
fn an_annotated_enumerator_is_the_default() {
    check("enum E { a, @default_literal b, c };", &["A = 0, #[default] B = 1,"]);
}

#[test]
fn type_codes_describe_the_idl_types() {
    check(
        "module M { typedef sequence<long, 4> Few; typedef Few Grid[2][3]; enum E { one, Two };
           struct S { Few less; Grid cells; any a; Object o; sequence<string> texts; };
           exception X {}; union U switch (E) { case one: long x; default: S s; };
           interface I { typedef I Me; }; typedef I Ref; struct T { Ref r; I::Me m; CORBA::TypeCode code; }; };",
        &[
            "few_tc, few_any(&rt::BoundedVec<i32, 4>), \"IDL:M/Few:1.0\", \"Few\", rt::BoundedVec<i32, 4> }",
            "[[Few; 3]; 2] = || rt::array_code(&rt::array_code(&few_tc(), 3), 2)",
            "rt::enumeration! { E, \"IDL:M/E:1.0\", \"E\", One = 0 \"one\", Two = 1 \"Two\" }",
            "less: Few as \"less\" = few_tc, cells: Grid as \"cells\" = grid_tc, a: rt::Any as \"a\", \
             o: Option<rt::ObjectRef> as \"o\", texts: Vec<String> as \"texts\"",
            "rt::exception! { #[inline] members X, \"IDL:M/X:1.0\", \"X\" }",
            "rt::TypeCode::union(\"IDL:M/U:1.0\", \"U\", &<E as rt::Typed>::type_code(),",
            "(rt::Label::Value(0), \"x\", <i32 as rt::Typed>::type_code()), \
             (rt::Label::Default, \"s\", <S as rt::Typed>::type_code())",
            "object_reference I(rt::ObjectRef), \"IDL:M/I:1.0\", \"I\"",
            "r: Option<Ref> as \"r\" = ref_tc, m: Option<i::Me> as \"m\" = i::me_tc, code: rt::TypeCode as \"code\"",
        ],
    );
}

#[test]
fn a_type_code_function_yields_its_name_to_idl_declarations() {
    check(
        "typedef long Amount; interface amount_tc { typedef long Inner; };",
        &["alias! { amount_tc,", "pub struct AmountTc(", "pub mod amount_tc_ {"],
    );
}

#[test]
fn local_types_have_no_codec() {
    let idl = "native Cookie; local interface L { void f(); }; typedef sequence<Cookie> Cookies; typedef L Alias;
               exception Lost { Cookie c; }; struct Held { L l; Alias a; };
               interface M { void f(in Cookies c) raises (Lost); typedef long Inner; };
               local interface N : M { L g(in Held h, in Alias a); }; struct T { M m; }; interface R { void f(in long x); };
               local interface O : R { void g(); };";
    let options = Options::new().native("::Cookie", "crate::Cookie").expect("a type");
    let rust = super::rust_with(&options, "n.idl", idl);
    for expected in [
        "pub type Cookie = crate::Cookie;",
        "pub trait L: Send + Sync {",
        "pub type Cookies = Vec<Cookie>;",
        "pub type Alias = dyn L;",
        "#[derive(Clone)] pub struct Lost { pub c: Cookie, }",
        "local_exception! { opaque Lost, \"IDL:Lost:1.0\", \"Lost\",",
        "#[derive(Clone, Default)] pub struct Held { pub l: Option<::spandrel::generated::Arc<dyn L>>, \
         pub a: Option<::spandrel::generated::Arc<Alias>>, }",
        "pub trait M: Send + Sync { fn f(&self, c: &[Cookie]) -> Result<(), m::FError>; }",
        "pub trait N: M { fn g(&self, h: &Held, a: Option<&::spandrel::generated::Arc<Alias>>) -> \
         Result<Option<::spandrel::generated::Arc<dyn L>>, ::spandrel::generated::SystemException>; }",
        "pub struct T { pub m: Option<::spandrel::generated::Arc<dyn M>>, }",
        "pub trait O: RServant {",
        "use ::spandrel::generated as rt; rt::typed! { dyn L =>",
        "c: Cookie as \"c\" = || ::spandrel::generated::native_code(\"IDL:Cookie:1.0\", \"Cookie\")",
    ] {
        assert!(flat(&rust).contains(&flat(expected)), "`{expected}` does not occur in:\n{rust}");
    }
    // `R` alone can be called from elsewhere.
    assert_eq!(rust.matches("generated::Dispatch<S> for").count(), 1, "{rust}");
    assert!(!rust.contains("rt::structure!") && !rust.contains("rt::exception!"), "{rust}");
    assert!(Options::new().native("Cookie", "no type").is_err());
}

#[test]
fn a_context_clause_is_one_more_parameter() {
    check(
        "interface I { void f(in long _context) context (\"user.*\", \"locale\"); oneway void g() context (\"x\"); };",
        &[
            "pub fn f(&self, context: i32, context_: &::spandrel::generated::Context) -> \
             Result<(), ::spandrel::generated::SystemException>",
            "context_.encode_named(&[\"user.*\", \"locale\"], out)",
            "self.as_object().send_oneway(\"g\", |out| context.encode_named(&[\"x\"], out))",
            "let context_: ::spandrel::generated::Context = ::spandrel::generated::decode(input)?; \
             ::spandrel::generated::end_arguments(input); \
             ::spandrel::generated::answer(call, IServant::f(servant, context, &context_))",
        ],
    );
}

#[test]
fn a_union_with_thousands_of_labels_is_written_fast() {
    let cases: String = (0..3000).map(|case| format!("case {}: long m{case};", case * 2)).collect();
    let rust = rust_of("u.idl", &format!("union U switch (unsigned long) {{ default: octet d; {cases} }};"));
    assert!(rust.contains("U::D { discriminator: 1,") || flat(&rust).contains("U::D { discriminator: 1,"));
}

#[test]
fn lints_against_lists_in_comments_are_allowed() {
    let lints = "clippy::doc_lazy_continuation, clippy::doc_overindented_list_items";
    for (comment, may_trip) in [
        ("A list:\n - one\ntwo", true),
        ("A list:\n + one\n      two", true),
        ("1. one\n\n   two\n      three", true),
        ("12) one\ntwo", true),
        ("- one\n- two\n", false),
        ("A line - and\nanother\n-3 is no list", false),
    ] {
        let comment = format!("/*\n{comment}\n*/");
        for idl in [
            format!("module M {{ interface I {{ {comment} void f(); }}; }};"),
            format!("{comment} module M {{ const long N = 1; }};"),
            format!("struct S {{ {comment} long x; }};"),
        ] {
            let rust = rust_of("test.idl", &idl);
            let flat = rust.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(flat.contains(lints), may_trip, "{comment}: {rust}");
        }
    }
}
