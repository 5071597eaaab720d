//! Template modules (IDL 4.2, 7.4.12): an instance is the module that results when the arguments replace the
//! parameters of the template.
//!
//! The replacement works on tokens. So a name in an argument is resolved inside the instance, with the same
//! result as outside unless the template defines that name itself. Templates are known by their simple names.

use std::rc::Rc;

use super::replacement::{MOST_TOKENS, Parameter, Template};
use super::{Parsed, Parser, Reported};
use crate::ast::{Item, Name, NewName, UnmappedItem};
use crate::diagnostic::Diagnostic;
use crate::intern::Keyword;
use crate::token::{Punct, Token, TokenKind};

impl Parser<'_> {
    /// The part after `module name` other than `{`: `<parameters> { … }`, or `<arguments> name`, possibly
    /// after further parts of the template's name.
    pub(super) fn template(&mut self, first: NewName) -> Parsed<Item> {
        let mut template = first.name;
        self.not_portable("template modules", "IDL 3.5", template.span);
        while self.accept(Punct::Scope).is_some() {
            template = self.identifier("the name of a template module")?;
        }
        let groups = self.angled()?;
        if self.at(Punct::OpenBrace) {
            return self.template_definition(first, &groups);
        }
        let name = self.new_name_documented("`{`, or the name of the new module,", first.doc)?;
        self.instance(template, &groups, name)
    }

    /// `alias template<arguments> name`, inside a template.
    pub(super) fn template_alias(&mut self, doc: Vec<String>) -> Parsed<Option<Item>> {
        let follows = self.peek_second().map(|it| it.kind);
        if self.word().as_deref() != Some("alias")
            || !matches!(follows, Some(TokenKind::Identifier | TokenKind::Punct(Punct::Scope)))
        {
            return Ok(None);
        }
        self.bump();
        let template = self.scoped_name("the name of a template module")?.parts.pop().ok_or(Reported)?;
        let groups = self.angled()?;
        let name = self.new_name_documented("the name of a module", doc)?;
        self.instance(template, &groups, name).map(Some)
    }

    /// `<a, b<c, d>>`: the tokens between the outermost commas.
    fn angled(&mut self) -> Parsed<Vec<Vec<Token>>> {
        let open = self.expect(Punct::Less, "the name of a template module")?;
        let (mut groups, mut group, mut depth) = (Vec::new(), Vec::new(), 0usize);
        loop {
            if depth == 0 && self.at(Punct::ShiftRight) {
                break; // an extra `>`
            }
            if depth == 1 && self.at(Punct::ShiftRight) {
                self.close_angle("an argument")?;
                let token = self.peek().ok_or(Reported)?;
                group.push(token);
                depth = 0;
                continue;
            }
            let Some(token) = self.peek() else { break };
            match token.kind {
                TokenKind::Punct(Punct::Greater) if depth == 0 => {
                    self.bump();
                    groups.push(group);
                    return Ok(groups);
                }
                TokenKind::Punct(Punct::Comma) if depth == 0 => groups.push(std::mem::take(&mut group)),
                TokenKind::Punct(Punct::OpenBrace | Punct::CloseBrace | Punct::Semicolon) => break,
                kind => {
                    match kind {
                        TokenKind::Punct(Punct::Less | Punct::OpenParen) => depth += 1,
                        TokenKind::Punct(Punct::ShiftRight) => depth = depth.saturating_sub(2),
                        TokenKind::Punct(Punct::Greater | Punct::CloseParen) => depth = depth.saturating_sub(1),
                        _ => {}
                    }
                    group.push(token);
                }
            }
            self.bump();
        }
        let error = Diagnostic::error("a list of parameters or arguments is not closed")
            .at(self.here(), format!("expected `>`, {}", self.found()))
            .also(open, "opened here");
        self.report(error);
        Err(Reported)
    }

    fn template_definition(&mut self, name: NewName, groups: &[Vec<Token>]) -> Parsed<Item> {
        let mut parameters = Vec::with_capacity(groups.len());
        for group in groups {
            // `typename T`, `const long N`, `sequence<T> S`, …: the name comes last.
            let Some(last) = group.last().filter(|it| group.len() > 1 && it.kind == TokenKind::Identifier) else {
                let error = Diagnostic::error("a parameter of a template module has a kind and a name")
                    .at(group.first().map_or(name.name.span, |it| it.span), "as in `typename T` or `const long N`");
                self.report(error);
                self.broken(&name);
                return Err(Reported);
            };
            let is_const = group.first().and_then(|it| Keyword::of(it.symbol)) == Some(Keyword::Const);
            parameters.push(Parameter { symbol: last.symbol, is_const });
        }
        let open = self.expect(Punct::OpenBrace, "the parameters of a template module")?;
        let start = self.next;
        self.skip_to_close();
        let end = self.next.saturating_sub(1);
        let closed = self.tokens.get(end).is_some_and(|it| it.kind == TokenKind::Punct(Punct::CloseBrace));
        if !closed || end < start {
            let error = Diagnostic::error("the body of a template module is not closed").at(open, "opened here");
            self.report(error);
            return Err(Reported);
        }
        let inside = self.docs.iter().filter(|(at, _)| (start..end).contains(at));
        let docs = inside.map(|(at, doc)| (at - start, doc.clone())).collect();
        let template = Template { parameters, body: self.tokens[start..end].to_vec(), docs };
        self.templates.by_name.insert(name.name.symbol, Rc::new(template));
        let (bases, others) = (Vec::new(), Vec::new());
        Ok(Item::Unmapped(UnmappedItem { keyword: "template module", name, bases, others, body: Some(Vec::new()) }))
    }

    /// The module that a template becomes.
    fn instance(&mut self, template: Name, arguments: &[Vec<Token>], name: NewName) -> Parsed<Item> {
        let text = self.interner.text(template.symbol);
        let Some(declared) = self.templates.by_name.get(&template.symbol).cloned() else {
            let error = Diagnostic::error(format!("unknown template module `{text}`"))
                .at(template.span, "not defined before this");
            self.report(error);
            self.broken(&name);
            return Err(Reported);
        };
        if self.templates.open.contains(&template.symbol) {
            let error = Diagnostic::error(format!("the template module `{text}` contains an instance of itself"))
                .at(template.span, "the recursion has no end");
            self.report(error);
            self.broken(&name);
            return Err(Reported);
        }
        let (parameter_count, argument_count) = (declared.parameters.len(), arguments.len());
        if parameter_count != argument_count || arguments.iter().any(Vec::is_empty) {
            let error = Diagnostic::error(format!("the template module `{text}` has {parameter_count} parameters"))
                .at(template.span, format!("{argument_count} arguments are given, and none may be empty"));
            self.report(error);
            self.broken(&name);
            return Err(Reported);
        }
        let parentheses = (self.interner.intern("("), self.interner.intern(")"));
        let Some((tokens, docs)) = self.templates.replaced(&declared, arguments, parentheses) else {
            let error = Diagnostic::error("the instances of template modules are too large")
                .at(template.span, "the limit is exceeded here")
                .note(format!("they may have {MOST_TOKENS} tokens together"));
            self.report(error);
            self.broken(&name);
            return Err(Reported);
        };
        self.templates.open.push(template.symbol);
        let body = self.nested(|parser| parser.within(tokens, docs, &name));
        self.templates.open.pop();
        let body = body?;
        Ok(Item::Module { name, body })
    }

    /// Parses the definitions of a module from other tokens than the input's.
    fn within(&mut self, tokens: Vec<Token>, docs: Vec<(usize, Vec<String>)>, name: &NewName) -> Parsed<Vec<Item>> {
        let outer_tokens = std::mem::replace(&mut self.tokens, tokens);
        let outer_docs = std::mem::replace(&mut self.docs, docs);
        let outer_events = std::mem::replace(&mut self.events, Vec::new().into_iter().peekable());
        let outer_pending = std::mem::take(&mut self.pending);
        let outer_next = std::mem::replace(&mut self.next, 0);
        let mut body = Vec::new();
        let result = self.scope(name, |parser| {
            while parser.peek().is_some() {
                if let Some(brace) = parser.accept(Punct::CloseBrace) {
                    parser.report(Diagnostic::error("unmatched `}`").at(brace, "no `{` is open here"));
                    continue;
                }
                parser.definition_or_recover(&mut body);
            }
            body.append(&mut parser.pending);
            Ok(())
        });
        self.tokens = outer_tokens;
        self.docs = outer_docs;
        self.events = outer_events;
        self.pending = outer_pending;
        self.next = outer_next;
        result.map(|()| body)
    }
}
