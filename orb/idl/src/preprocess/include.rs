//! `#include`, and the opening and closing of files.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::guard::guard;
use super::{EventKind, LIMITS, OpenFile, Preprocessor, built_in};
use crate::diagnostic::Diagnostic;
use crate::lexer::tokenize_up_to;
use crate::source::{FileId, SourceFile, Span};
use crate::token::{Token, TokenKind};

impl Preprocessor<'_> {
    pub(super) fn open_main(&mut self, path: &Path, octets: Vec<u8>) {
        let text = decode(octets);
        self.octets = text.len();
        if self.octets > LIMITS.octets {
            return self.too_much(None);
        }
        self.open(path.to_owned(), text, None);
    }

    fn open(&mut self, path: PathBuf, text: Arc<str>, included_from: Option<Span>) {
        let built_in = path == Path::new(built_in::PATH);
        let source = SourceFile { path: path.clone(), text: text.clone(), included_from, built_in };
        let file = self.context.sources.add(source);
        if let Some(together) = &mut self.together {
            together.open(file, &path);
            if together.is_repeated(file) {
                self.context.sources.include_again(file, &path);
            }
        }
        let tokens = match tokenize_up_to(LIMITS.tokens - self.tokens, file, &text, self.context.interner) {
            Ok(tokens) => tokens,
            Err(beyond) => return self.too_much(Some(beyond)),
        };
        self.tokens = (self.tokens + tokens.len()).min(LIMITS.tokens);
        if let Some(name) = guard(&tokens, self.context.interner) {
            self.guards.insert(path.clone(), name);
        }
        self.files.push(OpenFile { file, path, tokens, next: 0, conditionals: Vec::new(), line_start: true });
        self.event(EventKind::EnterFile);
    }

    /// Ends the innermost file.
    pub(super) fn close_file(&mut self) {
        let Some(closed) = self.files.pop() else {
            return;
        };
        self.unclosed_conditionals(&closed.conditionals);
        self.comments.directive();
        self.event(EventKind::LeaveFile);
        self.end_file_of_build();
        if self.files.is_empty() {
            let end = self.context.sources.file(closed.file).text.len() as u32;
            self.out.end = Some(Span { file: closed.file, start: end, end });
        }
    }

    /// `#include`; `line` extends to the end of the line, `span` to the last token.
    pub(super) fn include(&mut self, rest: &[Token], line: Span, span: Span) {
        let Some((name, angled)) = self.include_name(rest, line) else {
            let error = Diagnostic::error("this #include has no file name")
                .at(span, "")
                .help("write it as `#include \"name.idl\"` or `#include <name.idl>`");
            return self.report(error);
        };
        if self.files.len() >= LIMITS.include_depth {
            let error = Diagnostic::error("files include each other too deep")
                .at(span, "the limit is exceeded here")
                .note(format!("at most {} files may be open at once", LIMITS.include_depth))
                .help("does a file include itself without an `#ifndef` around its text?");
            return self.give_up(error);
        }
        match self.find(&name, angled) {
            Ok(Some((path, text))) => self.open_included(path, text, span),
            Ok(None) => self.not_found(&name, angled, span),
            Err((path, error)) => {
                let message = format!("cannot read {}: {error}", path.display());
                self.report(Diagnostic::error(message).at(span, "included here"));
            }
        }
    }

    fn open_included(&mut self, path: PathBuf, text: Arc<str>, span: Span) {
        let guard = self.guards.get(&path);
        if self.once.contains(&path) || guard.is_some_and(|name| self.macros.contains_key(name)) {
            self.context.sources.include_again(span.file, &path);
            return;
        }
        self.octets += text.len();
        self.inclusions += 1;
        if self.octets > LIMITS.octets || self.inclusions > LIMITS.inclusions {
            return self.too_much(Some(span));
        }
        if path == Path::new(built_in::PATH) && !text.is_empty() {
            // Parts are read after `text`: the file opened last is read first.
            for part in self.parts.texts() {
                self.open(path.clone(), part.into(), Some(span));
            }
        }
        self.open(path, text, Some(span));
    }

    /// Ends the run for input beyond the limits.
    pub(super) fn too_much(&mut self, span: Option<Span>) {
        let mut error = Diagnostic::error("the files are too large or too many").note(format!(
            "at most {} MiB, {} tokens and {} inclusions are read",
            LIMITS.octets >> 20,
            LIMITS.tokens,
            LIMITS.inclusions
        ));
        if let Some(span) = span {
            error = error.at(span, "the limit is exceeded here");
        }
        self.give_up(error);
    }

    /// The name in the directive, and whether it is in `<>`. A name without delimiters is macro-expanded.
    fn include_name(&mut self, rest: &[Token], line: Span) -> Option<(String, bool)> {
        let first = rest.first()?;
        let text = self.context.sources.text(Span { start: first.span.start, ..line });
        if let Some(name) = delimited(text) {
            return Some(name);
        }
        let expanded = self.expand_fully(rest);
        let mut text = String::new();
        for (index, token) in expanded.iter().enumerate() {
            if index > 0 && token.spaced && token.kind != TokenKind::String {
                text.push(' ');
            }
            text.push_str(&self.spelling(*token));
        }
        delimited(&text)
    }

    /// The first file of that name in the search path, by the provider's name for it; `None` if there is none.
    #[expect(clippy::type_complexity, reason = "an error here needs the path beside it, once")]
    fn find(&mut self, name: &str, angled: bool) -> Result<Option<(PathBuf, Arc<str>)>, (PathBuf, io::Error)> {
        for path in self.candidates(name, angled) {
            if let Some(named) = self.texts.get(&path) {
                return Ok(Some(named.clone()));
            }
            match self.provider.read(&path) {
                Ok(octets) => {
                    let named = (self.provider.name(&path), decode(octets));
                    self.texts.insert(path, named.clone());
                    return Ok(Some(named));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err((path, error)),
            }
        }
        // Another `orb.idl` may come without this file.
        let is_known = is_orb_idl(name) || is_repository_idl(name) && !self.built_in().is_empty();
        Ok(is_known.then(|| (PathBuf::from(built_in::PATH), self.built_in().into())))
    }

    /// Reads the built-in file before the first line of the main file.
    pub(super) fn include_built_in(&mut self) {
        let start = Span { file: FileId(0), start: 0, end: 0 };
        self.open_included(PathBuf::from(built_in::PATH), built_in::TEXT.into(), start);
    }

    /// The built-in `orb.idl`, or an empty text if another one has been read.
    fn built_in(&self) -> &'static str {
        let mut files = self.context.sources.files().iter();
        let is_orb_idl = |path: &Path| path.file_name().is_some_and(|it| it == "orb.idl");
        if files.any(|file| !file.built_in && is_orb_idl(&file.path)) { "" } else { built_in::TEXT }
    }

    fn candidates(&self, name: &str, angled: bool) -> Vec<PathBuf> {
        let beside = self.files.last().filter(|_| !angled);
        let beside = beside.map(|file| file.path.with_file_name("").join(name));
        let paths = self.options.include_paths.iter();
        beside.into_iter().chain(paths.map(|folder| folder.join(name))).collect()
    }

    fn not_found(&mut self, name: &str, angled: bool, span: Span) {
        let mut error = Diagnostic::error(format!("cannot find the file `{name}`")).at(span, "");
        let searched = self.candidates(name, angled);
        if searched.is_empty() {
            error = error.note("`<…>` is searched for in the include paths, and there are none");
        }
        for path in searched.iter().take(8) {
            error = error.note(format!("{} does not exist", path.display()));
        }
        self.report(error.help("add its folder to the include path"));
    }
}

/// Whether the name is that of an ORB's own file: `orb.idl` or `TypeCode.idl` (IDL 4.2, 7.4.6.4.7), in any
/// folder; or one of TAO's parts, such as `tao/StringSeq.pidl`.
fn is_orb_idl(name: &str) -> bool {
    let part = name.strip_prefix("tao/").and_then(|it| it.strip_suffix(".pidl"));
    matches!(name.rsplit('/').next(), Some("orb.idl" | "TypeCode.idl")) || part.is_some_and(|it| !it.contains('/'))
}

/// Whether the name is that of the file in which other ORBs have the interface repository, in any folder.
fn is_repository_idl(name: &str) -> bool {
    name.rsplit('/').next() == Some("ir.idl")
}

/// The text between the quotes or angle brackets at the beginning of `text`.
fn delimited(text: &str) -> Option<(String, bool)> {
    let (rest, close, angled) = match text.strip_prefix('<') {
        Some(rest) => (rest, '>', true),
        None => (text.strip_prefix('"')?, '"', false),
    };
    let (name, _) = rest.split_once(close)?;
    let usable = !name.is_empty() && !name.contains(['\n', '\0']);
    usable.then(|| (name.to_owned(), angled))
}

/// Decodes UTF-8, or else ISO 8859-1, the character set of IDL. A byte order mark is dropped.
fn decode(octets: Vec<u8>) -> Arc<str> {
    let text = match String::from_utf8(octets) {
        Ok(text) => text,
        Err(error) => error.as_bytes().iter().map(|&it| char::from(it)).collect(),
    };
    text.strip_prefix('\u{feff}').unwrap_or(&text).into()
}
