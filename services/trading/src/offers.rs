//! The offers of a trader, with an index for each service type and each property.
//!
//! An index finds a superset of the offers that match: the constraint decides about each of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use spandrel::net::sync::Arc;
use spandrel_constraint::Value;

use crate::offer::{StoredOffer, is_dynamic};

/// A value by which an index is ordered.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Key {
    Boolean(bool),
    /// A number, rounded to `double` and mapped to an integer of the same order.
    Number(i64),
    Text(Box<str>),
}

impl Key {
    /// The key of a value; `None` for sequences, other types and NaN, which no index has.
    pub(crate) fn new(value: &Value<'_>) -> Option<Self> {
        Some(match value {
            Value::Boolean(value) => Self::Boolean(*value),
            Value::Integer(number) => Self::Number(ordered(*number as f64)),
            Value::Floating(number) if number.is_nan() => return None,
            Value::Floating(number) => Self::Number(ordered(*number)),
            Value::Text(text) => Self::Text((**text).into()),
            Value::Sequence(_) | Value::Other => return None,
        })
    }

    /// The bounds of all keys of this type.
    pub(crate) fn all_of_type(&self) -> (Bound<Self>, Bound<Self>) {
        match self {
            Self::Boolean(_) => (Bound::Included(Self::Boolean(false)), Bound::Included(Self::Boolean(true))),
            Self::Number(_) => (Bound::Included(Self::Number(i64::MIN)), Bound::Included(Self::Number(i64::MAX))),
            Self::Text(_) => (Bound::Included(Self::Text("".into())), Bound::Unbounded),
        }
    }
}

/// An integer with the order of the numbers; both zeros are one.
fn ordered(number: f64) -> i64 {
    let bits = (number + 0.0).to_bits().cast_signed();
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

/// The offers with one value.
#[derive(Debug)]
enum Postings {
    One(u64),
    Many(BTreeSet<u64>),
}

impl Postings {
    fn insert(&mut self, number: u64) {
        match self {
            Self::One(first) => *self = Self::Many([*first, number].into()),
            Self::Many(numbers) => _ = numbers.insert(number),
        }
    }

    /// Removes an offer. Returns whether none remains.
    fn remove(&mut self, number: u64) -> bool {
        match self {
            Self::One(first) => *first == number,
            Self::Many(numbers) => {
                numbers.remove(&number);
                numbers.is_empty()
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(numbers) => numbers.len(),
        }
    }

    fn append(&self, numbers: &mut Vec<u64>) {
        match self {
            Self::One(number) => numbers.push(*number),
            Self::Many(many) => numbers.extend(many),
        }
    }
}

/// The offers of a service type by the value of one property.
#[derive(Debug, Default)]
struct PropertyIndex {
    values: BTreeMap<Key, Postings>,
    /// The offers whose value is evaluated by a query.
    dynamic: BTreeSet<u64>,
}

/// Offers by the values of their properties.
#[derive(Debug, Default)]
struct PropertyIndices(HashMap<Box<str>, PropertyIndex>);

/// The offers of a service type.
#[derive(Debug, Default)]
struct TypeIndex {
    offers: BTreeSet<u64>,
    properties: PropertyIndices,
}

/// The indices that a query uses.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scope<'t> {
    /// Those of each of these types.
    Types(&'t [String]),
    /// That of this type, and the common one of all types with supertypes: offers of other types have to be removed.
    Common(&'t str),
}

/// A way to find offers by an index.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Access {
    /// A property between two values.
    Range { property: String, bounds: (Bound<Key>, Bound<Key>) },
    /// The offers of all of them.
    Union(Vec<Access>),
}

/// Called with the postings of one value, or the dynamic offers of one property; `false` ends the visit.
type Visitor<'v> = dyn FnMut(Option<&Postings>, Option<&BTreeSet<u64>>) -> bool + 'v;

/// The offers of a trader, by number and in indices.
#[derive(Debug, Default)]
pub(crate) struct Offers {
    by_number: BTreeMap<u64, Arc<StoredOffer>>,
    by_type: HashMap<Arc<str>, TypeIndex>,
    /// The offers of all types with supertypes, so that a query on a type with many subtypes needs no index of each.
    common: PropertyIndices,
}

impl Offers {
    pub(crate) fn len(&self) -> usize {
        self.by_number.len()
    }

    pub(crate) fn get(&self, number: u64) -> Option<&Arc<StoredOffer>> {
        self.by_number.get(&number)
    }

    /// A type's name, shared with its other offers.
    pub(crate) fn type_name(&self, name: &str) -> Arc<str> {
        self.by_type.get_key_value(name).map_or_else(|| name.into(), |(shared, _)| Arc::clone(shared))
    }

    /// The offers behind this number, in the order of their numbers.
    pub(crate) fn after(&self, number: Option<u64>) -> impl Iterator<Item = &Arc<StoredOffer>> {
        let start = number.map_or(Bound::Unbounded, Bound::Excluded);
        self.by_number.range((start, Bound::Unbounded)).map(|(_, offer)| offer)
    }

    /// The offers of a type behind this number.
    pub(crate) fn of_type_after(&self, service_type: &str, number: Option<u64>, most: usize) -> Vec<Arc<StoredOffer>> {
        let start = number.map_or(Bound::Unbounded, Bound::Excluded);
        let Some(index) = self.by_type.get(service_type) else { return Vec::new() };
        let numbers = index.offers.range((start, Bound::Unbounded)).take(most);
        numbers.filter_map(|number| self.by_number.get(number)).cloned().collect()
    }

    /// Replaces an offer; `None` removes it. The common index has it if its type has a supertype.
    pub(crate) fn set(&mut self, number: u64, offer: Option<Arc<StoredOffer>>, has_supertype: bool) {
        let before = match &offer {
            Some(offer) => self.by_number.insert(number, Arc::clone(offer)),
            None => self.by_number.remove(&number),
        };
        if let Some(before) = before {
            self.remove_from_indices(&before);
        }
        if let Some(offer) = offer {
            let index = self.by_type.entry(Arc::clone(&offer.service_type)).or_default();
            index.offers.insert(offer.number);
            index.properties.add(&offer);
            if has_supertype {
                self.common.add(&offer);
            }
        }
    }

    /// Adds the offers of a type that has a supertype from now on to the common index.
    pub(crate) fn add_to_common(&mut self, service_type: &str) {
        let numbers = self.by_type.get(service_type).into_iter().flat_map(|index| &index.offers);
        for offer in numbers.filter_map(|number| self.by_number.get(number)) {
            self.common.remove(offer); // that of an earlier type with this name
            self.common.add(offer);
        }
    }

    fn remove_from_indices(&mut self, offer: &StoredOffer) {
        self.common.remove(offer);
        let Some(index) = self.by_type.get_mut(&offer.service_type) else { return };
        index.offers.remove(&offer.number);
        index.properties.remove(offer);
        if index.offers.is_empty() {
            self.by_type.remove(&offer.service_type);
        }
    }

    /// The number of offers in a scope.
    pub(crate) fn count_all(&self, scope: Scope<'_>) -> usize {
        match scope {
            Scope::Types(names) => {
                names.iter().filter_map(|name| self.by_type.get(&**name)).map(|index| index.offers.len()).sum()
            }
            Scope::Common(_) => self.len(),
        }
    }

    /// The number of offers that an access finds, counted up to a bound: the count costs no more than its result.
    pub(crate) fn count(&self, scope: Scope<'_>, access: &Access, bound: usize) -> usize {
        let mut count = 0;
        self.visit(scope, access, &mut |postings, dynamic| {
            count += postings.map_or(0, Postings::len) + dynamic.map_or(0, BTreeSet::len);
            count < bound
        });
        count
    }

    /// The numbers of the offers that an access finds, in their order, each once.
    pub(crate) fn numbers(&self, scope: Scope<'_>, access: &Access) -> Vec<u64> {
        let mut numbers = Vec::new();
        self.visit(scope, access, &mut |postings, dynamic| {
            if let Some(postings) = postings {
                postings.append(&mut numbers);
            }
            numbers.extend(dynamic.into_iter().flatten());
            true
        });
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// Visits the postings of an access until `visitor` returns `false`. Returns whether it did not.
    fn visit(&self, scope: Scope<'_>, access: &Access, visitor: &mut Visitor<'_>) -> bool {
        match access {
            Access::Union(parts) => parts.iter().all(|part| self.visit(scope, part, visitor)),
            Access::Range { property, bounds } => {
                let of_type = |name: &str| self.by_type.get(name).map(|index| &index.properties);
                let mut visit = |indices: &PropertyIndices| indices.visit(property, bounds, visitor);
                match scope {
                    Scope::Types(names) => names.iter().filter_map(|name| of_type(name)).all(visit),
                    Scope::Common(name) => of_type(name).is_none_or(&mut visit) && visit(&self.common),
                }
            }
        }
    }
}

impl PropertyIndices {
    fn add(&mut self, offer: &StoredOffer) {
        for property in &offer.properties {
            let mut of_property = |add: &dyn Fn(&mut PropertyIndex)| match self.0.get_mut(&*property.name) {
                Some(index) => add(index),
                None => add(self.0.entry(property.name.as_str().into()).or_default()),
            };
            if is_dynamic(&property.value) {
                of_property(&|index| _ = index.dynamic.insert(offer.number));
            } else if let Some(key) = Value::from_any(&property.value).ok().as_ref().and_then(Key::new) {
                of_property(&|index| match index.values.get_mut(&key) {
                    Some(postings) => postings.insert(offer.number),
                    None => _ = index.values.insert(key.clone(), Postings::One(offer.number)),
                });
            }
        }
    }

    /// Removes an offer, which need not be in the indices.
    fn remove(&mut self, offer: &StoredOffer) {
        for property in &offer.properties {
            let Some(values) = self.0.get_mut(&*property.name) else { continue };
            values.dynamic.remove(&offer.number);
            if let Some(key) = Value::from_any(&property.value).ok().as_ref().and_then(Key::new)
                && values.values.get_mut(&key).is_some_and(|postings| postings.remove(offer.number))
            {
                values.values.remove(&key);
            }
            if values.values.is_empty() && values.dynamic.is_empty() {
                self.0.remove(&*property.name);
            }
        }
    }

    fn visit(&self, property: &str, bounds: &(Bound<Key>, Bound<Key>), visitor: &mut Visitor<'_>) -> bool {
        let Some(index) = self.0.get(property).filter(|_| !is_empty(bounds)) else { return true };
        visitor(None, Some(&index.dynamic))
            && index.values.range(bounds.clone()).all(|(_, postings)| visitor(Some(postings), None))
    }
}

/// Whether no key is between the bounds, which `range` would panic over.
fn is_empty(bounds: &(Bound<Key>, Bound<Key>)) -> bool {
    matches!(bounds, (Bound::Included(low), Bound::Included(high)) if low > high)
}
