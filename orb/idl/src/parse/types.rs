//! Parsing of types, in declarations and in parameters.

use super::{Parsed, Parser};
use crate::ast::{TypeKind, TypeSpec};
use crate::intern::Keyword;
use crate::model::Primitive;
use crate::token::Punct;

impl Parser<'_> {
    /// A type; `what` describes the missing item in an error.
    pub(super) fn type_spec(&mut self, expected: &str) -> Parsed<TypeSpec> {
        let start = self.here();
        let kind = self.nested(|parser| parser.type_kind(expected))?;
        let last = self.next.checked_sub(1).and_then(|it| self.tokens.get(it));
        let span = last.map_or(start, |last| start.to(last.span));
        Ok(TypeSpec { kind, span })
    }

    fn type_kind(&mut self, expected: &str) -> Parsed<TypeKind> {
        let Some(keyword) = self.keyword() else {
            return if self.at_map() {
                Err(self.extended_here("map"))
            } else if self.at_scoped_name() {
                self.scoped_name(expected).map(TypeKind::Scoped)
            } else {
                Err(self.unexpected(expected))
            };
        };
        match keyword {
            Keyword::Struct => {
                self.bump();
                let name = self.new_name("the name of a struct")?;
                let body = self.members(name, false)?;
                Ok(TypeKind::Struct(Box::new(body)))
            }
            Keyword::Union => {
                self.bump();
                let name = self.new_name("the name of a union")?;
                let body = self.union_body(name)?;
                Ok(TypeKind::Union(Box::new(body)))
            }
            Keyword::Enum => {
                let body = self.enumeration(Vec::new())?;
                Ok(TypeKind::Enum(Box::new(body)))
            }
            Keyword::Sequence => self.sequence(),
            Keyword::String => {
                self.bump();
                self.string_bound().map(TypeKind::String)
            }
            Keyword::WString => {
                self.bump();
                self.string_bound().map(TypeKind::WString)
            }
            Keyword::Fixed => self.fixed(),
            Keyword::Object => self.whole(TypeKind::Object),
            Keyword::Any => self.whole(TypeKind::Any),
            Keyword::ValueBase => self.whole(TypeKind::ValueBase),
            _ => self.primitive(expected).map(TypeKind::Primitive),
        }
    }

    /// A type that consists of its keyword.
    fn whole(&mut self, kind: TypeKind) -> Parsed<TypeKind> {
        self.bump();
        Ok(kind)
    }

    /// `fixed<digits, scale>`, or `fixed` alone.
    fn fixed(&mut self) -> Parsed<TypeKind> {
        self.bump();
        if self.accept(Punct::Less).is_none() {
            return Ok(TypeKind::Fixed(None));
        }
        let digits = self.bound()?;
        self.expect(Punct::Comma, "the number of digits")?;
        let scale = self.bound()?;
        self.close_angle("the scale")?;
        Ok(TypeKind::Fixed(Some(Box::new((digits, scale)))))
    }

    fn primitive(&mut self, expected: &str) -> Parsed<Primitive> {
        let primitive = match self.keyword() {
            Some(Keyword::Short) => Primitive::Short,
            Some(Keyword::Long) => return Ok(self.long()),
            Some(Keyword::Unsigned) => return self.unsigned(),
            Some(Keyword::Float) => Primitive::Float,
            Some(Keyword::Double) => Primitive::Double,
            Some(Keyword::Boolean) => Primitive::Boolean,
            Some(Keyword::Octet) => Primitive::Octet,
            Some(Keyword::Char) => Primitive::Char,
            Some(Keyword::WChar) => Primitive::WChar,
            _ => return Err(self.unexpected(expected)),
        };
        self.bump();
        Ok(primitive)
    }

    fn long(&mut self) -> Primitive {
        self.bump();
        if self.accept_keyword(Keyword::Long).is_some() {
            Primitive::LongLong
        } else if self.accept_keyword(Keyword::Double).is_some() {
            Primitive::LongDouble
        } else {
            Primitive::Long
        }
    }

    fn unsigned(&mut self) -> Parsed<Primitive> {
        self.bump();
        if self.accept_keyword(Keyword::Short).is_some() {
            Ok(Primitive::UnsignedShort)
        } else if self.accept_keyword(Keyword::Long).is_none() {
            Err(self.unexpected("`short` or `long` after `unsigned`"))
        } else if self.accept_keyword(Keyword::Long).is_some() {
            Ok(Primitive::UnsignedLongLong)
        } else {
            Ok(Primitive::UnsignedLong)
        }
    }

    fn sequence(&mut self) -> Parsed<TypeKind> {
        self.bump();
        self.expect(Punct::Less, "`sequence`")?;
        let element = self.type_spec("the type of the elements")?;
        let bound = if self.accept(Punct::Comma).is_some() { Some(self.bound()?) } else { None };
        self.close_angle("the type of the elements")?;
        Ok(TypeKind::Sequence(Box::new(element), bound))
    }

    /// Reads `<bound>` if it is there.
    fn string_bound(&mut self) -> Parsed<Option<crate::ast::Expression>> {
        if self.accept(Punct::Less).is_none() {
            return Ok(None);
        }
        let bound = self.bound()?;
        self.close_angle("the bound")?;
        Ok(Some(bound))
    }

    /// Consumes `>`; of `>>` it consumes the first half.
    pub(super) fn close_angle(&mut self, after: &str) -> Parsed<()> {
        if self.at(Punct::ShiftRight)
            && let Some(token) = self.tokens.get_mut(self.next)
        {
            token.kind = crate::token::TokenKind::Punct(Punct::Greater);
            token.symbol = self.interner.intern(Punct::Greater.text());
            token.span.start = (token.span.start + 1).min(token.span.end);
            return Ok(());
        }
        self.expect(Punct::Greater, after).map(|_| ())
    }
}
