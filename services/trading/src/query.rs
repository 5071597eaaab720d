//! The offers of this trader that match a query, in the order of the preference.

use std::collections::{BinaryHeap, VecDeque};
use std::time::Instant;

use spandrel::net::sync::Arc;
use spandrel_constraint::{Constraint, Preference, Rank};

use crate::dynamic::{DynamicValues, NeededValues};
use crate::offer::{OfferValues, StoredOffer};
use crate::offers::{Access, Scope};
use crate::plan;
use crate::policies::QueryPolicies;
use crate::state::{SharedState, State};
use crate::types::{Conformance, is_readonly};

/// The offers that are taken from the store at once.
const PAGE: usize = 1_024;

/// The types whose indices are visited one by one.
const FEW_TYPES: usize = 16;

/// The offers between two looks at the clock.
const TIME_CHECKS: u64 = 64;

/// The name in `limits_applied` for [`TradingOptions::query_time`](crate::TradingOptions), which bounds the
/// time of a query.
pub const QUERY_TIME: &str = "spandrel_query_time";

/// The policy of the offers that a query examines at most.
pub(crate) const SEARCH_CARD: &str = "search_card";

/// A query after the checks of its arguments.
#[derive(Debug)]
pub(crate) struct LocalQuery<'q> {
    pub(crate) service_type: &'q str,
    pub(crate) constraint: &'q Constraint,
    pub(crate) preference: &'q Preference,
    pub(crate) policies: &'q QueryPolicies,
    pub(crate) dynamic: &'q DynamicValues,
    pub(crate) deadline: Instant,
}

/// The outcome of a query on the offers of this trader.
#[derive(Debug, Default)]
pub(crate) struct LocalResult {
    pub(crate) offers: Vec<Arc<StoredOffer>>,
    pub(crate) limits_applied: Vec<&'static str>,
    /// The offers whose constraint was evaluated.
    pub(crate) examined: u64,
}

/// The offers that a query may examine.
enum Candidates {
    /// The offers of an index, by number.
    Numbers(VecDeque<u64>),
    /// All offers of these types; the number is the last one of the first type that was taken.
    Types(VecDeque<String>, Option<u64>),
}

/// An offer that matches, by its place in the order.
struct Match {
    rank: Rank,
    /// The number of matches before it: the order of equal ranks.
    position: u64,
    offer: Arc<StoredOffer>,
}

impl Ord for Match {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank.cmp(&other.rank).then(self.position.cmp(&other.position))
    }
}

impl PartialOrd for Match {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Match {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Match {}

impl LocalQuery<'_> {
    /// Examines the offers of an index, or all of the types. The best `return_card` of them are kept in a heap.
    pub(crate) fn run(&self, shared: &SharedState) -> LocalResult {
        let mut result = LocalResult::default();
        let mut best = BinaryHeap::<Match>::new();
        let mut matched = 0;
        let most = usize::try_from(self.policies.return_card).unwrap_or(usize::MAX);
        let mut candidates = self.candidates(shared);
        'pages: loop {
            let page = take_page(&mut candidates, shared);
            if page.is_empty() {
                break;
            }
            self.evaluate_dynamic_properties(&page);
            for offer in page {
                if !self.is_considered(&offer, shared) {
                    continue;
                }
                if result.examined >= self.policies.search_card.into() {
                    result.limits_applied.push(SEARCH_CARD);
                    break 'pages;
                }
                let needs_clock = result.examined % TIME_CHECKS == TIME_CHECKS - 1 || offer.has_dynamic_property();
                if needs_clock && Instant::now() >= self.deadline {
                    result.limits_applied.push(QUERY_TIME);
                    break 'pages;
                }
                result.examined += 1;
                let values = OfferValues { offer: &offer, dynamic: self.dynamic, deadline: self.deadline };
                if self.constraint.matches(&values) != Ok(true) {
                    continue;
                }
                if matched >= u64::from(self.policies.match_card) {
                    result.limits_applied.push("match_card");
                    break 'pages;
                }
                let rank = self.preference.rank(&values, || fastrand::u64(..));
                best.push(Match { rank, position: matched, offer: Arc::clone(&offer) });
                matched += 1;
                if best.len() > most {
                    best.pop();
                    if self.preference.is_first() {
                        break 'pages; // each further match would be behind these
                    }
                }
            }
        }
        if matched > best.len() as u64 {
            result.limits_applied.push("return_card");
        }
        result.offers = best.into_sorted_vec().into_iter().map(|matching| matching.offer).collect();
        result
    }

    /// The offers to examine: those of the cheapest index.
    ///
    /// A few types have an index each. For many subtypes, the common index is taken unless it has more offers than the
    /// types' own indices with a visit of each of them.
    fn candidates(&self, shared: &SharedState) -> Candidates {
        shared.read(|state| {
            if self.policies.exact_type_match {
                return self.of_types(state, vec![self.service_type.to_owned()]);
            }
            if let Some(few) = state.types.with_subtypes(self.service_type, FEW_TYPES) {
                return self.of_types(state, few);
            }
            let common = Scope::Common(self.service_type);
            let (access, count) = plan::choose(&state.offers, common, self.constraint);
            let most_types = if access.is_some() { count.max(FEW_TYPES) } else { usize::MAX };
            let types = state.types.with_subtypes(self.service_type, most_types);
            match (access, types) {
                (Some(access), None) => self.of_common_index(state, &access),
                (Some(access), Some(types)) => {
                    let (_, own) = plan::choose(&state.offers, Scope::Types(&types), self.constraint);
                    match own + types.len() < count {
                        true => self.of_types(state, types),
                        false => self.of_common_index(state, &access),
                    }
                }
                (None, types) => self.of_types(state, types.unwrap_or_default()),
            }
        })
    }

    fn of_types(&self, state: &State, types: Vec<String>) -> Candidates {
        let scope = Scope::Types(&types);
        match plan::choose(&state.offers, scope, self.constraint) {
            (Some(access), _) => Candidates::Numbers(state.offers.numbers(scope, &access).into()),
            (None, _) => Candidates::Types(types.into(), None),
        }
    }

    fn of_common_index(&self, state: &State, access: &Access) -> Candidates {
        let mut conformance = Conformance::new(&state.types, self.service_type);
        let mut numbers = state.offers.numbers(Scope::Common(self.service_type), access);
        numbers
            .retain(|number| state.offers.get(*number).is_some_and(|offer| conformance.holds_for(&offer.service_type)));
        Candidates::Numbers(numbers.into())
    }

    /// Evaluates the dynamic properties of offers that constraint and preference need first, at the same time.
    fn evaluate_dynamic_properties(&self, page: &[Arc<StoredOffer>]) {
        if !self.policies.use_dynamic_properties {
            return;
        }
        let needed = NeededValues::default();
        for offer in page.iter().filter(|offer| offer.has_dynamic_property()) {
            let values = OfferValues { offer, dynamic: &needed, deadline: self.deadline };
            if self.constraint.matches(&values) == Ok(true) {
                self.preference.rank(&values, || 0);
            }
        }
        self.dynamic.evaluate(needed.take());
    }

    /// Whether the policies admit an offer.
    pub(crate) fn is_considered(&self, offer: &StoredOffer, shared: &SharedState) -> bool {
        if !self.policies.use_dynamic_properties && offer.has_dynamic_property() {
            return false;
        }
        self.policies.use_modifiable_properties || !is_modifiable(offer, shared)
    }
}

/// Whether an offer has a property that is not read-only.
fn is_modifiable(offer: &StoredOffer, shared: &SharedState) -> bool {
    let props = shared.read(|state| {
        let service_type = state.types.get(&offer.service_type)?;
        Some(state.types.full(service_type).props)
    });
    let props = props.unwrap_or_default();
    let readonly = |name: &str| props.iter().any(|prop| prop.name == name && is_readonly(prop.mode));
    offer.properties.iter().any(|property| !readonly(&property.name))
}

/// The next offers, none at the end.
fn take_page(candidates: &mut Candidates, shared: &SharedState) -> Vec<Arc<StoredOffer>> {
    match candidates {
        Candidates::Numbers(numbers) => loop {
            let page: Vec<u64> = numbers.drain(..PAGE.min(numbers.len())).collect();
            // Offers that were withdrawn meanwhile are missing.
            let offers: Vec<_> =
                shared.read(|state| page.iter().filter_map(|number| state.offers.get(*number)).cloned().collect());
            if !offers.is_empty() || page.is_empty() {
                return offers;
            }
        },
        Candidates::Types(service_types, last) => {
            while let Some(service_type) = service_types.front() {
                let page = shared.read(|state| state.offers.of_type_after(service_type, *last, PAGE));
                if let Some(offer) = page.last() {
                    *last = Some(offer.number);
                    return page;
                }
                service_types.pop_front();
                *last = None;
            }
            Vec::new()
        }
    }
}
