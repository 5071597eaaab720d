//! The types of events: patterns in constraints, subscriptions and offers.

use std::collections::BTreeSet;

use spandrel::services::cos_notification::EventType;

/// The type name of all events.
const ALL: &str = "%ALL";
/// The type name of an `any` without a structured event.
pub(crate) const ANY: &str = "%ANY";
/// The type name of a call of a typed supplier.
pub(crate) const TYPED: &str = "%TYPED";

/// Whether an event of this domain and type is one of a pattern. An empty part, `*` and `%ALL` are all; a `*` in a part stands
/// for any characters.
pub(crate) fn is_match(pattern: &EventType, domain: &str, name: &str) -> bool {
    is_part_match(&pattern.domain_name, domain) && (pattern.type_name == ALL || is_part_match(&pattern.type_name, name))
}

fn is_part_match(pattern: &str, text: &str) -> bool {
    if pattern.is_empty() || pattern == "*" || pattern == text {
        return true;
    }
    let Some((start, rest)) = pattern.split_once('*') else { return false };
    let Some(mut text) = text.strip_prefix(start) else { return false };
    let mut parts = rest.split('*').peekable();
    // Each part matches at its first occurrence; the last one at the end.
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return text.ends_with(part);
        }
        match text.find(part) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    true
}

fn is_all(pattern: &EventType) -> bool {
    let is_any = |part: &str| part.is_empty() || part == "*" || part == ALL;
    is_any(&pattern.domain_name) && is_any(&pattern.type_name)
}

/// The event types that a consumer subscribes to, or a supplier offers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct TypeSet(BTreeSet<(String, String)>);

impl Default for TypeSet {
    /// The set of all types.
    fn default() -> Self {
        Self(BTreeSet::from([("*".to_owned(), ALL.to_owned())]))
    }
}

impl TypeSet {
    /// The set after a change. The first specific types take the place of all types.
    pub(crate) fn changed(&self, added: &[EventType], removed: &[EventType]) -> Self {
        let mut types = self.0.clone();
        let key = |pattern: &EventType| match is_all(pattern) {
            true => ("*".to_owned(), ALL.to_owned()),
            false => (pattern.domain_name.clone(), pattern.type_name.clone()),
        };
        if self.is_default() && added.iter().any(|pattern| !is_all(pattern)) {
            types.clear();
        }
        types.extend(added.iter().map(key));
        for pattern in removed {
            types.remove(&key(pattern));
        }
        Self(types)
    }

    /// The set of a list.
    pub(crate) fn from_list(types: Vec<EventType>) -> Self {
        Self(types.into_iter().map(|event_type| (event_type.domain_name, event_type.type_name)).collect())
    }

    pub(crate) fn empty() -> Self {
        Self(BTreeSet::new())
    }

    pub(crate) fn extend(&mut self, others: &Self) {
        self.0.extend(others.0.iter().cloned());
    }

    /// The octets of all names.
    pub(crate) fn octets(&self) -> usize {
        self.0.iter().map(|(domain_name, type_name)| domain_name.len() + type_name.len()).sum()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the set is that of all types.
    pub(crate) fn is_default(&self) -> bool {
        self.0.len() == 1 && self.0.first().is_some_and(|(domain, name)| domain == "*" && name == ALL)
    }

    pub(crate) fn contains(&self, domain: &str, name: &str) -> bool {
        self.is_default()
            || self.0.iter().any(|(domain_name, type_name)| {
                is_part_match(domain_name, domain) && (type_name == ALL || is_part_match(type_name, name))
            })
    }

    pub(crate) fn list(&self) -> Vec<EventType> {
        let types = self.0.iter().cloned();
        types.map(|(domain_name, type_name)| EventType { domain_name, type_name }).collect()
    }
}
