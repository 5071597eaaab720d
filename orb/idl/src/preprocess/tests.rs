//! Properties of the preprocessor: input text and output tokens.

use std::path::Path;

use super::*;
use crate::diagnostic::{Diagnostics, Severity};
use crate::source::MemoryFiles;

/// The settings of a text's pragmas, and the diagnostics.
fn preprocessed(text: &str) -> (Vec<String>, Diagnostics) {
    let (mut sources, mut interner, mut reporter) = (SourceMap::default(), Interner::new(), Reporter::default());
    let mut portability = Portability::default();
    let context = Context {
        sources: &mut sources,
        interner: &mut interner,
        reporter: &mut reporter,
        portability: &mut portability,
    };
    let main = (Path::new("main.idl"), text.as_bytes().to_vec());
    let out = preprocess(&FrontEndOptions::default(), &MemoryFiles::new(), &Parts::default(), main, context);
    let events = out.events.into_iter().filter_map(|event| match event.kind {
        EventKind::Prefix(prefix) => Some(format!("Prefix {prefix}")),
        EventKind::Id { id, .. } => Some(format!("Id {id}")),
        EventKind::Version { version, .. } => Some(format!("Version {version}")),
        EventKind::EnterFile | EventKind::LeaveFile => None,
    });
    (events.collect(), reporter.finish(Arc::new(sources)))
}

/// Preprocesses `main.idl` of these files; the spellings joined by blanks, and the messages.
fn run(files: &[(&str, &str)]) -> (String, Vec<String>) {
    let mut provider = MemoryFiles::new();
    for (name, text) in files {
        provider = provider.with(*name, *text);
    }
    let main = provider.read(Path::new("main.idl")).expect("main.idl exists");
    let options = FrontEndOptions {
        include_paths: vec!["lib".into()],
        defines: vec![("GIVEN".to_owned(), Some("7".to_owned()))],
        ..FrontEndOptions::default()
    };
    let (mut sources, mut interner, mut reporter) = (SourceMap::default(), Interner::new(), Reporter::default());
    let mut portability = Portability::default();
    let context = Context {
        sources: &mut sources,
        interner: &mut interner,
        reporter: &mut reporter,
        portability: &mut portability,
    };
    let out = preprocess(&options, &provider, &Parts::default(), (Path::new("main.idl"), main), context);
    let words: Vec<String> = out.tokens.iter().map(|token| interner.text(token.symbol).to_string()).collect();
    let diagnostics = reporter.finish(Arc::new(sources));
    let messages = diagnostics.iter().map(|it| it.message.clone());
    (words.join(" "), messages.collect())
}

#[track_caller]
fn expands(text: &str, expected: &str) {
    let (words, messages) = run(&[("main.idl", text)]);
    assert_eq!(messages, [] as [&str; 0]);
    assert_eq!(words, expected);
}

#[track_caller]
fn complains(text: &str, message: &str) {
    let (_, messages) = run(&[("main.idl", text)]);
    assert!(messages.iter().any(|it| it.contains(message)), "{messages:?}");
}

#[test]
fn macros_are_expanded() {
    expands("#define A 1 + B\n#define B 2\nA", "1 + 2");
    expands("#define f(x, y) y x\nf(a (b, c), d)", "d a ( b , c )");
    expands("#define f(x) x\nf\n(\n1\n)\nf", "1 f");
    expands("#define f(x) #x\nf(a  b \"c\\n\")", r#""a b \"c\\n\"""#);
    expands("#define f(x, y) x##y\nf(in, terface)", "interface");
    expands("#define f(x, y) x##y\nf(, a) f(b,) f(,)", "a b");
    expands("#define f(x, y, z) w x##y##z\nf(, a, b) f(a, , b) f(, , b) f(, a, )", "w ab w ab w b w a");
    expands("#define A B\n#undef A\nA", "A");
    expands("GIVEN", "7");
}

#[test]
fn a_macro_is_not_expanded_inside_itself() {
    expands("#define A A + 1\nA", "A + 1");
    expands("#define A B\n#define B A\nA B", "A B");
    // The example of the C standard, 6.10.3.5.
    expands(
        "#define x 3\n#define f(a) f(x * (a))\n#undef x\n#define x 2\n#define g f\n#define z z[0]\n\
         #define h g(~\n#define m(a) a(w)\n#define w 0,1\n#define t(a) a\nf(y+1) + f(f(z)) % t(t(g)(0) + t)(1);",
        "f ( 2 * ( y + 1 ) ) + f ( 2 * ( f ( 2 * ( z [ 0 ] ) ) ) ) % f ( 2 * ( 0 ) ) + t ( 1 ) ;",
    );
}

#[test]
fn conditionals_choose_lines() {
    expands("#if 1 > 2\na\n#elif 2 == 2 && !defined(X)\nb\n#else\nc\n#endif", "b");
    expands("#ifdef GIVEN\na\n#endif\n#ifndef GIVEN\nb\n#endif", "a");
    expands("#if GIVEN == 7 ? 1 : 0\na\n#endif", "a");
    expands("#if 0\ndon't \"mind\n#if 1\nx\n#endif\n# nonsense\n/* c */ #endif\na", "a");
    expands("#if (1 << 3 | 1) == 9 && 'a' == 97 && ~0 == -1\na\n#endif", "a");
    for yes in [
        "-1 > 0u",
        "0xffffffffffffffff == -1",
        "0xffffffffffffffff > 1",
        "0x8000000000000000 / 2 == 0x4000000000000000",
        "-1 / 2u > 1 && -1 % 10u == 5 && -1 >> 1 == -1 && (-1 + 0u) >> 63 == 1",
        "(1 ? -1 : 0u) > 0 && (0u - 1) / 2 == 9223372036854775807",
        "!(~0u < 0) && (2u > 1) - 2 < 0",
        "1 || 1/0",
        "!(0 && 1/0) && (1 ? 1 : 1/0) && (1 || 0 && 1 % 0 << 99)",
    ] {
        expands(&format!("#if {yes}\na\n#endif"), "a");
    }
    complains("#if 1 && 1/0\n#endif", "division by zero");
    complains("#if 1 << -1\n#endif", "division by zero or overflow");
    complains("#if 1\n", "not closed");
    complains("#endif\n", "#endif without #if");
    complains("#if 1\n#else\n#else\n#endif", "#else after #else");
    complains("#if 1/0\n#endif", "division by zero");
    complains("#if 1 +\n#endif", "ends too early");
    complains("#ifdeff A\n#endif", "`#ifdeff` is not a directive");
}

#[test]
fn files_are_found_in_the_folder_of_the_includer_and_in_include_paths() {
    let files = [
        ("main.idl", "#include \"sub/a.idl\"\n#include <c.idl>\nmain"),
        ("sub/a.idl", "#include \"b.idl\"\na"),
        ("sub/b.idl", "b"),
        ("lib/c.idl", "c"),
    ];
    assert_eq!(run(&files).0, "b a c main");
    complains("#include <main.idl>", "cannot find the file `main.idl`");
    complains("#include nothing", "has no file name");
}

#[test]
fn an_include_may_come_from_a_macro() {
    let files = [("main.idl", "#define FILE <c.idl>\n#include FILE\n"), ("lib/c.idl", "c")];
    assert_eq!(run(&files), ("c".to_owned(), vec![]));
}

#[test]
fn a_file_with_pragma_once_is_read_once() {
    let files = [("main.idl", "#include \"a.idl\"\n#include \"a.idl\"\n"), ("a.idl", "#pragma once\na")];
    assert_eq!(run(&files), ("a".to_owned(), vec![]));
}

#[test]
fn line_and_file_are_predefined() {
    let files = [
        ("main.idl", "#define at __LINE__ __FILE__\n__LINE__\n#include \"a\\b.idl\"\nat\n\nat __LINE__"),
        ("a\\b.idl", "#if defined __LINE__ && defined(__FILE__) && __LINE__ == 1\n__FILE__ __LINE__\n#endif"),
    ];
    assert_eq!(run(&files), (r#"2 "a\\b.idl" 2 4 "main.idl" 6 "main.idl" 6"#.to_owned(), vec![]));
    expands("#ifdef __LINE__\n#define f(x) #x x\nf(__LINE__)\n#endif", "\"__LINE__\" 3");
    expands("#define __LINE__ x\n__LINE__", "x");
    // A file of many lines is searched once.
    expands(&format!("{}__LINE__\n__LINE__", "\n".repeat(100_000)), "100001 100002");
}

#[test]
fn files_may_be_nested_as_those_of_rmic() {
    let names: Vec<String> =
        (0..199).map(|nth| if nth == 0 { "main.idl".to_owned() } else { format!("{nth}.idl") }).collect();
    let texts: Vec<String> =
        (1..200).map(|nth| if nth == 199 { "x".to_owned() } else { format!("#include \"{nth}.idl\"") }).collect();
    let files: Vec<(&str, &str)> =
        names.iter().zip(&texts).map(|(name, text)| (name.as_str(), text.as_str())).collect();
    assert_eq!(run(&files), ("x".to_owned(), vec![]));
}

#[test]
fn infinite_inclusion_is_an_error() {
    complains("#include \"main.idl\"\n#include \"main.idl\"\n", "too deep");
}

#[test]
fn exponential_expansion_is_an_error() {
    let mut text = String::from("#define A0 x x\n");
    for level in 1..64 {
        let below = level - 1;
        text += &format!("#define A{level} A{below} A{below}\n");
    }
    complains(&(text + "A63"), "expand to too much text");
}

#[test]
fn user_errors_and_warnings_are_reported() {
    complains("#error do not\n", "#error: do not");
    complains("#warning take care\n", "#warning: take care");
    expands("#if 0\n#error no\n#endif\n#line 5 \"x\"\n# 7 \"y\"\n#pragma hh\n#pragma\na", "a");
    complains("#pragma whatever\n", "unknown pragma `whatever`");
}

#[test]
fn incorrect_uses_of_macros_are_reported() {
    complains("#define f(x) x\nf(1, 2)", "takes 1 argument, but 2 are given");
    complains("#define f(x) x\nf(1", "do not end");
    complains("#define f(x, x) x\n", "malformed");
    complains("#define A ##\n", "`##` is at an end");
    complains("#define A 1\n#define A 2\n", "redefined");
    complains("#pragma prefx \"a\"", "unknown pragma `prefx`");
    complains("#pragma version A 1", "malformed");
    complains("/* a", "not closed");
}

#[test]
fn a_semicolon_after_a_pragma_is_a_warning() {
    let text = "#pragma prefix \"x\";\n#pragma prefix \"x\" ; // again\n#pragma ID A \"IDL:a:1.0\";\n#pragma version A 1.2;\nA";
    let (events, diagnostics) = preprocessed(text);
    assert_eq!(events, ["Prefix x", "Prefix x", "Id IDL:a:1.0", "Version 1.2"]);
    let reports: Vec<_> = diagnostics.iter().map(|it| (it.severity, &*it.message)).collect();
    assert_eq!(reports, [(Severity::Warning, "a pragma ends with its line"); 4]);
    complains("#pragma prefix \"x\";;", "malformed");
    complains("#pragma prefix ;", "malformed");
}

#[test]
fn a_guarded_file_is_read_again_after_undef_of_its_guard() {
    let part = "#ifndef PART\n#define PART\npart\n#endif\n";
    let main = "#include \"part.idl\"\n#include \"part.idl\"\nmain\n#undef PART\n#include \"part.idl\"\n";
    assert_eq!(run(&[("main.idl", main), ("part.idl", part)]), ("part main part".to_owned(), Vec::new()));
}

#[test]
fn repeated_inclusion_of_a_guarded_file_is_cheap() {
    let part = format!("#ifndef PART\n#define PART\npart\n#endif\n/*{}*/", "x".repeat(100_000));
    let main = "#include \"part.idl\"\n".repeat(5000);
    assert_eq!(run(&[("main.idl", &main), ("part.idl", &part)]), ("part".to_owned(), Vec::new()));
}
