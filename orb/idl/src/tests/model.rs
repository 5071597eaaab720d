//! Properties of the model that a dump does not show.

use std::path::Path;

use spandrel_idl::model::{
    Annotation, AnnotationValue, ConstValue, Definition, FixedValue, Label, ParameterMode, Primitive, Type,
};
use spandrel_idl::{FrontEndOptions, MemoryFiles, Model, compile_with};

#[track_caller]
fn model(text: &str) -> Model {
    let provider = MemoryFiles::new()
        .with("main.idl", text)
        .with("part.idl", "typedef long Included; module M { typedef long A; };");
    let result = compile_with(&FrontEndOptions::default(), &provider, Path::new("main.idl"));
    result.unwrap_or_else(|diagnostics| panic!("{diagnostics}"))
}

#[track_caller]
fn definition<'m>(model: &'m Model, name: &str) -> &'m Definition {
    model.lookup(name).unwrap_or_else(|| panic!("there is no {name}"))
}

#[track_caller]
fn constant(declarations: &str, name: &str) -> ConstValue {
    let model = model(declarations);
    definition(&model, name).as_const().expect("a constant").value.clone()
}

#[track_caller]
fn integer(expression: &str, value: i128) {
    let text = format!("const long long C = {expression};");
    assert_eq!(constant(&text, "C"), ConstValue::Integer(value), "{expression}");
}

/// The definitions of a text that needs the module CORBA, or the first error.
fn with_corba(text: &str) -> Result<usize, String> {
    let files = MemoryFiles::new().with("main.idl", text).with("own/orb.idl", "module CORBA { typedef string Own; };");
    let result = compile_with(&FrontEndOptions::default(), &files, Path::new("main.idl"));
    let model = result.map_err(|errors| errors.in_line())?;
    let corba = model.lookup("CORBA").map_or(0, |corba| model.contents(corba.id).len());
    Ok(corba)
}

#[test]
fn the_module_corba_can_be_imported() {
    let included = with_corba("#include <orb.idl>\nstruct S { CORBA::StringSeq names; };").expect("correct IDL");
    for text in [
        "import ::CORBA;\nstruct S { CORBA::StringSeq names; };",
        "import CORBA;\nstruct S { CORBA::StringSeq names; };",
        "import ::CORBA;\n#include <orb.idl>\nstruct S { CORBA::StringSeq names; };",
        "#include <ir.idl>\nstruct S { CORBA::StringSeq names; };",
        "#include <omniORB4/ir.idl>\n#include <orb.idl>\nstruct S { CORBA::StringSeq names; };",
    ] {
        assert_eq!(with_corba(text), Ok(included), "{text}");
    }
    for text in ["import ::CORBA;", "#include <ir.idl>\n#include \"orb.idl\"\nimport ::CORBA;"] {
        let text = format!("{text}\ninterface I {{ CORBA::InterfaceDef kind(); }};");
        assert!(with_corba(&text).expect("correct IDL") > included, "{text}");
    }
    assert_eq!(with_corba("#include \"own/orb.idl\"\nimport ::CORBA;"), Ok(1));
    let error = with_corba("#include \"own/orb.idl\"\n#include \"ir.idl\"").expect_err("no such file");
    assert!(error.contains("cannot find the file `ir.idl`"), "{error}");
    assert!(with_corba("import ::CORBBA;").is_err());
}

#[test]
fn integers_are_computed_exactly() {
    integer("1 | 6 ^ 3 & 2 << 1", 7);
    integer("-7 / 2", -3);
    integer("-7 % 2", -1);
    integer("-8 >> 1", -4);
    integer("1 << 40", 1 << 40);
    integer("10 - 4 - 3", 3);
    integer("2 + 3 * 4", 14);
    integer("(2 + 3) * 4", 20);
    integer("- - 5", 5);
    integer("5 & -1", 5);
    integer("9223372036854775807 + 1 - 1", i128::from(i64::MAX));
    integer("~(-1)", 0);
    let text = "const unsigned long C = ~5;";
    assert_eq!(constant(text, "C"), ConstValue::Integer(0xffff_fffa));
    let text = "const octet O = 0x10; const short S = O * 2 + 'a';";
    let provider = MemoryFiles::new().with("main.idl", text);
    assert!(compile_with(&FrontEndOptions::default(), &provider, Path::new("main.idl")).is_err());
}

#[test]
fn other_constants_are_computed_exactly() {
    assert_eq!(constant("const float C = 0.1;", "C"), ConstValue::Float(f64::from(0.1f32)));
    assert_eq!(constant("const double C = 1.0 / 4.0 - -.5e1;", "C"), ConstValue::Float(5.25));
    assert_eq!(constant("const boolean C = TRUE;", "C"), ConstValue::Boolean(true));
    assert_eq!(constant("const char C = '\\xe9';", "C"), ConstValue::Char(0xe9));
    assert_eq!(constant("const string C = \"a\\t\" \"\\351\";", "C"), ConstValue::String("a\té".to_owned()));
    let text = "enum E { p, q }; const E B = q; const E C = B;";
    let model = model(text);
    let q = definition(&model, "q").id;
    assert_eq!(definition(&model, "C").as_const().map(|it| &it.value), Some(&ConstValue::Enumerator(q)));
}

#[test]
fn a_reopened_module_is_one_definition() {
    let model = model("module M { typedef long A; };\ntypedef long B;\nmodule M { typedef long C; };");
    assert_eq!(model.roots().len(), 2);
    let names: Vec<&str> = model.contents(definition(&model, "M").id).iter().map(|&id| &*model[id].name).collect();
    assert_eq!(names, ["A", "C"]);
}

#[test]
fn included_definitions_are_marked() {
    let model = model("#include \"part.idl\"\nmodule M { typedef long B; };");
    let in_main = |name| definition(&model, name).in_main_file;
    assert!(!in_main("Included") && !in_main("M::A"));
    assert!(in_main("M") && in_main("M::B"));
    assert_eq!(model.sources().files().len(), 2);
    let span = definition(&model, "M::A").span;
    assert_eq!(model.sources().text(span), "A");
    assert_eq!(model.sources().line_column(span), (1, 48));
}

#[test]
fn comments_before_definitions_are_kept() {
    let text = "// Not this one.\n\n/** Interface.\n * Two lines. */\ninterface I { // not this\n  /// Operation.\n  \
                void f(); // nor this\n  //! Attributes.\n  attribute long p,\n  // Second.\n  q; };\n\
                enum E { /* First. */ a, b };\n// Member's struct.\nstruct S {\n  // Member.\n  long x; };";
    let model = model(text);
    let doc = |name| definition(&model, name).doc.join("|");
    assert_eq!(doc("I"), " Interface.| Two lines.");
    assert_eq!(doc("I::f"), " Operation.");
    assert_eq!(doc("I::p"), " Attributes.");
    assert_eq!(doc("I::q"), " Second.");
    assert_eq!((doc("E").as_str(), doc("a").as_str(), doc("b").as_str()), ("", " First.", ""));
    assert_eq!(doc("S"), " Member's struct.");
    assert_eq!(definition(&model, "S").as_struct().expect("a struct").members[0].doc, [" Member."]);
}

#[test]
fn types_are_resolved_and_measured() {
    let model = model(
        "typedef long L; typedef L A[2][3]; typedef sequence<A, 5> Q; enum E { a1 };\n\
         struct Flat { A a; E e; long double d; }; struct Open { Flat f; string<3> s; };\n\
         struct Tree { sequence<Tree> children; };",
    );
    let ty = |name| Type::Named(definition(&model, name).id);
    assert_eq!(model.resolve(&ty("L")), &Type::Primitive(Primitive::Long));
    let array = Type::Array { element: Box::new(ty("L")), dimensions: vec![2, 3] };
    assert_eq!(model.resolve(&ty("A")), &array);
    assert_eq!(model.resolve(&ty("Q")), &Type::Sequence { element: Box::new(ty("A")), bound: Some(5) });
    assert!(model.is_fixed_size(&ty("A")) && model.is_fixed_size(&ty("Flat")) && model.is_fixed_size(&ty("E")));
    assert!(!model.is_fixed_size(&ty("Open")) && !model.is_fixed_size(&ty("Q")) && !model.is_fixed_size(&Type::Object));
    assert!(model.is_recursive(definition(&model, "Tree").id));
    assert!(!model.is_recursive(definition(&model, "Open").id));
    assert_eq!(model.resolve_named(&ty("E")).map(|it| &*it.name), Some("E"));
}

#[test]
fn interfaces_know_their_bases_and_operations() {
    let model = model(
        "exception X {}; interface Only; interface A { void fa() raises (X); }; interface B : A { attribute long b1; };\n\
         interface C : A { readonly attribute long c1 raises (X); };\n\
         interface D : B, C { oneway void fd(in long x); long g(out Only o, inout string<4> s); };",
    );
    let d = definition(&model, "D");
    let interface = d.as_interface().expect("an interface");
    let names = |ids: &[_]| ids.iter().map(|&id| model[id].name.clone()).collect::<Vec<_>>().join(" ");
    assert_eq!(names(&interface.bases), "B C");
    assert_eq!(names(&interface.all_bases), "A B C");
    assert_eq!(names(&model.flattened(d.id)), "fa b1 c1 fd g");
    assert!(definition(&model, "Only").as_interface().expect("an interface").forward_only && !interface.forward_only);
    assert!(definition(&model, "D::fd").as_operation().expect("an operation").oneway);
    let g = definition(&model, "D::g").as_operation().expect("an operation");
    assert_eq!(g.result, Some(Type::Primitive(Primitive::Long)));
    let modes: Vec<ParameterMode> = g.parameters.iter().map(|it| it.mode).collect();
    assert_eq!(modes, [ParameterMode::Out, ParameterMode::InOut]);
    assert_eq!(g.parameters[1].ty, Type::String { bound: Some(4) });
    let c = definition(&model, "C::c1").as_attribute().expect("an attribute");
    assert!(c.readonly && c.get_raises == [definition(&model, "X").id] && c.set_raises.is_empty());
}

#[test]
fn values_know_their_state_bases_and_initializers() {
    let model = model(
        "exception X {}; interface I {}; interface J : I {}; abstract valuetype A { void fa(); };\n\
         abstract valuetype B : A supports I {}; valuetype C : A { public long one, two[2]; private C next; attribute long e; };\n\
         valuetype D : truncatable C, B supports J {\n// Makes.\nfactory make(in D other, in long count) raises (X); };\n\
         valuetype Box sequence<D>; struct S { sequence<S> all; D one; }; valuetype Fwd;",
    );
    let names = |ids: &[_]| ids.iter().map(|&id| model[id].name.clone()).collect::<Vec<_>>().join(" ");
    let d = definition(&model, "D").as_value_type().expect("a value type");
    assert_eq!((&*names(&d.bases), &*names(&d.all_bases), &*names(&d.supports)), ("C B", "A C B", "J"));
    assert!(d.is_truncatable && !d.is_abstract && !d.is_custom && d.members.is_empty());
    let [factory] = &d.factories[..] else { panic!("one initializer") };
    assert_eq!((&*factory.name, &*factory.doc[0], &*names(&factory.raises)), ("make", " Makes.", "X"));
    let parameters: Vec<&str> = factory.parameters.iter().map(|it| &*it.name).collect();
    assert_eq!(parameters, ["other", "count"]);
    let c = definition(&model, "C");
    let state = c.as_value_type().expect("a value type").members.iter();
    let state: Vec<(bool, &str)> = state.map(|it| (it.is_public, &*it.member.name)).collect();
    assert_eq!(state, [(true, "one"), (true, "two"), (false, "next")]);
    assert_eq!(names(model.contents(c.id)), "e");
    assert!(model.is_recursive(c.id) && model.is_recursive(definition(&model, "S").id));
    assert!(!model.is_fixed_size(&Type::Named(c.id)));
    let d = Type::Named(definition(&model, "D").id);
    let boxed = Type::Sequence { element: Box::new(d), bound: None };
    assert_eq!(definition(&model, "Box").as_value_box().expect("a box").ty, boxed);
    assert!(definition(&model, "Fwd").as_value_type().expect("a value type").forward_only);
}

#[test]
fn bounds_may_be_constants_and_shifts() {
    let model =
        model("const long N = 2; typedef sequence<sequence<long, N>> A; typedef sequence<string<(8 >> N) + 1>> B;");
    let bound = |name: &str| match definition(&model, name).as_typedef().map(|it| &it.ty) {
        Some(Type::Sequence { element, .. }) => match **element {
            Type::Sequence { bound, .. } | Type::String { bound } => bound,
            _ => None,
        },
        _ => None,
    };
    assert_eq!((bound("A"), bound("B")), (Some(2), Some(3)));
}

#[test]
fn text_that_is_not_utf_8_is_latin_1() {
    let provider = MemoryFiles::new().with("main.idl", b"const string C = \"caf\xe9\"; // \xfc".to_vec());
    let result = compile_with(&FrontEndOptions::default(), &provider, Path::new("main.idl"));
    let model = result.expect("good IDL");
    let value = &definition(&model, "C").as_const().expect("a constant").value;
    assert_eq!(*value, ConstValue::String("café".to_owned()));
}

#[test]
fn an_unreadable_file_is_an_error_without_a_position() {
    let error = compile_with(&FrontEndOptions::default(), &MemoryFiles::new(), Path::new("none.idl"));
    let diagnostics = error.expect_err("there is no file");
    assert!(diagnostics.to_string().starts_with("error: cannot read none.idl: "));
    assert_eq!(diagnostics.sources().files().len(), 0);
}

#[test]
fn errors_are_send_and_sync() {
    fn is_error<E: std::error::Error + Send + Sync + 'static>() {}
    is_error::<spandrel_idl::Diagnostics>();
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Model>();
}

#[test]
fn unions_have_their_labels_and_an_unlisted_value() {
    let model = model(
        "enum E { p, q, r }; union Ints switch (octet) { case 0: case 1 + 1: long a; case 1: string b; };\n\
         union Least switch (short) { case 5: long a; }; union Whole switch (boolean) { case TRUE: case FALSE: long a; };\n\
         union Enums switch (E) { case p: long a; case r: long b[2]; }; union Rest switch (E) { case p: default: E a; };\n\
         union Chars switch (char) { case '\\0': long a; }; union Wide switch (wchar) { case L'\\0': long a; };",
    );
    let union = |name: &str| definition(&model, name).as_union().expect("a union");
    let integer = |value| Label::Value(ConstValue::Integer(value));
    assert_eq!(union("Ints").discriminator, Type::Primitive(Primitive::Octet));
    assert_eq!(union("Ints").branches[0].labels, [integer(0), integer(2)]);
    assert_eq!(union("Ints").branches[1].member.name, "b");
    assert_eq!(union("Ints").unlisted, Some(ConstValue::Integer(3)));
    assert_eq!(union("Least").unlisted, Some(ConstValue::Integer(-32768)));
    assert_eq!(union("Whole").unlisted, None);
    assert_eq!(union("Enums").unlisted, Some(ConstValue::Enumerator(definition(&model, "q").id)));
    let long = Box::new(Type::Primitive(Primitive::Long));
    assert_eq!(union("Enums").branches[1].member.ty, Type::Array { element: long, dimensions: vec![2] });
    let p = Label::Value(ConstValue::Enumerator(definition(&model, "p").id));
    assert_eq!((&union("Rest").branches[0].labels[..], &union("Rest").unlisted), (&[p, Label::Default][..], &None));
    assert_eq!(union("Chars").unlisted, Some(ConstValue::Char(1)));
    assert_eq!(union("Wide").unlisted, Some(ConstValue::WideChar('\u{1}')));
    assert!(!model.is_fixed_size(&Type::Named(definition(&model, "Whole").id)));
}

#[test]
fn unions_may_contain_themselves_through_sequences() {
    let model = model(
        "union Tree; typedef sequence<Tree> Trees;\n\
         union Tree switch (boolean) { case TRUE: struct Node { Trees below; } inside; case FALSE: long leaf; };",
    );
    let tree = definition(&model, "Tree");
    assert!(model.is_recursive(tree.id) && model.is_recursive(definition(&model, "Tree::Node").id));
    assert_eq!(model.contents(tree.id), [definition(&model, "Tree::Node").id]);
}

#[test]
fn decimal_constants_have_the_scale_of_their_type() {
    let model = model(
        "typedef fixed<5, 2> T; const fixed A = 1.50d; const T B = 2.5d; const fixed C = -1d / 8d; const fixed D = 0.05d;",
    );
    let constant = |name: &str| {
        let constant = definition(&model, name).as_const().expect("a constant");
        let ty = model.resolve(&constant.ty).clone();
        (ty, constant.value.clone())
    };
    let expected = |digits, scale, unscaled| {
        let value = FixedValue { unscaled, scale: scale as u8 };
        (Type::Fixed { digits, scale }, ConstValue::Fixed(value))
    };
    assert_eq!(constant("A"), expected(2, 1, 15));
    assert_eq!(constant("B"), expected(5, 2, 250));
    assert_eq!(constant("C"), expected(3, 3, -125));
    assert_eq!(constant("D"), expected(2, 2, 5));
}

#[test]
fn wide_constants_hold_any_character() {
    assert_eq!(constant("const wchar C = L'\\u20ac';", "C"), ConstValue::WideChar('€'));
    let text = "const wstring C = L\"\\ud83d\\ude00 \" L\"\\xe9\";";
    assert_eq!(constant(text, "C"), ConstValue::WideString("😀 é".to_owned()));
}

#[test]
fn interfaces_know_their_kind() {
    let model = model(
        "abstract interface A {}; local interface L : A {}; interface R : A { void f(in any a) context (\"x*\"); };\n\
         native N; module CORBA { typedef TypeCode Own; }; typedef CORBA::AbstractBase B; typedef ValueBase V;",
    );
    let sort = |name: &str| {
        let interface = definition(&model, name).as_interface().expect("an interface");
        (interface.is_abstract, interface.is_local)
    };
    assert_eq!((sort("A"), sort("L"), sort("R")), ((true, false), (false, true), (false, false)));
    let operation = definition(&model, "R::f").as_operation().expect("an operation");
    assert_eq!((&operation.parameters[0].ty, &operation.context[..]), (&Type::Any, &["x*".to_owned()][..]));
    let ty = |name: &str| definition(&model, name).as_typedef().expect("a typedef").ty.clone();
    assert_eq!((ty("CORBA::Own"), ty("B"), ty("V")), (Type::TypeCode, Type::AbstractBase, Type::ValueBase));
    assert_eq!(definition(&model, "N").kind.keyword(), "native");
}

#[test]
fn annotations_are_kept_with_their_values() {
    let model = model(
        "const long N = 2;\n// Behind.\n@id(N + 1) @other(x, value = \"y\")\nstruct S { @key long a, b; };\n\
         interface I { @oneway void f(@my(TRUE) in long a); }; enum E { @value(7) seven };",
    );
    let integer = |value| AnnotationValue::Const(ConstValue::Integer(value));
    let annotation = |name: &str, parameters: &[(Option<&str>, AnnotationValue)]| Annotation {
        name: name.to_owned(),
        parameters: parameters.iter().map(|(name, value)| (name.map(str::to_owned), value.clone())).collect(),
    };
    let s = definition(&model, "S");
    let text = AnnotationValue::Const(ConstValue::String("y".to_owned()));
    let other = annotation("other", &[(None, AnnotationValue::Name("x".to_owned())), (Some("value"), text)]);
    assert_eq!(s.annotations, [annotation("id", &[(None, integer(3))]), other]);
    assert_eq!(s.doc, [" Behind."]);
    let key = [annotation("key", &[])];
    assert!(s.as_struct().expect("a struct").members.iter().all(|member| member.annotations == key));
    let f = definition(&model, "I::f").as_operation().expect("an operation");
    assert!(f.oneway, "the annotation has the effect of the keyword");
    let yes = AnnotationValue::Const(ConstValue::Boolean(true));
    assert_eq!(f.parameters[0].annotations, [annotation("my", &[(None, yes)])]);
    assert_eq!(definition(&model, "seven").annotations, [annotation("value", &[(None, integer(7))])]);
}

#[test]
fn a_user_orb_idl_replaces_the_built_in_one() {
    let text = "#include <orb.idl>\n#include \"tao/orb.idl\"\ntypedef CORBA::StringSeq T;";
    let model = model(text);
    assert_eq!(definition(&model, "CORBA::StringSeq").repository_id, "IDL:omg.org/CORBA/StringSeq:1.0");
    assert_eq!(definition(&model, "T").repository_id, "IDL:T:1.0");
    let built_in: Vec<bool> = model.sources().files().iter().map(|it| it.built_in).collect();
    assert_eq!(built_in, [false, true]);
    let provider =
        MemoryFiles::new().with("main.idl", text).with("lib/orb.idl", "module CORBA { typedef long StringSeq; };");
    let options = FrontEndOptions { include_paths: vec!["lib".into()], ..FrontEndOptions::default() };
    let own = compile_with(&options, &provider, Path::new("main.idl")).expect("one orb.idl is enough");
    assert!(
        matches!(own.lookup("CORBA::StringSeq").and_then(|it| it.as_typedef()), Some(it) if it.ty == Type::Primitive(Primitive::Long))
    );
}

#[test]
fn parts_of_orb_idl_are_read_when_they_are_used() {
    let corba = |text: &str| {
        let model = model(&format!("#include <orb.idl>\n{text}"));
        let names = model.definitions().map(|it| it.scoped_name.strip_prefix("CORBA::").unwrap_or("").to_owned());
        names.filter(|name| !name.is_empty()).collect::<Vec<_>>()
    };
    let core = corba("");
    assert!(core.contains(&"PolicyError".to_owned()) && core.len() < 60, "{core:?}");
    for (name, beside) in [
        ("WrongTransaction", None),
        ("ServiceType", Some("ServiceInformation")),
        ("TCKind", Some("tk_event")),
        ("PollableSet", Some("Pollable::is_ready")),
        ("DataOutputStream", Some("DataInputStream::read_fixed_array")),
        ("InterfaceDef", Some("ValueDef::FullValueDescription")),
    ] {
        let text = format!("local interface I {{ void f(in CORBA::{name} a); }};");
        let text = if name == "WrongTransaction" {
            text.replace("(in CORBA::WrongTransaction a)", "() raises (CORBA::WrongTransaction)")
        } else {
            text
        };
        let definitions = corba(&text);
        assert!(definitions.starts_with(&core), "the earlier definitions are unchanged");
        for expected in [Some(name), beside].into_iter().flatten() {
            assert!(definitions[core.len()..].iter().any(|it| it == expected), "{expected} in {definitions:?}");
        }
        let kinds = definitions.iter().filter(|it| *it == "TCKind" || *it == "InterfaceDef" || *it == "BadFixedValue");
        let is_one = matches!(name, "TCKind" | "InterfaceDef" | "DataOutputStream");
        assert_eq!(kinds.count(), usize::from(is_one), "only the used part is read: {definitions:?}");
    }
    // As names of a reopened module CORBA, and of one with its own definition.
    assert!(corba("module CORBA { typedef TCKind Kind; };").contains(&"tk_null".to_owned()));
    assert!(!corba("module CORBA { enum TCKind { mine }; typedef TCKind Kind; };").contains(&"tk_null".to_owned()));
    // The name elsewhere is a different one.
    assert_eq!(corba("interface Repository { }; typedef Repository R;"), core);
    let provider = MemoryFiles::new().with("main.idl", "#include <orb.idl>\ntypedef CORBA::TCKin T;");
    let error = compile_with(&FrontEndOptions::default(), &provider, Path::new("main.idl")).expect_err("no such name");
    assert!(error.to_string().contains("`CORBA` has no `TCKin`"), "{error}");
    // A user's `orb.idl` is used as it is.
    let provider = MemoryFiles::new()
        .with("main.idl", "#include \"orb.idl\"\n#include <orb.idl>\ntypedef CORBA::TCKind T;")
        .with("orb.idl", "module CORBA { typedef long Flags; };");
    let error = compile_with(&FrontEndOptions::default(), &provider, Path::new("main.idl")).expect_err("no such name");
    assert!(error.to_string().contains("`CORBA` has no `TCKind`"), "{error}");
}

#[test]
fn types_may_contain_sequences_of_each_other() {
    let text = "struct A; struct B; typedef sequence<A> As; typedef sequence<B> Bs;\n\
                struct A { Bs down; }; struct B { As up; }; struct Both { A one; B two; };";
    let model = model(text);
    assert!(model.is_recursive(definition(&model, "A").id) && model.is_recursive(definition(&model, "B").id));
    assert!(!model.is_recursive(definition(&model, "Both").id));
}
