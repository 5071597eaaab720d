//! A Markdown page of the repository, taken apart: fenced blocks, links, headings, and paths in code spans.

use std::{
    ops::Range,
    path::{Path, PathBuf},
};

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// The root of the repository.
pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies below the root").to_owned()
}

#[derive(Debug)]
pub(super) struct Block {
    /// The first word after the fence, up to a comma.
    pub(super) language: String,
    /// The text of the comment directly before the block: `<!-- listing: examples/bank/bank.idl -->`.
    pub(super) marker: Option<String>,
    pub(super) content: String,
    /// Where the content stands in the page.
    pub(super) range: Range<usize>,
    pub(super) line: usize,
}

/// A page and its contents.
#[derive(Debug)]
pub(super) struct Page {
    /// From the root of the repository.
    pub(super) path: PathBuf,
    pub(super) text: String,
    pub(super) blocks: Vec<Block>,
    /// The targets of links and images, each with its line.
    pub(super) links: Vec<(String, usize)>,
    /// The contents of code spans, each with its line.
    pub(super) code: Vec<(String, usize)>,
    /// The anchors of the headings.
    pub(super) anchors: Vec<String>,
}

impl Page {
    pub(super) fn read(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let text = std::fs::read_to_string(root().join(&path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Self::parse(path, text)
    }

    fn parse(path: PathBuf, text: String) -> Self {
        let (mut blocks, mut links, mut code, mut anchors) = (Vec::new(), Vec::new(), Vec::new(), Vec::<String>::new());
        let (mut marker, mut heading): (Option<String>, Option<String>) = (None, None);
        let line_of = |at: usize| text[..at].matches('\n').count() + 1;
        for (event, range) in Parser::new_ext(&text, Options::ENABLE_TABLES).into_offset_iter() {
            let line = line_of(range.start);
            match event {
                Event::Html(html) if html.trim_start().starts_with("<!--") => {
                    let comment = html.trim().trim_start_matches("<!--").trim_end_matches("-->");
                    marker = Some(comment.trim().to_owned());
                }
                Event::Start(Tag::HtmlBlock) | Event::End(TagEnd::HtmlBlock) => {}
                Event::Start(Tag::CodeBlock(kind)) => {
                    let CodeBlockKind::Fenced(info) = kind else { continue };
                    let start = range.start + text[range.clone()].find('\n').map_or(0, |end| end + 1);
                    let end = text[..range.end].trim_end().rfind("```").expect("a fence ends the block");
                    let language = info.split([',', ' ']).next().unwrap_or_default().to_owned();
                    let content = text[start..end].to_owned();
                    blocks.push(Block { language, marker: marker.take(), content, range: start..end, line });
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let anchor = slug(&heading.take().unwrap_or_default());
                    let before = anchors.iter().filter(|other| **other == anchor).count();
                    anchors.push(if before == 0 { anchor } else { format!("{anchor}-{before}") });
                }
                Event::Code(content) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&content);
                    }
                    code.push((content.to_string(), line));
                }
                Event::Text(content) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&content);
                    }
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    links.push((dest_url.to_string(), line));
                }
                Event::Start(Tag::Paragraph) => marker = None,
                _ => {}
            }
        }
        Self { path, text, blocks, links, code, anchors }
    }

    /// The folder of the page, from the root of the repository.
    pub(super) fn folder(&self) -> &Path {
        self.path.parent().expect("a page has a folder")
    }
}

/// The anchor of a heading on a repository's page and in the book: lower case, hyphens for blanks, without
/// punctuation.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase()
}

/// All pages of the book, sorted by their path.
pub(super) fn book() -> Vec<Page> {
    fn add(folder: &Path, pages: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("a folder of the book") {
            let path = entry.expect("an entry of the folder").path();
            if path.is_dir() {
                add(&path, pages);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    let mut pages = Vec::new();
    add(&root().join("docs"), &mut pages);
    pages.sort();
    pages.iter().map(|path| Page::read(path.strip_prefix(root()).expect("it is below the root"))).collect()
}

#[test]
fn a_page_is_taken_apart() {
    let text = "# A `b` c, d!\n\nSee [x](y.md#z) and `orb/cdr`.\n\n<!-- listing: a.rs#b -->\n```rust,ignore\nfn a() {}\n```\n\n## A b c d\n\n<!-- x -->\n\ntext\n\n```sh\nls\n```\n";
    let page = Page::parse("docs/a.md".into(), text.to_owned());
    assert_eq!(page.anchors, ["a-b-c-d", "a-b-c-d-1"]);
    assert_eq!(page.links, [("y.md#z".to_owned(), 3)]);
    assert_eq!(page.code, [("b".to_owned(), 1), ("orb/cdr".to_owned(), 3)]);
    let blocks: Vec<_> = page.blocks.iter().map(|b| (&*b.language, b.marker.as_deref(), &*b.content, b.line)).collect();
    assert_eq!(blocks, [("rust", Some("listing: a.rs#b"), "fn a() {}\n", 6), ("sh", None, "ls\n", 16)]);
    assert_eq!(&page.text[page.blocks[0].range.clone()], "fn a() {}\n");
}
