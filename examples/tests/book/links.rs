//! Links of the pages, and the order of reading.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use super::page::{Page, book, root};

/// `folder/target` without `.` and `..`.
fn resolve(folder: &Path, target: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for component in folder.join(target).components() {
        match component {
            Component::ParentDir => assert!(path.pop(), "{target} leaves the repository"),
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    path
}

/// The pages that are checked, by their path.
fn pages() -> BTreeMap<PathBuf, Page> {
    let others = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "tests/interop/README.md"];
    let others = others.map(Page::read);
    book().into_iter().chain(others).map(|page| (page.path.clone(), page)).collect()
}

fn is_local(link: &str) -> bool {
    !["https:", "http:", "mailto:"].iter().any(|scheme| link.starts_with(scheme))
}

#[test]
fn links_lead_to_files_and_headings() {
    let pages = pages();
    let (mut faults, mut checked) = (Vec::new(), 0);
    for page in pages.values() {
        for (link, line) in page.links.iter().filter(|(link, _)| is_local(link)) {
            checked += 1;
            let (target, anchor) = link.split_once('#').map_or((&**link, None), |(path, anchor)| (path, Some(anchor)));
            let path = if target.is_empty() { page.path.clone() } else { resolve(page.folder(), target) };
            let at = format!("{}:{line}: {link}", page.path.display());
            if !root().join(&path).exists() {
                faults.push(format!("{at}: there is no such file"));
            } else if let Some(anchor) = anchor
                && !pages.get(&path).is_some_and(|page| page.anchors.iter().any(|other| other == anchor))
            {
                faults.push(format!("{at}: there is no such heading"));
            }
        }
    }
    assert!(checked > 100, "only {checked} links were found");
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn paths_of_source_files_exist() {
    let tops = ["docs/", "examples/", "fuzz/", "net/", "orb/", "peers/", "spandrel/", "tests/", "tools/"];
    let (mut faults, mut checked) = (Vec::new(), 0);
    for page in pages().values().filter(|page| page.path != Path::new("CHANGELOG.md")) {
        for (path, line) in &page.code {
            // The last is a file of any crate.
            let is_path = tops.iter().any(|top| path.starts_with(top))
                && !path.contains([' ', '*', '{', '['])
                && path != "tests/main.rs";
            if is_path {
                checked += 1;
                if !root().join(path).exists() {
                    faults.push(format!("{}:{line}: {path}: there is no such file", page.path.display()));
                }
            }
        }
    }
    assert!(checked > 50, "only {checked} paths were found");
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn the_summary_has_each_page_once() {
    let summary = Page::read("docs/SUMMARY.md");
    let mut listed: Vec<PathBuf> = summary.links.iter().map(|(link, _)| resolve(summary.folder(), link)).collect();
    listed.sort();
    let all: Vec<PathBuf> = book().into_iter().map(|page| page.path).filter(|path| *path != summary.path).collect();
    assert_eq!(listed, all, "docs/SUMMARY.md (left) and the pages in docs (right)");
}
