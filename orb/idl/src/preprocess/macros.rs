//! Macros: definition and expansion as in C, with `#` and `##`.
//!
//! An expansion is pushed on a stack and read again from there; while it is on the stack its macro is active
//! and not expanded inside itself. Every generated token is charged to one budget, so that no input can make
//! the preprocessor produce more than a fixed amount. `__LINE__` and `__FILE__` are predefined.

use super::{Expansion, LIMITS, Preprocessor};
use crate::diagnostic::Diagnostic;
use crate::intern::Symbol;
use crate::lexer::tokenize;
use crate::source::{FileId, Span};
use crate::token::{Punct, Token, TokenKind};

const LINE: &str = "__LINE__";
const FILE: &str = "__FILE__";

impl Preprocessor<'_> {
    /// The next token of the expansions; exhausted ones leave the stack.
    pub(super) fn take_expanded(&mut self) -> Option<Token> {
        loop {
            let expansion = self.expansions.last_mut()?;
            if let Some(&token) = expansion.tokens.get(expansion.next) {
                expansion.next += 1;
                return Some(token);
            }
            if let Some(symbol) = self.expansions.pop().and_then(|it| it.macro_name) {
                self.active.remove(&symbol);
            }
        }
    }

    /// Replaces an identifier that names a macro; returns whether it did. The name of an active macro is
    /// painted instead.
    pub(super) fn expand(&mut self, token: &mut Token) -> bool {
        if token.painted {
            return false;
        }
        let Some(definition) = self.macros.get(&token.symbol) else {
            return self.expand_position(token);
        };
        if self.active.contains(&token.symbol) {
            token.painted = true;
            return false;
        }
        let body = definition.body.clone();
        let tokens = match definition.parameters.clone() {
            None => self.paste_all(&body, token.span),
            Some(parameters) => {
                let variadic = definition.variadic;
                if !self.call_follows() {
                    return false;
                }
                let Some(arguments) = self.arguments(*token, &parameters, variadic) else {
                    return true;
                };
                self.substitute(&body, &mut Arguments::new(&parameters, &arguments), token.span)
            }
        };
        self.push(tokens, *token);
        true
    }

    /// Replaces `__LINE__` and `__FILE__`: the line, and the path of the file as a string literal.
    fn expand_position(&mut self, token: &Token) -> bool {
        let text = self.spelling(*token);
        let (kind, text) = match &*text {
            LINE => (TokenKind::Number, self.line(token.span).to_string()),
            FILE => (TokenKind::String, quoted(&self.context.sources.file(token.span.file).path.to_string_lossy())),
            _ => return false,
        };
        let symbol = self.context.interner.intern(&text);
        self.push(vec![Token { kind, symbol, ..*token }], *token);
        true
    }

    /// Whether a name would be replaced: a defined macro, `__LINE__` or `__FILE__`.
    pub(super) fn is_macro(&self, name: Symbol) -> bool {
        self.macros.contains_key(&name) || matches!(&*self.context.interner.text(name), LINE | FILE)
    }

    /// The line of a position, from 1.
    fn line(&mut self, span: Span) -> usize {
        let text = &self.context.sources.file(span.file).text;
        let starts = self.lines.entry(span.file).or_insert_with(|| {
            text.bytes().zip(1..).filter(|(octet, _)| *octet == b'\n').map(|(_, after)| after).collect()
        });
        1 + starts.partition_point(|start| *start <= span.start)
    }

    fn push(&mut self, mut tokens: Vec<Token>, call: Token) {
        // Long spellings count as several tokens.
        let spellings = tokens.iter().map(|token| 1 + self.spelling(*token).len() / 16);
        let cost = 1 + spellings.sum::<usize>();
        if !self.pay(cost, call.span) {
            return;
        }
        for token in &mut tokens {
            token.span = call.span;
        }
        if let Some(first) = tokens.first_mut() {
            first.spaced = call.spaced;
        }
        self.active.insert(call.symbol);
        self.expansions.push(Expansion { tokens: tokens.into(), next: 0, macro_name: Some(call.symbol) });
    }

    /// Charges the budget; if it is exhausted, the run ends with an error.
    fn pay(&mut self, tokens: usize, span: Span) -> bool {
        if let Some(rest) = self.budget.checked_sub(tokens) {
            self.budget = rest;
            return true;
        }
        let limit = LIMITS.expanded_tokens;
        let error = Diagnostic::error("macros expand to too much text").at(span, "the limit is exceeded here").note(
            format!("all expansions together may have {limit} tokens; the limit bounds the cost of hostile input"),
        );
        self.budget = 0;
        self.macros.clear();
        self.give_up(error);
        false
    }

    /// Whether the next token, possibly on another line, is `(`.
    fn call_follows(&self) -> bool {
        for expansion in self.expansions.iter().rev() {
            if let Some(token) = expansion.tokens.get(expansion.next) {
                return token.kind == TokenKind::Punct(Punct::OpenParen);
            }
        }
        let Some(file) = self.files.last().filter(|_| !self.isolated) else {
            return false;
        };
        let mut rest = file.tokens[file.next..].iter();
        let next = rest.find(|it| !matches!(it.kind, TokenKind::Newline | TokenKind::Comment));
        next.is_some_and(|token| token.kind == TokenKind::Punct(Punct::OpenParen))
    }

    /// Parses `( argument, … )`, one list of tokens for each parameter. `None` for anything else.
    fn arguments(&mut self, name: Token, parameters: &[Symbol], variadic: bool) -> Option<Vec<Vec<Token>>> {
        let floor = std::mem::replace(&mut self.floor, self.files.len());
        let arguments = self.raw_arguments(parameters.len(), variadic);
        self.floor = floor;
        let text = self.spelling(name);
        let Some(mut arguments) = arguments else {
            let error =
                Diagnostic::error(format!("the arguments of macro `{text}` do not end")).at(name.span, "used here");
            self.report(error);
            return None;
        };
        let size = arguments.iter().map(Vec::len).sum::<usize>();
        if !self.pay(size, name.span) {
            return None;
        }
        if parameters.is_empty() && arguments.len() == 1 && arguments[0].is_empty() {
            arguments.clear();
        }
        if variadic && arguments.len() + 1 == parameters.len() {
            arguments.push(Vec::new());
        }
        if arguments.len() != parameters.len() {
            let (expected_count, argument_count) = (parameters.len(), arguments.len());
            let plural = if expected_count == 1 { "" } else { "s" };
            let message =
                format!("macro `{text}` takes {expected_count} argument{plural}, but {argument_count} are given");
            let mut error = Diagnostic::error(message).at(name.span, "");
            if let Some(definition) = self.macros.get(&name.symbol) {
                error = error.also(definition.span, "defined here");
            }
            self.report(error);
            return None;
        }
        Some(arguments)
    }

    fn raw_arguments(&mut self, count: usize, variadic: bool) -> Option<Vec<Vec<Token>>> {
        let mut arguments = vec![Vec::new()];
        let mut depth = 0usize;
        let mut spaced = false;
        loop {
            let mut token = self.take()?;
            match token.kind {
                TokenKind::Newline | TokenKind::Comment | TokenKind::UnterminatedComment => {
                    spaced = true;
                    continue;
                }
                TokenKind::Punct(Punct::OpenParen) => {
                    depth += 1;
                    if depth == 1 {
                        continue;
                    }
                }
                TokenKind::Punct(Punct::CloseParen) => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(arguments);
                    }
                }
                TokenKind::Punct(Punct::Comma) if depth == 1 && !(variadic && arguments.len() == count) => {
                    arguments.push(Vec::new());
                    continue;
                }
                TokenKind::Identifier if self.active.contains(&token.symbol) => {
                    token.painted = true;
                }
                _ => {}
            }
            token.spaced |= spaced;
            spaced = false;
            if let Some(argument) = arguments.last_mut() {
                argument.push(token);
            }
        }
    }

    /// Expands tokens in isolation.
    pub(super) fn expand_fully(&mut self, tokens: &[Token]) -> Vec<Token> {
        if self.argument_depth == LIMITS.argument_depth {
            return tokens.to_vec();
        }
        self.argument_depth += 1;
        let outer = std::mem::take(&mut self.expansions);
        let isolated = std::mem::replace(&mut self.isolated, true);
        self.expansions.push(Expansion { tokens: tokens.into(), next: 0, macro_name: None });
        let mut expanded = Vec::new();
        while let Some(mut token) = self.take_expanded() {
            if token.kind != TokenKind::Identifier || !self.expand(&mut token) {
                expanded.push(token);
            }
        }
        self.expansions = outer;
        self.isolated = isolated;
        self.argument_depth -= 1;
        expanded
    }

    /// The body of a macro with arguments in place of parameters.
    fn substitute(&mut self, body: &[Token], arguments: &mut Arguments<'_>, span: Span) -> Vec<Token> {
        let mut result: Vec<Token> = Vec::new();
        let mut index = 0;
        // Whether the operand before `##` is an argument without tokens.
        let mut nothing_before = true;
        while let Some(&token) = body.get(index) {
            let next = body.get(index + 1);
            if is(&token, Punct::Paste)
                && let Some(operand) = next
            {
                let right = arguments.raw(operand).unwrap_or(std::slice::from_ref(operand));
                if !self.pay(right.len(), span) {
                    break;
                }
                self.paste(&mut result, right, nothing_before, span);
                nothing_before &= right.is_empty();
                index += 2;
                continue;
            }
            let length = result.len();
            let before_paste = next.is_some_and(|it| is(it, Punct::Paste));
            let stringified = next.filter(|_| is(&token, Punct::Hash)).and_then(|it| arguments.raw(it));
            if let Some(argument) = stringified {
                if !self.pay(argument.len(), span) {
                    break;
                }
                result.push(self.stringify(argument, token));
                index += 1;
            } else if !self.operand(token, before_paste, arguments, &mut result) {
                break;
            }
            nothing_before = result.len() == length;
            index += 1;
        }
        result
    }

    /// Appends a token of a macro's body, or the argument of a parameter: beside `##` unexpanded, otherwise
    /// expanded. Returns false beyond the budget.
    fn operand(
        &mut self,
        token: Token,
        beside_paste: bool,
        arguments: &mut Arguments<'_>,
        result: &mut Vec<Token>,
    ) -> bool {
        let Some(number) = arguments.number(&token) else {
            result.push(token);
            return true;
        };
        let raw = &arguments.raw[number];
        if !beside_paste && arguments.expanded[number].is_none() {
            arguments.expanded[number] = Some(self.expand_fully(raw));
        }
        let argument = match &arguments.expanded[number] {
            Some(expanded) if !beside_paste => expanded,
            _ => raw,
        };
        let paid = self.pay(argument.len(), token.span);
        if paid {
            result.extend_from_slice(argument);
        }
        paid
    }

    /// The body of a macro without parameters: only `##` is processed.
    fn paste_all(&mut self, body: &[Token], span: Span) -> Vec<Token> {
        if body.iter().any(|token| is(token, Punct::Paste)) {
            return self.substitute(body, &mut Arguments::new(&[], &[]), span);
        }
        body.to_vec()
    }

    /// Joins the last token of `left` with the first of `right`.
    fn paste(&mut self, left: &mut Vec<Token>, right: &[Token], nothing_before: bool, span: Span) {
        let (Some(&last), Some((&first, rest)), false) = (left.last(), right.split_first(), nothing_before) else {
            left.extend_from_slice(right);
            return;
        };
        let (last_text, first_text) = (self.spelling(last), self.spelling(first));
        if !self.pay((last_text.len() + first_text.len()) / 16, span) {
            return;
        }
        let text = format!("{last_text}{first_text}");
        let pasted = tokenize(FileId(0), &text, self.context.interner);
        if let [one, _newline] = pasted[..] {
            left.pop();
            left.push(Token { spaced: last.spaced, ..one });
            left.extend_from_slice(rest);
        } else {
            let error =
                Diagnostic::error(format!("`##` makes `{text}`, which is not one token")).at(span, "in this macro");
            self.report(error);
            left.extend_from_slice(right);
        }
    }

    /// `#parameter`: the argument as a string literal.
    fn stringify(&mut self, argument: &[Token], hash: Token) -> Token {
        let mut text = String::from("\"");
        let size = argument.iter().map(|token| self.spelling(*token).len() / 16).sum::<usize>();
        if !self.pay(size, hash.span) {
            return hash;
        }
        for (index, token) in argument.iter().enumerate() {
            if index > 0 && token.spaced {
                text.push(' ');
            }
            for character in self.spelling(*token).chars() {
                let quoted = matches!(token.kind, TokenKind::String | TokenKind::Char);
                if matches!(character, '"' | '\\') && quoted {
                    text.push('\\');
                }
                text.push(character);
            }
        }
        text.push('"');
        Token { kind: TokenKind::String, symbol: self.context.interner.intern(&text), ..hash }
    }
}

/// The arguments of one use of a macro.
struct Arguments<'a> {
    parameters: &'a [Symbol],
    raw: &'a [Vec<Token>],
    /// The expanded form of each argument, computed when needed.
    expanded: Vec<Option<Vec<Token>>>,
}

impl<'a> Arguments<'a> {
    fn new(parameters: &'a [Symbol], raw: &'a [Vec<Token>]) -> Self {
        Arguments { parameters, raw, expanded: vec![None; raw.len()] }
    }

    /// The index of the parameter that a token names.
    fn number(&self, token: &Token) -> Option<usize> {
        let named = token.kind == TokenKind::Identifier;
        named.then(|| self.parameters.iter().position(|it| *it == token.symbol)).flatten()
    }

    fn raw(&self, token: &Token) -> Option<&'a [Token]> {
        self.number(token).map(|number| &*self.raw[number])
    }
}

/// A string literal with this text, as the operator `#` makes it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\""))
}

fn is(token: &Token, punct: Punct) -> bool {
    token.kind == TokenKind::Punct(punct)
}
