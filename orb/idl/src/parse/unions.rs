//! Unions (IDL 4.2, 7.4.1.4.4.4.2 and 7.4.13).

use super::{Parsed, Parser};
use crate::ast::{BranchItem, Item, LabelItem, Member, NewName, TypeKind, UnionItem};
use crate::diagnostic::Diagnostic;
use crate::intern::Keyword;
use crate::model::Primitive;
use crate::token::Punct;

impl Parser<'_> {
    pub(super) fn union_or_forward(&mut self, doc: Vec<String>) -> Parsed<Item> {
        self.bump();
        let name = self.new_name_documented("the name of a union", doc)?;
        if self.at(Punct::Semicolon) {
            return Ok(Item::UnionForward { name });
        }
        self.union_body(name).map(Item::Union)
    }

    /// `switch (type) { branches }`
    pub(super) fn union_body(&mut self, name: NewName) -> Parsed<UnionItem> {
        let head = self.scope(&name, |parser| {
            if parser.accept_keyword(Keyword::Switch).is_none() {
                return Err(parser.unexpected("`switch` after the name of a union"));
            }
            parser.expect(Punct::OpenParen, "`switch`")?;
            parser.annotations()?;
            let discriminator = parser.type_spec("the type of the discriminator")?;
            if let TypeKind::Primitive(Primitive::Octet | Primitive::WChar) = discriminator.kind {
                parser.not_portable("unions of an `octet` or a `wchar`", "IDL 4.2", discriminator.span);
            }
            parser.expect(Punct::CloseParen, "the type of the discriminator")?;
            let open = parser.expect(Punct::OpenBrace, "the head of a union")?;
            Ok((discriminator, open))
        });
        let (discriminator, open) = match head {
            Ok(head) => head,
            Err(reported) => {
                self.broken(&name);
                return Err(reported);
            }
        };
        let empty = self.at(Punct::CloseBrace);
        let branches = self.scope(&name, |parser| parser.nested(|parser| Ok(parser.branches())))?;
        self.close(open, &name)?;
        if empty {
            let error = Diagnostic::error("a union must have a branch").at(name.name.span, "this one has none");
            self.report(error);
        }
        Ok(UnionItem { name, discriminator, branches })
    }

    fn branches(&mut self) -> Vec<BranchItem> {
        let mut branches = Vec::new();
        while self.peek().is_some() && !self.at(Punct::CloseBrace) {
            let before = self.next;
            match self.branch() {
                Ok(branch) => branches.push(branch),
                Err(_) => self.recover(),
            }
            if self.next == before && !self.at(Punct::CloseBrace) {
                break;
            }
        }
        branches
    }

    fn branch(&mut self) -> Parsed<BranchItem> {
        let (mut annotations, doc) = self.front()?;
        let mut labels = Vec::new();
        loop {
            if self.accept_keyword(Keyword::Case).is_some() {
                labels.push(LabelItem::Case(self.expression()?));
                self.expect(Punct::Colon, "the label of a branch")?;
            } else if let Some(span) = self.accept_keyword(Keyword::Default) {
                labels.push(LabelItem::Default(span));
                self.expect(Punct::Colon, "`default`")?;
            } else if labels.is_empty() {
                return Err(self.unexpected("`case` or `default`"));
            } else {
                break;
            }
        }
        let (more, own_doc) = self.front()?;
        annotations.extend(more);
        let doc = if own_doc.is_empty() { doc } else { own_doc };
        let ty = self.type_spec("the type of a branch")?;
        let mut declarators = self.declarators("the name of a branch", &doc)?;
        if let Some(second) = declarators.get(1) {
            let error = Diagnostic::error("a branch of a union has one name")
                .at(second.name.name.span, "this one is extra")
                .help("give it its own `case`, or put both into a struct");
            self.report(error);
            declarators.truncate(1);
        }
        self.expect(Punct::Semicolon, "a branch")?;
        Ok(BranchItem { labels, member: Member { annotations, ty, declarators } })
    }
}
