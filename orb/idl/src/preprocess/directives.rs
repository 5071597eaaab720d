//! Directives: the lines that start with `#`.

use super::{Conditional, Macro, Preprocessor, condition};
use crate::diagnostic::Diagnostic;
use crate::lexer::tokenize;
use crate::source::{FileId, Span};
use crate::token::{Punct, Token, TokenKind};
use spandrel_error::closest;

const DIRECTIVES: [&str; 14] = [
    "include", "define", "undef", "if", "ifdef", "ifndef", "elif", "else", "endif", "error", "warning", "pragma",
    "line", "ident",
];

impl Preprocessor<'_> {
    /// Processes the directive that starts with `hash`, and consumes its line.
    pub(super) fn directive(&mut self, hash: Token) {
        self.comments.directive();
        let (line, end) = self.rest_of_line();
        let Some((&name, rest)) = line.split_first() else {
            return;
        };
        let span = Span { end: line.last().map_or(name.span.end, |last| last.span.end), ..hash.span };
        let left_out = self.left_out();
        match &*self.spelling(name) {
            "if" | "ifdef" | "ifndef" if left_out => self.open_conditional(span, false, true),
            "if" => {
                let active = self.condition(rest, span);
                self.open_conditional(span, active, active);
            }
            "ifdef" => self.ifdef(rest, span, true),
            "ifndef" => self.ifdef(rest, span, false),
            "elif" => self.elif(rest, span),
            "else" => self.else_directive(span),
            "endif" => self.endif(span),
            _ if left_out => {}
            "include" => self.include(rest, Span { end, ..hash.span }, span),
            "define" => self.define(rest, span),
            "undef" => self.undef(rest, span),
            "error" => {
                let text = self.raw(name.span.end, end, span);
                self.report(Diagnostic::error(format!("#error{text}")).at(span, ""));
            }
            "warning" => {
                let text = self.raw(name.span.end, end, span);
                self.report(Diagnostic::warning(format!("#warning{text}")).at(span, ""));
            }
            "pragma" => self.pragma(rest, span),
            "line" | "ident" => {}
            _ if name.kind == TokenKind::Number => {} // a line marker of another preprocessor
            other => {
                let mut error = Diagnostic::error(format!("`#{other}` is not a directive")).at(name.span, "");
                if let Some(similar) = closest(other, DIRECTIVES) {
                    error = error.help(format!("did you mean `#{similar}`?"));
                }
                self.report(error);
            }
        }
    }

    /// The tokens up to the end of the line, without comments, and the position of the end.
    fn rest_of_line(&mut self) -> (Vec<Token>, u32) {
        let mut line = Vec::new();
        let mut end = 0;
        while let Some(token) = self.take_from_line() {
            match token.kind {
                TokenKind::Newline => {
                    end = token.span.start;
                    break;
                }
                TokenKind::Comment => {}
                TokenKind::UnterminatedComment => self.unterminated_comment(token),
                _ => line.push(token),
            }
        }
        if let Some(file) = self.files.last_mut() {
            file.line_start = true;
        }
        (line, end)
    }

    /// The text of a line from `start` on, with a blank before it unless it is empty.
    fn raw(&self, start: u32, end: u32, span: Span) -> String {
        let text = self.context.sources.text(Span { start, end, ..span });
        let text = text.trim();
        if text.is_empty() { String::new() } else { format!(": {text}") }
    }

    fn left_out(&self) -> bool {
        let file = self.files.last();
        file.and_then(|file| file.conditionals.last()).is_some_and(|it| !it.active)
    }

    fn open_conditional(&mut self, span: Span, active: bool, has_active_branch: bool) {
        if let Some(file) = self.files.last_mut() {
            file.conditionals.push(Conditional { span, active, has_active_branch, seen_else: false });
        }
    }

    fn ifdef(&mut self, rest: &[Token], span: Span, expects_defined: bool) {
        let active = match rest {
            [name, ..] if name.kind == TokenKind::Identifier => self.is_macro(name.symbol) == expects_defined,
            _ => {
                self.report(Diagnostic::error("the name of a macro is missing").at(span, ""));
                false
            }
        };
        self.open_conditional(span, active, active);
    }

    /// The innermost conditional, if `#elif` or `#else` is permitted.
    fn continued(&mut self, span: Span, directive: &str) -> Option<&mut Conditional> {
        let file = self.files.last_mut()?;
        let reporter = &mut *self.context.reporter;
        match file.conditionals.last_mut() {
            Some(conditional) if conditional.seen_else => {
                let error = Diagnostic::error(format!("{directive} after #else"))
                    .at(span, "")
                    .also(conditional.span, "the conditional starts here");
                reporter.report(error);
                None
            }
            Some(conditional) => Some(conditional),
            None => {
                reporter.report(Diagnostic::error(format!("{directive} without #if")).at(span, ""));
                None
            }
        }
    }

    fn elif(&mut self, rest: &[Token], span: Span) {
        let Some(conditional) = self.continued(span, "#elif") else {
            return;
        };
        conditional.active = false;
        if conditional.has_active_branch {
            return;
        }
        let active = self.condition(rest, span);
        if let Some(conditional) = self.continued(span, "#elif") {
            conditional.active = active;
            conditional.has_active_branch = active;
        }
    }

    fn else_directive(&mut self, span: Span) {
        if let Some(conditional) = self.continued(span, "#else") {
            conditional.active = !conditional.has_active_branch;
            conditional.has_active_branch = true;
            conditional.seen_else = true;
        }
    }

    fn endif(&mut self, span: Span) {
        let closed = self.files.last_mut().and_then(|file| file.conditionals.pop());
        if closed.is_none() {
            self.report(Diagnostic::error("#endif without #if").at(span, ""));
        }
    }

    /// Reports the open conditionals of a file.
    pub(super) fn unclosed_conditionals(&mut self, conditionals: &[Conditional]) {
        for conditional in conditionals {
            let error = Diagnostic::error("a conditional is not closed")
                .at(conditional.span, "opened here")
                .help("close it with `#endif`");
            self.report(error);
        }
    }

    fn condition(&mut self, rest: &[Token], span: Span) -> bool {
        let line = self.without_defined(rest);
        let line = self.expand_fully(&line);
        match condition::evaluate(&line, span, self.context.interner) {
            Ok(value) => value,
            Err(diagnostic) => {
                self.report(*diagnostic);
                false
            }
        }
    }

    /// Replaces `defined NAME` and `defined(NAME)` by 0 or 1, before expansion.
    fn without_defined(&mut self, line: &[Token]) -> Vec<Token> {
        let defined = self.context.interner.intern("defined");
        let mut result = Vec::with_capacity(line.len());
        let mut rest = line;
        while let Some((&token, after)) = rest.split_first() {
            rest = after;
            if token.kind != TokenKind::Identifier || token.symbol != defined {
                result.push(token);
                continue;
            }
            let is = |token: &Token, punct| token.kind == TokenKind::Punct(punct);
            let name = match after {
                [open, name, close, ..] if is(open, Punct::OpenParen) && is(close, Punct::CloseParen) => {
                    rest = &after[3..];
                    Some(name)
                }
                [name, ..] if name.kind == TokenKind::Identifier => {
                    rest = &after[1..];
                    Some(name)
                }
                _ => None,
            };
            match name {
                Some(name) => {
                    let is_defined = self.is_macro(name.symbol);
                    let symbol = self.context.interner.intern(if is_defined { "1" } else { "0" });
                    result.push(Token { kind: TokenKind::Number, symbol, ..token });
                }
                None => {
                    let error = Diagnostic::error("`defined` needs the name of a macro").at(token.span, "");
                    self.report(error);
                }
            }
        }
        result
    }

    fn undef(&mut self, rest: &[Token], span: Span) {
        match rest {
            [name, ..] if name.kind == TokenKind::Identifier => {
                self.macros.remove(&name.symbol);
            }
            _ => self.report(Diagnostic::error("the name of a macro is missing").at(span, "")),
        }
    }

    fn define(&mut self, rest: &[Token], span: Span) {
        let Some((&name, rest)) = rest.split_first().filter(|(name, _)| name.kind == TokenKind::Identifier) else {
            return self.report(Diagnostic::error("the name of a macro is missing").at(span, ""));
        };
        let takes_parameters =
            rest.first().is_some_and(|it| it.kind == TokenKind::Punct(Punct::OpenParen) && !it.spaced);
        let mut definition = Macro { parameters: None, variadic: false, body: rest.into(), span: name.span };
        if takes_parameters {
            let Some((parameters, variadic, body)) = self.parameters(&rest[1..]) else {
                let error = Diagnostic::error("the parameters of this macro are malformed")
                    .at(span, "")
                    .help("write it as `#define NAME(a, b) text`");
                return self.report(error);
            };
            definition.parameters = Some(parameters);
            definition.variadic = variadic;
            definition.body = body.into();
        }
        let pastes = |token: Option<&Token>| token.is_some_and(|it| it.kind == TokenKind::Punct(Punct::Paste));
        if pastes(definition.body.first()) || pastes(definition.body.last()) {
            let error = Diagnostic::error("`##` is at an end of a macro").at(span, "");
            return self.report(error);
        }
        let text = self.spelling(name);
        if let Some(earlier) = self.macros.get(&name.symbol)
            && !earlier.same_as(&definition)
        {
            let warning = Diagnostic::warning(format!("macro `{text}` is redefined"))
                .at(name.span, "defined again here")
                .also(earlier.span, "first defined here")
                .help(format!("put `#undef {text}` before it if that is meant"));
            self.report(warning);
        }
        self.macros.insert(name.symbol, definition);
    }

    /// Parses `a, b)`: the parameters, whether the last takes further arguments, and the rest.
    fn parameters<'t>(&mut self, tokens: &'t [Token]) -> Option<(Vec<crate::intern::Symbol>, bool, &'t [Token])> {
        let punct = |token: &Token, punct| token.kind == TokenKind::Punct(punct);
        let mut parameters = Vec::new();
        let mut rest = tokens;
        if let Some((first, after)) = rest.split_first()
            && punct(first, Punct::CloseParen)
        {
            return Some((parameters, false, after));
        }
        loop {
            let (name, after) = rest.split_first()?;
            let variadic = punct(name, Punct::Ellipsis);
            if variadic {
                parameters.push(self.context.interner.intern("__VA_ARGS__"));
            } else if name.kind == TokenKind::Identifier && !parameters.contains(&name.symbol) {
                parameters.push(name.symbol);
            } else {
                return None;
            }
            let (separator, after) = after.split_first()?;
            rest = after;
            if punct(separator, Punct::CloseParen) {
                return Some((parameters, variadic, rest));
            }
            if !punct(separator, Punct::Comma) || variadic || parameters.len() > 127 {
                return None;
            }
        }
    }

    /// Defines the macros of the options.
    pub(super) fn predefine(&mut self) {
        for (name, text) in &self.options.defines {
            let line = format!("{name} {}", text.as_deref().unwrap_or("1"));
            let mut tokens = tokenize(FileId(0), &line, self.context.interner);
            let nowhere = Span { file: FileId(0), start: 0, end: 0 };
            tokens.retain(|token| !matches!(token.kind, TokenKind::Newline | TokenKind::Comment));
            for token in &mut tokens {
                token.span = nowhere;
            }
            self.define(&tokens, nowhere);
        }
    }
}
