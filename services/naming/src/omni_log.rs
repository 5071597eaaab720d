//! The files of `omniNames`: import, and export for the way back.
//!
//! A file is a series of lines. In identifiers and kinds a backslash stands before spaces and backslashes, and a line
//! feed, tab and carriage return are `\n`, `\t` and `\r`:
//!
//! ```text
//! port 2809
//! persistent 3bd2066b010040f0
//! create 4e616d6553657276696365
//! bind IOR:… id kind nobject|ncontext IOR:…
//! unbind IOR:… id kind
//! destroy IOR:…
//! ```
//!
//! A context is named by its object id: in hexadecimal digits after `create`, inside the object key of its reference
//! elsewhere. The object key of the root context is `NameService`; others have two octets before the id.
//!
//! Characters are in omniNames' native code set ([`CodeSet`]).

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Write as _;
use std::mem;

use spandrel::Orb;
use spandrel::services::cos_naming::{BindingType, NameComponent};
use spandrel::types::{IiopProfile, Ior, ior_to_string};

use crate::store::{ContextId, IfBound, Store, StoreError, Target};

/// The reason why a file cannot be imported, or a store exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OmniLogError {
    /// A line is not one of omniNames.
    #[error("line {line} of the omniNames file is not valid: {reason}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// The reason why it is not valid.
        reason: String,
    },
    /// The file has octets that are no characters.
    #[error("the file is not in UTF-8 (--code-set)")]
    NotUtf8,
    /// A name has a character that the code set has not.
    #[error("{0:?} is no character of ISO-8859-1 (--code-set UTF-8 has it)")]
    NotLatin1(char),
    /// A context or binding of the file cannot be written to the store.
    #[error("cannot change the naming graph")]
    Store(#[from] StoreError),
}

/// The native code set of omniNames, which its file is in (`nativeCharCodeSet` of omniORB's configuration).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, clap::ValueEnum)]
pub enum CodeSet {
    /// The default of omniORB.
    #[default]
    #[value(name = "ISO-8859-1")]
    Latin1,
    /// For names of other languages.
    #[value(name = "UTF-8")]
    Utf8,
}

impl CodeSet {
    /// Converts the content of an omniNames file to a text.
    ///
    /// # Errors
    /// Octets that are no characters.
    pub fn decode(self, octets: Vec<u8>) -> Result<String, OmniLogError> {
        match self {
            Self::Latin1 => Ok(octets.into_iter().map(char::from).collect()),
            Self::Utf8 => String::from_utf8(octets).map_err(|_| OmniLogError::NotUtf8),
        }
    }

    /// Converts a text to the content of an omniNames file.
    ///
    /// # Errors
    /// A character that the code set has not.
    pub fn encode(self, text: String) -> Result<Vec<u8>, OmniLogError> {
        match self {
            Self::Latin1 => {
                let octet = |letter: char| u8::try_from(letter).map_err(|_| OmniLogError::NotLatin1(letter));
                text.chars().map(octet).collect()
            }
            Self::Utf8 => Ok(text.into_bytes()),
        }
    }
}

/// The number of entries that an import or export has made.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Entries {
    /// Contexts besides the root context.
    pub contexts: usize,
    /// Bindings of names to objects and contexts.
    pub bindings: usize,
}

const ROOT_KEY: &[u8] = b"NameService";

/// The octets before the object id in the keys of omniNames' adapter.
const KEY_PREFIX: &[u8] = &[0xff, 0];

/// The object id of a context.
type Key = Vec<u8>;

/// The contexts of a file.
type Graph = HashMap<Key, BTreeMap<(String, String), (BindingType, Ior)>>;

/// Adds the graph of an omniNames file to a store. Names that are bound already are an error.
///
/// # Errors
/// The first line that is not valid, before any change; the first binding that the store refuses.
pub fn import(text: &str, orb: &Orb, store: &dyn Store) -> Result<Entries, OmniLogError> {
    let mut graph = parse(text, orb)?;
    let mut entries = Entries::default();
    let mut context_ids: HashMap<Key, ContextId> = HashMap::from([(ROOT_KEY.to_vec(), ContextId::ROOT)]);
    let mut waiting = VecDeque::from([(ROOT_KEY.to_vec(), ContextId::ROOT)]);
    loop {
        let Some((key, context)) = waiting.pop_front() else {
            // Contexts that no name of the root leads to.
            let Some(key) = graph.keys().next().cloned() else { return Ok(entries) };
            let context = store.new_context()?;
            entries.contexts += 1;
            context_ids.insert(key.clone(), context);
            waiting.push_back((key, context));
            continue;
        };
        for ((id, kind), (binding_type, ior)) in graph.remove(&key).unwrap_or_default() {
            let name = NameComponent { id, kind };
            entries.bindings += 1;
            let target = match (binding_type, key_of(&ior)) {
                (BindingType::Nobject, _) => Target::Object(ior),
                (BindingType::Ncontext, Some(key)) if context_ids.contains_key(&key) => {
                    Target::Context(context_ids[&key])
                }
                (BindingType::Ncontext, Some(key)) if graph.contains_key(&key) => {
                    let created = store.bind_new_context(context, &name)?;
                    entries.contexts += 1;
                    context_ids.insert(key.clone(), created);
                    waiting.push_back((key, created));
                    continue;
                }
                (BindingType::Ncontext, _) => Target::ForeignContext(ior),
            };
            store.bind(context, &name, &target, IfBound::Fail)?;
        }
    }
}

fn parse(text: &str, orb: &Orb) -> Result<Graph, OmniLogError> {
    let mut graph = Graph::from([(ROOT_KEY.to_vec(), BTreeMap::new())]);
    for (index, line) in text.lines().enumerate() {
        let invalid = |reason: &str| OmniLogError::Line { line: index + 1, reason: reason.to_owned() };
        let reference = |text: &str| {
            let is_ior = text.get(..4).is_some_and(|scheme| scheme.eq_ignore_ascii_case("IOR:"));
            let object = if is_ior { orb.string_to_object(text).ok() } else { None };
            object.map(|object| object.ior().clone()).ok_or_else(|| invalid("a reference is expected"))
        };
        let context =
            |text: &str| key_of(&reference(text)?).ok_or_else(|| invalid("the reference has no IIOP profile"));
        let words =
            words(line).ok_or_else(|| invalid("a backslash stands before a space, a backslash, `n`, `t` or `r`"))?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            [] | ["" | "port" | "persistent", ..] => {}
            ["create", key] => _ = graph.entry(octets(key).ok_or_else(|| invalid("a key is expected"))?).or_default(),
            ["destroy", ior] => _ = graph.remove(&context(ior)?),
            ["bind", ior, id, kind, binding_type, target] => {
                let binding_type = match binding_type {
                    "nobject" => BindingType::Nobject,
                    "ncontext" => BindingType::Ncontext,
                    _ => return Err(invalid("nobject or ncontext is expected")),
                };
                let bindings = graph.entry(context(ior)?).or_default();
                bindings.insert((id.to_owned(), kind.to_owned()), (binding_type, reference(target)?));
            }
            ["unbind", ior, id, kind] => {
                let removed =
                    graph.get_mut(&context(ior)?).map(|bindings| bindings.remove(&(id.to_owned(), kind.to_owned())));
                if removed.flatten().is_none() {
                    return Err(invalid("the name is not bound"));
                }
            }
            _ => return Err(invalid("create, bind, unbind or destroy with its arguments is expected")),
        }
    }
    Ok(graph)
}

/// The words of a line: single spaces part them, so that a word may be empty. `None` if a backslash stands before
/// another character than omniNames writes.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' => words.push(mem::take(&mut word)),
            '\\' => word.push(match letters.next()? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                letter @ (' ' | '\\') => letter,
                _ => return None,
            }),
            other => word.push(other),
        }
    }
    words.push(word);
    Some(words)
}

/// Appends an identifier or kind as a word of a line.
fn push_word(line: &mut String, word: &str) {
    line.push(' ');
    for letter in word.chars() {
        match letter {
            ' ' | '\\' => line.extend(['\\', letter]),
            '\n' => line.push_str("\\n"),
            '\t' => line.push_str("\\t"),
            '\r' => line.push_str("\\r"),
            other => line.push(other),
        }
    }
}

fn octets(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// The object id in a reference.
fn key_of(ior: &Ior) -> Option<Key> {
    let mut keys = ior.profiles.iter().filter_map(|profile| Some(IiopProfile::decode(profile).ok()??.object_key));
    keys.next().map(|key| key.strip_prefix(KEY_PREFIX).unwrap_or(&key).to_vec())
}

/// Writes the graph of a store as an omniNames file for a service at this address. Contexts to which no name leads
/// are left out.
///
/// # Errors
/// A store that cannot be read.
pub fn export(store: &dyn Store, orb: &Orb, host: &str, port: u16) -> Result<(String, Entries), OmniLogError> {
    const PERSISTENT: &str = "5370616e6472656c"; // eight octets of omniNames' choice
    // Contexts by numbers: 0 is the root context.
    let key = |number: u32| match number {
        0 => ROOT_KEY.to_vec(),
        number => [octets(PERSISTENT).expect("digits"), number.to_be_bytes().to_vec()].concat(),
    };
    let reference = |number: u32| -> Result<String, OmniLogError> {
        let prefix = if number == 0 { &[] } else { KEY_PREFIX };
        let key: String = [prefix, &key(number)].concat().iter().map(|octet| format!("%{octet:02x}")).collect();
        let object = orb.string_to_object(&format!("corbaloc:iiop:1.2@{host}:{port}/{key}"));
        let object = object.map_err(|exception| StoreError::Invalid(exception.to_string()))?;
        let ior = Ior { type_id: crate::context::CONTEXT_TYPE.to_owned(), ..object.ior().clone() };
        Ok(ior_to_string(&ior))
    };
    let (mut creates, mut binds, mut entries) = (String::new(), String::new(), Entries::default());
    let mut numbers = HashMap::from([(ContextId::ROOT, 0)]);
    let mut waiting = VecDeque::from([ContextId::ROOT]);
    while let Some(context) = waiting.pop_front() {
        let number = numbers[&context];
        let digits: String = key(number).iter().map(|octet| format!("{octet:02x}")).collect();
        writeln!(creates, "create {digits}").expect("writing into a string");
        let own = reference(number)?;
        let mut after = None;
        loop {
            let page = store.list(context, after.as_ref(), 1_000)?;
            let Some((last, _)) = page.last().cloned() else { break };
            for (name, _) in page {
                let (binding_type, ior) = match store.lookup(context, &name)? {
                    Target::Object(ior) => ("nobject", ior_to_string(&ior)),
                    Target::ForeignContext(ior) => ("ncontext", ior_to_string(&ior)),
                    Target::Context(bound) => {
                        let next = u32::try_from(numbers.len())
                            .map_err(|_| StoreError::Invalid("omniNames has at most 2^32 contexts".to_owned()))?;
                        let number = *numbers.entry(bound).or_insert_with(|| {
                            entries.contexts += 1;
                            waiting.push_back(bound);
                            next
                        });
                        ("ncontext", reference(number)?)
                    }
                };
                write!(binds, "bind {own}").expect("writing into a string");
                push_word(&mut binds, &name.id);
                push_word(&mut binds, &name.kind);
                writeln!(binds, " {binding_type} {ior}").expect("writing into a string");
                entries.bindings += 1;
            }
            after = Some(last);
        }
    }
    Ok((format!("port {port}\npersistent {PERSISTENT}\n{creates}{binds}"), entries))
}

#[cfg(test)]
mod tests {
    use super::{CodeSet, push_word, words};

    #[test]
    fn octets_of_a_code_set_are_characters() {
        assert_eq!(CodeSet::Latin1.decode(b"\xfc".to_vec()).unwrap(), "ü");
        assert_eq!(CodeSet::Latin1.encode("ü".to_owned()).unwrap(), b"\xfc");
        assert!(CodeSet::Latin1.encode("€".to_owned()).is_err());
        assert_eq!(CodeSet::Utf8.encode("€".to_owned()).unwrap(), "€".as_bytes());
        assert!(CodeSet::Utf8.decode(b"\xfc".to_vec()).is_err());
    }

    #[test]
    fn words_may_be_empty_and_have_spaces() {
        assert_eq!(words(r"bind a\ b  c\\d").unwrap(), ["bind", "a b", "", r"c\d"]);
        assert_eq!(words("").unwrap(), [""]);
        for line in [r"bind a\x", r"bind a\", r"bind \N"] {
            assert_eq!(words(line), None, "{line}");
        }
    }

    #[test]
    fn a_word_of_any_characters_is_read_as_it_was_written_in_one_line() {
        let parts =
            ["a\nb", "\t", "\r", "", " ", "\\", r"\n", "\\\n", "a\r\n b\t", "\u{b}\u{c}\u{1b}", "\u{85}\u{2028}ü"];
        for id in parts {
            for kind in parts {
                let mut line = "bind".to_owned();
                push_word(&mut line, id);
                push_word(&mut line, kind);
                line.push_str(" nobject");
                assert_eq!(line.lines().count(), 1, "{line:?}");
                assert_eq!(words(&line).unwrap(), ["bind", id, kind, "nobject"], "{line:?}");
            }
        }
        let mut line = String::new();
        push_word(&mut line, "a\nb\tc\rd e\\f");
        assert_eq!(line, r" a\nb\tc\rd\ e\\f"); // as omniNames 4.2 writes it
    }
}
