//! The code of docs/mapping.md, and that the chapter shows it as it is.

use std::path::Path;

#[path = "chapter/anything.rs"]
mod anything;
#[path = "chapter/interfaces.rs"]
mod interfaces;
#[path = "chapter/locals.rs"]
mod locals;
#[path = "mapping/pair.rs"]
mod pair;
#[path = "chapter/types.rs"]
mod types;

mod idl {
    spandrel::include_idl!("chapter");
}

/// The text of a file in this package.
fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Lines without their indentation, so that code can be shown as far left as it goes.
fn flush_left(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

/// The blocks of a Markdown text in this language, each with the number of its first line.
fn blocks<'t>(text: &'t str, language: &str) -> Vec<(usize, Vec<&'t str>)> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, Vec<&str>)> = None;
    for (number, line) in text.lines().enumerate() {
        match (&mut open, line.trim()) {
            (Some(_), "```") => blocks.extend(open.take()),
            (Some((_, lines)), line) if !line.is_empty() => lines.push(line),
            (None, line) if line.strip_prefix("```") == Some(language) => open = Some((number + 2, Vec::new())),
            _ => {}
        }
    }
    blocks
}

#[track_caller]
fn check_shown(language: &str, sources: &[&str], at_least: usize) {
    let chapter = text("../docs/mapping.md");
    let sources: Vec<String> = sources.iter().map(|path| text(path)).collect();
    let sources: Vec<Vec<&str>> = sources.iter().map(|text| flush_left(text)).collect();
    let blocks = blocks(&chapter, language);
    assert!(blocks.len() >= at_least, "only {} blocks of {language} were found", blocks.len());
    for (line, block) in blocks {
        let occurs = sources.iter().any(|source| source.windows(block.len()).any(|lines| lines == block));
        assert!(occurs, "docs/mapping.md, line {line}: this is not what is tested:\n{}", block.join("\n"));
    }
}

#[test]
fn the_chapter_shows_idl_that_is_compiled() {
    check_shown("idl", &["mapping/chapter.idl", "asynchronous/weather.idl", "mapping/values.idl"], 15);
}

#[test]
fn the_chapter_shows_rust_that_is_run() {
    let sources = ["types", "anything", "interfaces", "locals"].map(|name| format!("tests/chapter/{name}.rs"));
    let sources = sources.each_ref().map(String::as_str);
    check_shown("rust", &[&sources[..], &["asynchronous/main.rs", "tests/values.rs"]].concat(), 23);
}
