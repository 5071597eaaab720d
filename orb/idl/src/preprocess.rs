//! The preprocessor: includes, macros, conditionals and pragmas (IDL 4.2, 7.3, which refers to ISO C++).
//!
//! Its output is one stream of tokens for the parser, each with its position. Beside it are pragmas, the
//! limits of included files, and comments that document the token after them.
//!
//! `#line` is accepted and has no effect: positions refer to the files that were read.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Reporter};
use crate::intern::{Interner, Symbol};
use crate::portability::Portability;
use crate::source::{FileId, MAX_OCTETS, SourceMap, SourceProvider, Span};
use crate::token::{Punct, Token, TokenKind};

mod built_in;
mod comments;
mod condition;
mod directives;
mod guard;
mod include;
mod macros;
mod pragma;
mod together;

pub(crate) use built_in::Parts;
use comments::PendingComments;
pub(crate) use together::{PATH as FILES_OF_ONE_BUILD, main_text};

/// The search folders, macros and other settings of the preprocessor and the checker.
#[derive(Clone, Debug, Default)]
pub struct FrontEndOptions {
    /// Folders to search for included files, in this order, after the folder of the including file (for
    /// `#include "…"`).
    pub include_paths: Vec<PathBuf>,
    /// Macros defined before the first line: name and text, as `-DNAME=TEXT`. The default text is `1`.
    pub defines: Vec<(String, Option<String>)>,
    /// Whether the main file is also for other IDL compilers: then each construct that `omniidl` of omniORB 4.3 does not read
    /// is a warning, at its first place.
    pub portability_warnings: bool,
}

/// The output of the preprocessor.
#[derive(Debug, Default)]
pub(crate) struct Preprocessed {
    pub(crate) tokens: Vec<Token>,
    /// Directives, and beginnings and ends of files, between the tokens; ordered by position.
    pub(crate) events: Vec<Event>,
    /// Documentation comments and the positions of the tokens that they precede, in order.
    pub(crate) docs: Vec<(usize, Vec<String>)>,
    /// The end of the main file.
    pub(crate) end: Option<Span>,
}

/// An event between two tokens.
#[derive(Debug)]
pub(crate) struct Event {
    /// The position of the token after it.
    pub(crate) before: usize,
    pub(crate) kind: EventKind,
}

#[derive(Debug)]
pub(crate) enum EventKind {
    EnterFile,
    LeaveFile,
    /// `#pragma prefix "…"`, with the text in quotes.
    Prefix(String),
    /// `#pragma ID name "…"`
    Id {
        name: Vec<Token>,
        id: String,
        span: Span,
    },
    /// `#pragma version name M.m`
    Version {
        name: Vec<Token>,
        version: String,
        span: Span,
    },
}

/// Limits that bound the cost of hostile input.
#[derive(Clone, Copy, Debug)]
struct Limits {
    include_depth: usize,
    inclusions: usize,
    octets: usize,
    /// In all files, and in the output.
    tokens: usize,
    expanded_tokens: usize,
    argument_depth: usize,
}

const LIMITS: Limits = Limits {
    // As C preprocessors have it; the output of `rmic -idl` needs 81.
    include_depth: 200,
    inclusions: 4096,
    octets: MAX_OCTETS,
    tokens: 2 << 20,
    expanded_tokens: 1 << 20,
    argument_depth: 32,
};

/// Preprocesses a file whose text has been read already. `parts` are those of the built-in `orb.idl`.
pub(crate) fn preprocess(
    options: &FrontEndOptions,
    provider: &dyn SourceProvider,
    parts: &Parts,
    (path, octets): (&Path, Vec<u8>),
    context: Context<'_>,
) -> Preprocessed {
    let mut preprocessor = Preprocessor {
        options,
        provider,
        parts,
        context,
        files: Vec::new(),
        expansions: Vec::new(),
        macros: HashMap::new(),
        active: HashSet::new(),
        once: HashSet::new(),
        texts: HashMap::new(),
        guards: HashMap::new(),
        octets: 0,
        tokens: 0,
        inclusions: 0,
        lines: HashMap::new(),
        budget: LIMITS.expanded_tokens,
        argument_depth: 0,
        isolated: false,
        floor: 0,
        together: together::Together::of_main(path),
        comments: PendingComments::default(),
        out: Preprocessed::default(),
    };
    preprocessor.open_main(path, octets);
    if !preprocessor.files.is_empty() {
        preprocessor.predefine();
        if parts.is_imported {
            preprocessor.include_built_in();
        }
    }
    preprocessor.run();
    preprocessor.out
}

/// The state shared by all phases of one run.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) sources: &'a mut SourceMap,
    pub(crate) interner: &'a mut Interner,
    pub(crate) reporter: &'a mut Reporter,
    pub(crate) portability: &'a mut Portability,
}

struct Preprocessor<'a> {
    options: &'a FrontEndOptions,
    provider: &'a dyn SourceProvider,
    parts: &'a Parts,
    context: Context<'a>,
    /// The file being read and those that include it, innermost last.
    files: Vec<OpenFile>,
    /// Macro expansions that have not been read yet, innermost last.
    expansions: Vec<Expansion>,
    macros: HashMap<Symbol, Macro>,
    /// The macros in `expansions`, which are not expanded again inside themselves.
    active: HashSet<Symbol>,
    once: HashSet<PathBuf>,
    /// The names and texts of files, by the paths where they were read.
    texts: HashMap<PathBuf, (PathBuf, Arc<str>)>,
    /// The include guards of files, which make a file empty once defined.
    guards: HashMap<PathBuf, Symbol>,
    octets: usize,
    /// The number of tokens in all files so far.
    tokens: usize,
    inclusions: usize,
    /// The starts of the lines of files that use `__LINE__`, but the first.
    lines: HashMap<FileId, Vec<u32>>,
    budget: usize,
    argument_depth: usize,
    /// Whether an argument or a directive's line is being read, without input from files.
    isolated: bool,
    /// While the arguments of a macro are read: the depth of the file that must not be closed.
    floor: usize,
    /// For several files as one specification.
    together: Option<together::Together>,
    comments: PendingComments,
    out: Preprocessed,
}

/// A file being read.
struct OpenFile {
    file: FileId,
    path: PathBuf,
    tokens: Vec<Token>,
    next: usize,
    conditionals: Vec<Conditional>,
    /// Whether only blanks have occurred on this line so far.
    line_start: bool,
}

/// An `#if` without its `#endif` so far.
#[derive(Debug)]
struct Conditional {
    span: Span,
    /// Whether the lines here are active.
    active: bool,
    /// Whether an earlier group was active, which excludes further ones.
    has_active_branch: bool,
    seen_else: bool,
}

/// The definition of a macro by `#define` or an option.
#[derive(Debug)]
struct Macro {
    /// `None` for a macro without a parameter list.
    parameters: Option<Vec<Symbol>>,
    /// The last parameter takes all further arguments.
    variadic: bool,
    body: Rc<[Token]>,
    span: Span,
}

impl Macro {
    fn same_as(&self, other: &Macro) -> bool {
        let spelling = |token: &Token| (token.symbol, token.spaced);
        self.parameters == other.parameters
            && self.variadic == other.variadic
            && self.body.iter().map(spelling).eq(other.body.iter().map(spelling))
    }
}

/// Tokens to be read before the rest of the file.
#[derive(Debug)]
struct Expansion {
    tokens: Rc<[Token]>,
    next: usize,
    /// The macro of the expansion.
    macro_name: Option<Symbol>,
}

impl Preprocessor<'_> {
    fn run(&mut self) {
        while let Some(token) = self.take() {
            match token.kind {
                TokenKind::Comment => self.comments.comment(token.span, self.context.sources),
                TokenKind::Newline => self.comments.newline(),
                TokenKind::UnterminatedComment => self.unterminated_comment(token),
                TokenKind::Identifier => self.identifier(token),
                _ => self.emit(token),
            }
        }
    }

    fn identifier(&mut self, mut token: Token) {
        if self.expand(&mut token) {
            self.comments.token();
        } else {
            self.emit(token);
        }
    }

    /// The next token, from an expansion or else from the innermost file, after directives are processed and
    /// excluded lines skipped. `None` at the end of the main file.
    fn take(&mut self) -> Option<Token> {
        loop {
            if let Some(token) = self.take_expanded() {
                return Some(token);
            }
            if self.isolated {
                return None;
            }
            let depth = self.files.len();
            let file = self.files.last_mut()?;
            let Some(&token) = file.tokens.get(file.next) else {
                if depth == self.floor {
                    return None;
                }
                self.close_file();
                continue;
            };
            file.next += 1;
            if file.line_start && token.kind == TokenKind::Punct(Punct::Hash) {
                self.directive(token);
                continue;
            }
            if file.conditionals.last().is_some_and(|it| !it.active) {
                if token.kind != TokenKind::Comment {
                    self.skip_line(token);
                }
                continue;
            }
            match token.kind {
                TokenKind::Newline => file.line_start = true,
                TokenKind::Comment => {}
                _ => file.line_start = false,
            }
            return Some(token);
        }
    }

    /// Skips the rest of a line that a conditional excludes.
    fn skip_line(&mut self, first: Token) {
        let mut token = Some(first);
        while let Some(it) = token {
            match it.kind {
                TokenKind::Newline => break,
                TokenKind::UnterminatedComment => self.unterminated_comment(it),
                _ => {}
            }
            token = self.take_from_line();
        }
        if let Some(file) = self.files.last_mut() {
            file.line_start = true;
        }
    }

    /// The next unexpanded token of the innermost file.
    fn take_from_line(&mut self) -> Option<Token> {
        let file = self.files.last_mut()?;
        let token = file.tokens.get(file.next).copied();
        file.next += 1;
        token
    }

    fn emit(&mut self, token: Token) {
        if self.is_repeated(token.span.file) {
            self.comments.take(self.context.sources);
            return self.comments.token();
        }
        if self.out.tokens.len() == LIMITS.tokens {
            return self.too_much(Some(token.span));
        }
        if let Some(doc) = self.comments.take(self.context.sources) {
            self.out.docs.push((self.out.tokens.len(), doc));
        }
        self.comments.token();
        self.out.tokens.push(token);
    }

    fn event(&mut self, kind: EventKind) {
        let names_definition = matches!(kind, EventKind::Id { .. } | EventKind::Version { .. });
        if names_definition && self.files.last().is_some_and(|file| self.is_repeated(file.file)) {
            return;
        }
        self.out.events.push(Event { before: self.out.tokens.len(), kind });
    }

    /// Whether the definitions of a file exist already: an earlier file of the build has included it.
    fn is_repeated(&self, file: FileId) -> bool {
        self.together.as_ref().is_some_and(|together| together.is_repeated(file))
    }

    /// Forgets the macros of a file of the build, once only the main file is open.
    fn end_file_of_build(&mut self) {
        if let Some(together) = self.together.as_mut().filter(|_| self.files.len() == 1) {
            together.end_file();
            self.macros.clear();
            self.once.clear();
            self.predefine();
        }
    }

    fn unterminated_comment(&mut self, token: Token) {
        let start = Span { end: token.span.start + 2, ..token.span };
        self.report(Diagnostic::error("a comment is not closed").at(start, "opened here").help("close it with `*/`"));
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.context.reporter.report(diagnostic);
    }

    fn spelling(&self, token: Token) -> Rc<str> {
        self.context.interner.text(token.symbol)
    }

    /// Reports an error and ends the run.
    fn give_up(&mut self, error: Diagnostic) {
        self.context.reporter.give_up(error);
        self.files.clear();
        self.expansions.clear();
    }
}

#[cfg(test)]
mod tests;
