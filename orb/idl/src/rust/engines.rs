//! The choice of marshaling engines: one for everything, and others by scoped name.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::bad_option::BadOption;

/// The way in which generated code marshals a type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// Straight-line code for each type: the fastest, and the largest.
    #[default]
    Compiled,
    /// A table for each type, and one interpreter for all.
    Interpretive,
    /// Both: a type begins with its table, and switches to its code after frequent use.
    Adaptive,
}

impl FromStr for Engine {
    type Err = BadOption;

    fn from_str(name: &str) -> Result<Self, BadOption> {
        match name {
            "compiled" => Ok(Self::Compiled),
            "interpretive" => Ok(Self::Interpretive),
            "adaptive" => Ok(Self::Adaptive),
            _ => Err(BadOption {
                value: name.to_owned(),
                expected: "a marshaling engine: compiled, interpretive or adaptive".into(),
            }),
        }
    }
}

/// The default engine, and those of some modules, interfaces and types by their scoped names.
#[derive(Clone, Debug, Default)]
pub(super) struct Engines {
    default: Engine,
    named: BTreeMap<String, Engine>,
}

impl Engines {
    /// Accepts `ENGINE` or `Scoped::Name=ENGINE`.
    pub(super) fn choose(&mut self, choice: &str) -> Result<(), BadOption> {
        match choice.split_once('=') {
            None => self.default = choice.parse()?,
            Some((name, engine)) => {
                let name = name.trim_start_matches("::").to_owned();
                self.named.insert(name, engine.parse()?);
            }
        }
        Ok(())
    }

    /// The engine of a definition: that of the innermost enclosing scope with a choice.
    pub(super) fn of(&self, scoped_name: &str) -> Engine {
        let mut name = scoped_name;
        loop {
            if let Some(&engine) = self.named.get(name) {
                return engine;
            }
            match name.rsplit_once("::") {
                Some((around, _)) => name = around,
                None => return self.default,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_choice_applies() {
        let mut engines = Engines::default();
        for choice in ["interpretive", "Bank::Account=adaptive", "::Bank::Account::Entry=compiled"] {
            engines.choose(choice).expect("an engine");
        }
        assert_eq!(engines.of("Bank"), Engine::Interpretive);
        assert_eq!(engines.of("Bank::AccountBook"), Engine::Interpretive);
        assert_eq!(engines.of("Bank::Account"), Engine::Adaptive);
        assert_eq!(engines.of("Bank::Account::Kind"), Engine::Adaptive);
        assert_eq!(engines.of("Bank::Account::Entry"), Engine::Compiled);
        let error = engines.choose("Bank=fast").expect_err("no engine");
        assert_eq!(error.to_string(), "`fast` is not a marshaling engine: compiled, interpretive or adaptive");
    }
}
