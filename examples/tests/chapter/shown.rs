//! Compares the code blocks of a documentation page with compiled and tested sources.

use std::path::Path;

/// The text of a file in this package.
fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Lines without their indentation: documentation shows code without that of its surroundings.
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

/// Checks that each block of `page` in this language occurs in one of the sources, and that there are at
/// least `at_least` blocks.
#[track_caller]
pub(crate) fn check(page: &str, language: &str, sources: &[&str], at_least: usize) {
    let chapter = text(&format!("../{page}"));
    let sources: Vec<String> = sources.iter().map(|path| text(path)).collect();
    let sources: Vec<Vec<&str>> = sources.iter().map(|text| flush_left(text)).collect();
    let blocks = blocks(&chapter, language);
    assert!(blocks.len() >= at_least, "only {} blocks of {language} were found", blocks.len());
    for (line, block) in blocks {
        let occurs = sources.iter().any(|source| source.windows(block.len()).any(|lines| lines == block));
        assert!(occurs, "{page}, line {line}: this is not what is tested:\n{}", block.join("\n"));
    }
}
