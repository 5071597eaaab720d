//! Listings: each block of code on a page of the book is that of a compiled file.
//!
//! A comment before the block names the file, or a region of it between the lines `ANCHOR: name` and
//! `ANCHOR_END: name`. The comment is not shown on a repository's page or in the book:
//!
//! ```text
//! <!-- listing: examples/bank/bank.idl -->
//! <!-- listing: examples/bank/server.rs#servant -->
//! <!-- not compiled: a fragment -->
//! ```
//!
//! `UPDATE_BOOK=1 cargo test -p spandrel-examples listings` writes the listings into the pages.

use super::page::{Block, book, root};

/// Languages of blocks that are code. Others show output and commands.
const CODE: [&str; 8] = ["rust", "idl", "toml", "cpp", "java", "python", "yaml", "ini"];

/// Pages of which `shown::check` or a documentation test checks blocks without a marker.
const CHECKED_ELSEWHERE: [(&str, &[&str]); 4] = [
    ("docs/mapping.md", &["rust", "idl"]),
    ("docs/interceptors.md", &["rust"]),
    ("docs/adapters.md", &["rust"]),
    ("docs/dynamic.md", &["rust"]),
];

/// The lines of a file, or of its region with this name, without the lines that bound regions and without the
/// region's indentation.
fn listing(source: &str) -> Result<String, String> {
    let (path, anchor) = source.split_once('#').map_or((source, None), |(path, anchor)| (path, Some(anchor)));
    let text = std::fs::read_to_string(root().join(path)).map_err(|error| format!("{path}: {error}"))?;
    let is_bound =
        |line: &str, word: &str, anchor: &str| line.split_once(word).is_some_and(|(_, name)| name.trim() == anchor);
    let mut lines: Vec<&str> = text.lines().collect();
    if let Some(anchor) = anchor {
        let position = |word| lines.iter().position(|line| is_bound(line, word, anchor));
        let (start, end) = (position("ANCHOR:"), position("ANCHOR_END:"));
        let (Some(start), Some(end)) = (start, end) else { return Err(format!("{path} has no region {anchor}")) };
        lines = lines
            .get(start + 1..end)
            .ok_or_else(|| format!("{path}: the region {anchor} ends before it begins"))?
            .to_vec();
    }
    lines.retain(|line| !line.contains("ANCHOR:") && !line.contains("ANCHOR_END:"));
    let indentation = |line: &&&str| line.len() - line.trim_start().len();
    let common = lines.iter().filter(|line| !line.trim().is_empty()).map(|line| indentation(&line)).min().unwrap_or(0);
    let shown = lines.iter().map(|line| line.get(common..).unwrap_or("").to_owned() + "\n").collect::<String>();
    Ok(shown.trim_matches('\n').to_owned() + "\n")
}

/// The content that the block should have, if it is a listing.
fn expected(path: &str, block: &Block) -> Result<Option<String>, String> {
    let marker = block.marker.as_deref().unwrap_or_default();
    if let Some(source) = marker.strip_prefix("listing: ") {
        return listing(source).map(Some);
    }
    let is_checked_elsewhere =
        CHECKED_ELSEWHERE.iter().any(|(page, languages)| *page == path && languages.contains(&&*block.language));
    let is_exempt = marker.strip_prefix("not compiled: ").is_some_and(|reason| !reason.is_empty());
    if is_exempt || is_checked_elsewhere || !CODE.contains(&&*block.language) {
        return Ok(None);
    }
    Err("a block of code needs `<!-- listing: FILE#REGION -->` before it, or `<!-- not compiled: REASON -->`".into())
}

#[test]
fn each_listing_is_that_of_a_compiled_file() {
    let is_updating = std::env::var_os("UPDATE_BOOK").is_some();
    let (mut faults, mut listings) = (Vec::new(), 0);
    for page in book() {
        let path = page.path.to_str().expect("a path in UTF-8").replace('\\', "/");
        let mut text = page.text.clone();
        for block in page.blocks.iter().rev() {
            match expected(&path, block) {
                Err(fault) => faults.push(format!("{path}:{}: {fault}", block.line)),
                Ok(Some(expected)) => {
                    listings += 1;
                    if expected != block.content {
                        text.replace_range(block.range.clone(), &expected);
                        if !is_updating {
                            let marker = block.marker.as_deref().unwrap_or_default();
                            faults.push(format!("{path}:{}: differs from {marker}", block.line));
                        }
                    }
                }
                Ok(None) => {}
            }
        }
        if is_updating && text != page.text {
            std::fs::write(root().join(&page.path), text).expect("the page can be written");
        }
    }
    assert!(faults.is_empty(), "`UPDATE_BOOK=1` writes listings into pages:\n{}", faults.join("\n"));
    assert!(listings > 20, "only {listings} listings were found");
}

#[test]
fn regions_of_files_are_found() {
    let path = "examples/tests/book/listings.rs";
    // ANCHOR: sample
    let shown = listing(&format!("{path}#sample"));
    // ANCHOR_END: sample
    assert_eq!(shown.unwrap(), "let shown = listing(&format!(\"{path}#sample\"));\n");
    assert_eq!(listing(&format!("{path}#none")).unwrap_err(), format!("{path} has no region none"));
    assert!(listing("examples/none.rs").is_err());
}
