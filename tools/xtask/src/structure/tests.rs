//! Small crates, written as strings, and the edges and cycles that are found in them.

use std::path::Path;

use super::graph::{Graph, Graphs, graphs};
use super::parse::read;
use super::spread::spreads;
use super::tree::Crate;

/// A crate of files below `/NAME/`; the root is `lib.rs`.
fn krate(name: &str, files: &[(&str, &str)]) -> Crate {
    let sources = |path: &Path| {
        let path = path.to_str()?.strip_prefix(&format!("/{name}/"))?;
        files.iter().find(|(file, _)| *file == path).map(|(_, text)| (*text).to_owned())
    };
    read(name, Path::new(&format!("/{name}/lib.rs")), &sources).unwrap()
}

fn graphs_of(files: &[(&str, &str)]) -> Graphs {
    graphs(&[krate("a", files)], 0)
}

/// Edges of a graph as `from>to:names`.
fn edges(graph: &Graph) -> Vec<String> {
    let words = |names: &std::collections::BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(",");
    graph.edges.iter().map(|((from, to), names)| format!("{from}>{to}:{}", words(names))).collect()
}

#[test]
fn a_chain_of_re_exports_leads_to_the_module_that_defines_the_item() {
    let graphs = graphs_of(&[
        ("lib.rs", "mod a; mod b; mod c; pub use b::Thing;"),
        ("a.rs", "use crate::Thing; fn f(_: Thing) {}"),
        ("b.rs", "mod inner; pub use self::inner::Renamed as Thing;"),
        ("b/inner.rs", "pub use crate::c::Original as Renamed;"),
        ("c.rs", "pub struct Original;"),
    ]);
    assert_eq!(edges(&graphs.modules), ["a>c:Original", "b>c:Original"]);
    assert_eq!(edges(&graphs.files), ["a.rs>c.rs:Original", "b/inner.rs>c.rs:Original"]);
    assert_eq!((graphs.modules.nodes.len(), graphs.modules.levels()), (3, 2));
}

#[test]
fn names_are_followed_through_globs_of_modules_and_of_enums() {
    let graphs = graphs_of(&[
        ("lib.rs", "mod a; mod b; mod c; mod d;"),
        ("a.rs", "use crate::b::*; fn f() -> Public { g(Left) }"),
        ("b.rs", "pub use crate::c::*; use crate::d::Hidden; pub use crate::d::Side::*; fn own(_: Hidden) {}"),
        ("c.rs", "pub struct Public; pub fn g() {}"),
        ("d.rs", "pub struct Hidden; pub enum Side { Left, Right }"),
    ]);
    assert_eq!(edges(&graphs.modules), ["a>c:Public,g", "a>d:Side", "b>d:Hidden"]);
}

#[test]
fn a_private_import_is_not_taken_by_a_glob_of_another_module() {
    let graphs = graphs_of(&[
        ("lib.rs", "mod a; mod b; mod c; mod d;"),
        ("a.rs", "use crate::b::*; use crate::c::*; fn f(_: Name) {}"),
        ("b.rs", "use crate::d::Name; fn own(_: Name) {}"),
        ("c.rs", "pub struct Name;"),
        ("d.rs", "pub struct Name;"),
    ]);
    assert_eq!(edges(&graphs.modules), ["a>c:Name", "b>d:Name"]);
}

#[test]
fn paths_count_in_functions_blocks_and_arguments_of_macros() {
    let graphs = graphs_of(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        (
            "a.rs",
            "fn f() { use crate::b::One; { use super::b as other; other::two(One); } }
             fn g() { println!(\"{}\", crate::b::THREE); let b = 1; b.four(); two(); }
             mod inner { fn h() -> super::super::b::Five<crate::c::Six> { loop {} } }",
        ),
        ("b.rs", "pub struct One; pub fn two() {} pub const THREE: u8 = 3; pub fn four() {} pub struct Five;"),
        ("c.rs", "pub struct Six;"),
    ]);
    assert_eq!(edges(&graphs.modules), ["a>b:Five,One,THREE,two", "a>c:Six"]);
}

#[test]
fn macros_are_found_by_path_by_export_and_by_place() {
    let graphs = graphs_of(&[
        ("lib.rs", "#[macro_use] mod a; mod b; macro_rules! at_root { () => {} }"),
        (
            "a.rs",
            "macro_rules! named { () => { $crate::b::used() } } pub(crate) use named; #[macro_export] macro_rules! out { () => {} }",
        ),
        (
            "b.rs",
            "pub fn used() { at_root!(); crate::a::named!(); crate::out!(); made!(); } made! { pub struct Made; } mod c;",
        ),
        ("b/c.rs", "use super::Made;"),
    ]);
    assert_eq!(edges(&graphs.modules), ["a>b:used", "b>a:named,out", "b>crate:at_root"]);
    assert_eq!(graphs.files.edges.len(), 4, "a child uses its parent, too: {:?}", edges(&graphs.files));
}

#[test]
fn a_parent_that_hands_on_its_children_s_items_uses_none_of_them() {
    let graphs = graphs_of(&[
        ("lib.rs", "mod a; pub use a::First;"),
        ("a/mod.rs", "mod first; mod second; mod third; pub use first::First; use second::Second; use third::Trait;"),
        ("a/first.rs", "use super::Second; pub struct First(Second);"),
        ("a/second.rs", "pub struct Second;"),
        ("a/third.rs", "pub trait Trait {}"),
    ]);
    assert_eq!(edges(&graphs.modules), [""; 0]);
    // Methods of a trait are called without its name: the import of a trait is a use.
    assert_eq!(edges(&graphs.files), ["a/first.rs>a/second.rs:Second", "a/mod.rs>a/third.rs:Trait"]);
}

#[test]
fn parent_and_child_that_use_each_other_are_a_cycle_of_files() {
    let graphs = graphs_of(&[
        ("lib.rs", "mod a;"),
        ("a.rs", "mod child; use child::start; pub struct Shared; fn f() { start() }"),
        ("a/child.rs", "use super::Shared; pub fn start() {}"),
    ]);
    assert_eq!(graphs.modules.cycles().len(), 0);
    assert_eq!(edges(&graphs.files), ["a.rs>a/child.rs:start", "a/child.rs>a.rs:Shared"]);
}

#[test]
fn a_cycle_is_found_with_all_its_modules_and_counts_as_one_level() {
    let graphs = graphs_of(&[
        ("lib.rs", "mod a; mod b; mod c; mod d; mod e;"),
        ("a.rs", "use crate::b::B; pub struct A(B);"),
        ("b.rs", "use crate::c::C; pub struct B(C);"),
        ("c.rs", "pub struct C(Option<Box<crate::a::A>>, crate::d::D);"),
        ("d.rs", "pub struct D;"),
        ("e.rs", "fn f(_: crate::a::A) {}"),
    ]);
    let cycles = graphs.modules.cycles();
    assert_eq!(cycles.len(), 1);
    assert_eq!(Vec::from_iter(&cycles[0]), ["a", "b", "c"]);
    assert_eq!(graphs.modules.edges_within(&cycles[0]).len(), 3);
    assert_eq!(graphs.modules.levels(), 3, "e, the cycle, d");
}

#[test]
fn code_of_tests_is_left_out_and_code_without_tests_is_not() {
    let graphs = graphs_of(&[
        ("lib.rs", "mod a; mod b; #[cfg(test)] mod t; #[cfg(all(test, shuttle))] mod models;"),
        (
            "a.rs",
            "#[cfg(test)] use crate::b::One; #[cfg(test)] mod tests { use crate::b::Two; }
             struct S; impl S { #[cfg(test)] fn f(_: crate::b::One) {} } #[test] fn g() { crate::b::two(); }
             #[cfg(not(test))] use crate::b::Three; #[cfg(any(test, unix))] use crate::b::Four;
             fn h() { #[cfg(test)] let x = crate::b::One; }",
        ),
        ("b.rs", "pub struct One; pub struct Two; pub struct Three; pub struct Four; pub fn two() {}"),
    ]);
    assert_eq!(edges(&graphs.modules), ["a>b:Four,Three"]);
}

#[test]
fn all_alternatives_of_a_module_are_read() {
    let graphs = graphs_of(&[
        ("lib.rs", "mod a; mod b; #[cfg(unix)] mod c; #[cfg(not(unix))] #[path = \"c/absent.rs\"] mod c;"),
        ("a.rs", "use crate::c::{Name, Once}; fn f(_: Name) {}"),
        ("b.rs", "pub struct Other;"),
        ("c/mod.rs", "pub struct Name; pub struct Once;"),
        ("c/absent.rs", "mod below; pub struct Name(crate::b::Other);"),
        ("c/below.rs", ""),
    ]);
    assert_eq!(edges(&graphs.modules), ["a>c:Name,Once", "c>b:Other"]);
    assert_eq!(edges(&graphs.files), ["a.rs>c/absent.rs:Name", "a.rs>c/mod.rs:Name,Once", "c/absent.rs>b.rs:Other"]);
}

#[test]
fn a_missing_file_is_an_error_that_names_the_module() {
    let sources = |path: &Path| path.ends_with("lib.rs").then(|| "mod absent;".to_owned());
    let error = read("a", Path::new("/a/lib.rs"), &sources).unwrap_err();
    assert_eq!(error.to_string(), "no file for module `absent` declared below /a");
}

#[test]
fn a_name_is_followed_through_another_crate_and_back() {
    let mut crates = [
        krate("base", &[("lib.rs", "mod w; mod x; pub use x::Item;"), ("w.rs", ""), ("x.rs", "pub struct Item;")]),
        krate("facade", &[("lib.rs", "pub use base::*; pub use base as renamed;")]),
        krate(
            "user",
            &[
                ("lib.rs", "mod own; use facade::Item; impl facade::renamed::Item {} fn f(_: Item) {}"),
                ("own.rs", "impl T for facade::Item {}"),
            ],
        ),
    ];
    crates[1].externs.insert("base".to_owned(), 0);
    crates[2].externs.insert("facade".to_owned(), 1);
    assert_eq!(edges(&graphs(&crates, 2).modules), [""; 0], "no uses inside the crate");
    let spreads = spreads(&crates);
    assert_eq!(spreads.len(), 1);
    assert_eq!((spreads[0].name.as_str(), spreads[0].krate, spreads[0].inherent, spreads[0].traits), ("Item", 0, 1, 1));
}

#[test]
fn an_item_of_a_foreign_crate_belongs_to_the_module_that_re_exports_it() {
    let graphs = graphs_of(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::Arc; mod inner { use super::super::b::*; fn f(_: Arc<Cell<u8>>) {} }"),
        ("b.rs", "pub use std::sync::Arc; use std::cell::Cell; made! { Cell } mod child;"),
        ("b/child.rs", "use super::Cell;"),
    ]);
    assert_eq!(edges(&graphs.files), ["a.rs>b.rs:Arc"]);
}

#[test]
fn a_circle_of_globs_ends() {
    let graphs = graphs_of(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "pub use crate::b::*;"),
        ("b.rs", "pub use crate::a::*; pub struct Name;"),
        ("c.rs", "use crate::a::{Name, Absent}; fn f(_: Name) {}"),
    ]);
    assert_eq!(edges(&graphs.modules), ["c>a:Absent", "c>b:Name"]);
}

#[test]
fn the_spread_of_a_type_counts_files_and_not_blocks() {
    let files = [
        ("lib.rs", "mod a; mod b; pub struct S; impl S {} impl S {} impl Clone for S {}"),
        ("a.rs", "use crate::S as Renamed; impl Renamed {} impl<'a> From<&'a u8> for &'a Renamed {}"),
        ("b.rs", "#[cfg(test)] impl crate::S {} impl crate::S {}"),
    ];
    let spreads = spreads(&[krate("a", &files)]);
    assert_eq!((spreads[0].name.as_str(), spreads[0].inherent, spreads[0].traits), ("S", 3, 2));
}
