//! The names of options on the pages exist.

use std::{collections::BTreeSet, path::Path, process::Command};

use super::page::{Page, book};

/// The names of options in a text.
fn options(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
        .filter(|word| word.starts_with("-ORB") && word.len() > 4)
}

/// The names that the reference pages list. A test of the ORB compares `docs/options.md` with the code.
fn own() -> BTreeSet<String> {
    let pages = ["docs/options.md", "docs/security.md"].map(Page::read);
    let rows = pages.iter().flat_map(|page| page.text.lines().filter(|line| line.starts_with('|')));
    rows.flat_map(|row| options(row.split('|').nth(1).unwrap_or_default())).map(str::to_owned).collect()
}

/// The options of omniORB's programs, if one is installed.
fn of_omniorb() -> Option<BTreeSet<String>> {
    let output = Command::new("omniNames").arg("-ORBhelp").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    Some(options(&text).map(str::to_owned).collect())
}

#[test]
fn options_on_the_pages_exist() {
    let own = own();
    assert!(own.len() > 60 && own.contains("-ORBListenEndpoints") && own.contains("-ORBSSLCA"), "{own:?}");
    let foreign = of_omniorb();
    let mut unknown = Vec::new();
    for page in book() {
        let of_omniorb = |option: &str| foreign.as_ref().is_none_or(|options| options.contains(option));
        // Pages about omniORB have its options, too; those of TAO are not installed anywhere.
        if ["docs/porting/tao.md", "docs/porting/tao-rt.md"].map(Path::new).contains(&&*page.path) {
            continue;
        }
        let texts = page.code.iter().map(|(code, line)| (&**code, *line));
        let texts = texts.chain(page.blocks.iter().map(|block| (&*block.content, block.line)));
        for (option, line) in texts.flat_map(|(text, line)| options(text).map(move |option| (option, line))) {
            if !own.contains(option) && !of_omniorb(option) && !["-ORBName", "-ORBSSL"].contains(&option) {
                unknown.push(format!("{}:{line}: {option}", page.path.display()));
            }
        }
    }
    assert!(unknown.is_empty(), "unknown options:\n{}", unknown.join("\n"));
}
