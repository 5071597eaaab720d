//! Interned spellings, so that tokens are small and names compare fast.

use std::collections::HashMap;
use std::rc::Rc;

/// A spelling held by an [`Interner`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Symbol(u32);

/// The table of spellings. The keywords come first, so that a keyword's symbol is its number.
#[derive(Debug)]
pub(crate) struct Interner {
    numbers: HashMap<Rc<str>, u32>,
    spellings: Vec<Rc<str>>,
    folded: Vec<Option<Symbol>>,
}

impl Default for Interner {
    fn default() -> Self {
        Interner::new()
    }
}

impl Interner {
    pub(crate) fn new() -> Self {
        let mut interner = Interner { numbers: HashMap::new(), spellings: Vec::new(), folded: Vec::new() };
        for keyword in Keyword::ALL {
            interner.intern(keyword.text());
        }
        interner
    }

    pub(crate) fn intern(&mut self, text: &str) -> Symbol {
        if let Some(&number) = self.numbers.get(text) {
            return Symbol(number);
        }
        let number = self.spellings.len() as u32;
        let text: Rc<str> = text.into();
        self.numbers.insert(text.clone(), number);
        self.spellings.push(text);
        self.folded.push(None);
        Symbol(number)
    }

    pub(crate) fn text(&self, symbol: Symbol) -> Rc<str> {
        self.spellings[symbol.0 as usize].clone()
    }

    /// The spelling in lower case: identifiers that differ only in case collide (IDL 4.2, 7.2.3).
    pub(crate) fn folded(&mut self, symbol: Symbol) -> Symbol {
        if let Some(folded) = self.folded[symbol.0 as usize] {
            return folded;
        }
        let lower = self.text(symbol).to_ascii_lowercase();
        let folded = self.intern(&lower);
        self.folded[symbol.0 as usize] = Some(folded);
        folded
    }
}

/// Defines [`Keyword`] from the table of spellings.
macro_rules! keywords {
    ($($name:ident $text:literal)*) => {
        /// The keywords of OMG IDL as CORBA 2.3 and all its successors reserve them.
        ///
        /// Words that later versions added (`component`, `map`, `getraises`, …) are recognized by context
        /// instead, so that older IDL with such identifiers stays valid. So is `factory`, which the OMG's own
        /// CosLifeCycle defines as a type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Keyword { $($name),* }

        impl Keyword {
            pub(crate) const ALL: &'static [Keyword] = &[$(Keyword::$name),*];

            pub(crate) fn text(self) -> &'static str {
                match self { $(Keyword::$name => $text),* }
            }
        }
    };
}

keywords! {
    Abstract "abstract" Any "any" Attribute "attribute" Boolean "boolean" Case "case" Char "char" Const "const"
    Context "context" Custom "custom" Default "default" Double "double" Enum "enum" Exception "exception"
    False "FALSE" Fixed "fixed" Float "float" In "in" InOut "inout" Interface "interface"
    Local "local" Long "long" Module "module" Native "native" Object "Object" Octet "octet" Oneway "oneway" Out "out"
    Private "private" Public "public" Raises "raises" Readonly "readonly" Sequence "sequence" Short "short"
    String "string" Struct "struct" Supports "supports" Switch "switch" True "TRUE" Truncatable "truncatable"
    Typedef "typedef" Union "union" Unsigned "unsigned" ValueBase "ValueBase" Valuetype "valuetype" Void "void"
    WChar "wchar" WString "wstring"
}

impl Keyword {
    /// The keyword with exactly this spelling.
    pub(crate) fn of(symbol: Symbol) -> Option<Keyword> {
        Keyword::ALL.get(symbol.0 as usize).copied()
    }

    /// The keyword with which this identifier collides because they differ only in case (IDL 4.2, 7.2.4).
    pub(crate) fn colliding(text: &str) -> Option<Keyword> {
        let mut all = Keyword::ALL.iter();
        all.find(|keyword| keyword.text().eq_ignore_ascii_case(text)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyword_is_found_by_its_symbol() {
        let mut interner = Interner::new();
        for &keyword in Keyword::ALL {
            let symbol = interner.intern(keyword.text());
            assert_eq!(Keyword::of(symbol), Some(keyword));
        }
        assert_eq!(Keyword::of(interner.intern("account")), None);
    }

    #[test]
    fn folding_joins_spellings_that_differ_only_in_case() {
        let mut interner = Interner::new();
        let (a, b) = (interner.intern("getFoo"), interner.intern("GETfoo"));
        assert_ne!(a, b);
        assert_eq!(interner.folded(a), interner.folded(b));
    }
}
