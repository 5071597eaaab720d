//! The extended data types of DDS (IDL 4.2, 7.4.13). No CORBA profile has them (9.2), and CDR of GIOP has no
//! encoding for them: they are skipped and reported.
//!
//! Each leaves an [`Item::Broken`], so that later uses of its name are not reported again.

use super::{Parsed, Parser, Reported};
use crate::ast::Item;
use crate::diagnostic::Diagnostic;
use crate::token::{Punct, TokenKind};

/// Definitions that start with a word that older IDL may use as an identifier.
const WORDS: [&str; 2] = ["bitset", "bitmask"];

impl Parser<'_> {
    /// Reports a construct that is not part of CORBA.
    pub(super) fn extended_here(&mut self, feature: &str) -> Reported {
        let error =
            Diagnostic::error(format!("not part of CORBA: {feature}")).at(self.here(), "used here").note(EXTENDED);
        self.report(error);
        Reported
    }

    /// The definition of an extended data type; otherwise an error.
    pub(super) fn extended_definition(&mut self, items: &mut Vec<Item>) -> Parsed<()> {
        let word = self.word();
        let follows = self.peek_second().is_some_and(|it| it.kind == TokenKind::Identifier);
        let Some(feature) = WORDS.into_iter().find(|it| follows && word.as_deref() == Some(it)) else {
            return Err(self.unexpected_definition());
        };
        self.extended_here(feature);
        self.bump();
        let name = self.new_name("a name")?;
        items.push(Item::Broken { name });
        self.skip_to_body();
        if self.at(Punct::OpenBrace) {
            self.skip_braces();
        }
        self.recover();
        Ok(())
    }

    /// Whether `map<…>` starts here; `map` may also be the name of a type.
    pub(super) fn at_map(&self) -> bool {
        let follows = self.peek_second().is_some_and(|it| it.kind == TokenKind::Punct(Punct::Less));
        follows && self.word().as_deref() == Some("map")
    }
}

/// A note on the extended data types.
pub(crate) const EXTENDED: &str =
    "it is one of the extended data types of IDL 4, which are for DDS (IDL 4.2, 7.4.13 and 9.2)";
