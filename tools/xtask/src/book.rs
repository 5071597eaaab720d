//! `cargo xtask book`: the HTML of the book, and the package that a reader of its tutorial makes.
//!
//! The pages in `docs` are read on the repository's pages, too, and link to files outside of that folder. The
//! book is built from a copy, in which these files stand below `repository` and the links lead there. Pages in
//! Markdown among them become chapters.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace;

const TOOL_VERSION: &str = "0.5.4";

/// Builds the book, and fails if a link of a page leads nowhere.
pub(crate) fn run() -> Result<()> {
    let tool = workspace::cargo_tool("mdbook", TOOL_VERSION, &["--no-default-features"])?;
    let folder = workspace::target().join("book");
    let (source, html) = (folder.join("src"), folder.join("html"));
    for old in [&source, &html] {
        if old.exists() {
            fs::remove_dir_all(old).with_context(|| old.display().to_string())?;
        }
    }
    stage(&source)?;
    let mut build = Command::new(tool);
    build.arg("build").arg(&source).arg("--dest-dir").arg(&html).current_dir(workspace::root());
    workspace::run(&mut build)?;
    let links = check_links(&html)?;
    println!("{} has no broken link among {links}", html.join("index.html").display());
    make_tutorial(&folder.join("tutorial-target"))
}

/// The pages of the tutorial with programs, in their order, each with the folder of its programs.
const TUTORIAL: [(&str, &str); 6] = [
    ("first-service", "first"),
    ("persistence", "persistent"),
    ("callbacks", "callbacks"),
    ("naming", "naming"),
    ("activation", "activated"),
    ("security", "secure"),
];

/// Makes the package of the tutorial in an empty folder: by the commands on its pages, and with its files.
fn make_tutorial(target: &Path) -> Result<()> {
    // Outside of the repository, of whose workspace it would be a member.
    let folder = tempfile::tempdir().context("a temporary folder")?;
    let folder = folder.path();
    #[cfg(unix)]
    std::os::unix::fs::symlink(workspace::root(), folder.join("spandrel")).context("the link to the repository")?;
    let package = folder.join("exchange");
    for (page, programs) in TUTORIAL {
        let text = fs::read_to_string(workspace::root().join(format!("docs/tutorial/{page}.md")))?;
        for commands in marked_commands(&text) {
            let mut shell = Command::new("bash");
            shell.args(["-euc", &commands]).current_dir(if package.exists() { &package } else { folder });
            workspace::run(&mut shell)?;
        }
        if let Some(script) = block_after(&text, "`build.rs`:") {
            fs::write(package.join("build.rs"), script)?;
        }
        let examples = workspace::root().join("examples/tutorial");
        fs::copy(examples.join("exchange.idl"), package.join("idl/exchange.idl"))?;
        for entry in fs::read_dir(examples.join(programs))? {
            let program = entry?.path();
            fs::copy(&program, package.join("src/bin").join(program.file_name().context("a program has a name")?))?;
        }
        println!("\n{page}: building the package");
        let mut build = Command::new(workspace::cargo_program());
        build.args(["build", "--bins"]).current_dir(&package).env("CARGO_TARGET_DIR", target);
        workspace::run(&mut build)?;
    }
    Ok(())
}

/// The commands that a page leaves to this task, without the download of the repository.
fn marked_commands(text: &str) -> Vec<String> {
    let marker = "<!-- not run: `cargo xtask book` runs these commands -->\n";
    let blocks = text.split(marker).skip(1).filter_map(|rest| block_after(rest, ""));
    blocks
        .map(|block| block.lines().filter(|line| !line.starts_with("git clone")).collect::<Vec<_>>().join("\n"))
        .collect()
}

/// The first fenced block after this text.
pub(crate) fn block_after(text: &str, before: &str) -> Option<String> {
    let (_, rest) = text.split_once(before)?;
    let (_, block) = rest.split_once("```")?;
    let (content, _) = block.split_once("```")?;
    content.split_once('\n').map(|(_, content)| content.to_owned())
}

/// Copies the pages, and all files that they link to.
fn stage(source: &Path) -> Result<()> {
    let root = workspace::root();
    let pages = workspace::files(&root.join("docs"))?;
    let below_root = |page: &PathBuf| Ok(page.strip_prefix(&root)?.to_owned());
    let mut pending = pages.iter().map(below_root).collect::<Result<BTreeSet<PathBuf>>>()?;
    let (mut staged, mut chapters) = (BTreeSet::new(), BTreeMap::new());
    while let Some(path) = pending.pop_first() {
        if !staged.insert(path.clone()) {
            continue;
        }
        let (from, to) = (root.join(&path), source.join(staged_path(&path)));
        let folder = to.parent().context("a staged file has a folder")?;
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        if path.extension().is_none_or(|extension| extension != "md") {
            fs::copy(&from, &to).with_context(|| path.display().to_string())?;
            continue;
        }
        let text = fs::read_to_string(&from).with_context(|| path.display().to_string())?;
        if !path.starts_with("docs") {
            let title = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or("Untitled");
            chapters.insert(staged_path(&path), title.to_owned());
        }
        fs::write(&to, relink(&text, &path, &mut pending))?;
    }
    let summary = source.join("SUMMARY.md");
    let mut text = fs::read_to_string(&summary)? + "\n# The repository\n\n";
    for (path, title) in chapters {
        text += &format!("- [{title}]({})\n", path.display());
    }
    fs::write(&summary, text)?;
    let settings = fs::read_to_string(source.join("book.toml"))?;
    fs::write(source.join("book.toml"), settings.replace("build-dir = \"../target/book\"\n", ""))?;
    Ok(())
}

/// Where a file of the repository stands in the copy. The first page of a folder has the name in HTML.
fn staged_path(path: &Path) -> PathBuf {
    let staged = path.strip_prefix("docs").map_or_else(|_| Path::new("repository").join(path), Path::to_owned);
    if path.ends_with("README.md") { staged.with_file_name("index.md") } else { staged }
}

/// `folder/target` without `.` and `..`.
fn resolve(folder: &Path, target: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for component in folder.join(target).components() {
        match component {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    path
}

/// The path from a folder to a file.
fn relative(folder: &Path, file: &Path) -> String {
    let common = folder.components().zip(file.components()).take_while(|(one, other)| one == other).count();
    let up = folder.components().skip(common).map(|_| "..".to_owned());
    let down = file.components().skip(common).map(|part| part.as_os_str().to_string_lossy().into_owned());
    up.chain(down).collect::<Vec<_>>().join("/")
}

/// The text of a page with the links of its copy. Adds the linked files to `linked_files`.
fn relink(text: &str, page: &Path, linked_files: &mut BTreeSet<PathBuf>) -> String {
    let here = page.parent().unwrap_or(Path::new(""));
    let staged = staged_path(page);
    let staged_here = staged.parent().unwrap_or(Path::new(""));
    let (mut out, mut is_code) = (String::new(), false);
    for line in text.split_inclusive('\n') {
        is_code ^= line.trim_start().starts_with("```");
        let mut parts = line.split("](");
        out += parts.next().unwrap_or_default();
        for part in parts {
            out += "](";
            let Some((link, rest)) = part.split_once(')').filter(|(link, _)| !is_code && is_local(link)) else {
                out += part;
                continue;
            };
            let (target, anchor) = link.find('#').map_or((link, ""), |at| link.split_at(at));
            let mut file = resolve(here, target);
            if workspace::root().join(&file).is_dir() {
                file.push("README.md");
            }
            out += &format!("{}{anchor}){rest}", relative(staged_here, &staged_path(&file)));
            linked_files.insert(file);
        }
    }
    out
}

fn is_local(link: &str) -> bool {
    !link.is_empty() && !link.starts_with('#') && !link.contains(':')
}

/// Checks that the files that pages link to exist; returns the number of links.
fn check_links(html: &Path) -> Result<usize> {
    let files = workspace::files(html)?;
    let (mut count, mut broken) = (0, Vec::new());
    for page in files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "html")) {
        // Its links are those of a page at the root of a web server.
        if page.ends_with("404.html") {
            continue;
        }
        let text = fs::read_to_string(page)?;
        for part in text.split("href=\"").skip(1) {
            let link = part.split('"').next().unwrap_or_default().split('#').next().unwrap_or_default();
            if is_local(link) {
                count += 1;
                let target = page.parent().unwrap_or(html).join(link);
                if !target.exists() {
                    broken.push(format!("{}: {link}", page.display()));
                }
            }
        }
    }
    if !broken.is_empty() {
        bail!("{} links lead nowhere:\n{}", broken.len(), broken.join("\n"));
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_those_of_the_copy() {
        let mut linked_files = BTreeSet::new();
        let text = "[a](../options.md#x) and [b](../../README.md), [c](https://x.y), [d](#e)\n```\n[f](g.md)\n```\n";
        let copy = relink(text, Path::new("docs/tutorial/tls.md"), &mut linked_files);
        let expected =
            "[a](../options.md#x) and [b](../repository/index.md), [c](https://x.y), [d](#e)\n```\n[f](g.md)\n```\n";
        assert_eq!(copy, expected);
        assert_eq!(linked_files, ["README.md", "docs/options.md"].map(PathBuf::from).into());
        assert_eq!(relink("[a](docs/options.md)", Path::new("README.md"), &mut linked_files), "[a](../options.md)");
    }

    #[test]
    fn commands_and_files_are_taken_from_pages() {
        let text = "a\n\n<!-- not run: `cargo xtask book` runs these commands -->\n```sh\ngit clone x\ncargo new y\n```\n\n\
            `build.rs`:\n\n```rust\nfn main() {}\n```\n\n```sh\nls\n```\n";
        assert_eq!(marked_commands(text), ["cargo new y"]);
        assert_eq!(block_after(text, "`build.rs`:").as_deref(), Some("fn main() {}\n"));
        assert_eq!(block_after(text, "none"), None);
    }

    #[test]
    fn a_folder_stands_for_its_page() {
        let mut linked_files = BTreeSet::new();
        let copy = relink("[a](../tests/interop)", Path::new("docs/a.md"), &mut linked_files);
        assert_eq!(copy, "[a](repository/tests/interop/index.md)");
    }
}
