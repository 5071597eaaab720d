//! The traders that a query follows beyond the offers of its own trader.

pub mod follow;
pub mod linked;
pub mod links;
pub mod recipe;
pub mod requests;
pub mod rules;

use std::fmt;
use std::time::Instant;

use spandrel::services::cos_trading::{FollowOption, Lookup, Offer, Policy, Register, lookup, register};

/// A query after the checks of its arguments, as other traders receive it.
#[derive(Clone, Copy, Debug)]
pub struct FollowedQuery<'q> {
    /// The service type as the importer named it.
    pub service_type: &'q str,
    /// The constraint as the importer wrote it.
    pub constraint: &'q str,
    /// The preference as the importer wrote it.
    pub preference: &'q str,
    /// The importer's policies, already checked, in the given order.
    pub policies: &'q [Policy],
    /// The properties that the offers of the result have.
    pub desired_props: &'q lookup::SpecifiedProps,
    /// The hops that the query may still go (`hop_count`, bounded by the trader).
    pub hop_count: u32,
    /// The follow rule of importer and trader (`link_follow_rule`, bounded by `max_follow_policy`).
    pub follow: FollowOption,
    /// The targets of proxy offers that match.
    pub proxies: &'q [ProxyTarget],
    /// The links to the trader that the query starts at (`starting_trader`); empty for this one.
    pub starting_trader: &'q [String],
    /// The most offers that are of use: `return_card`.
    pub return_card: u32,
    /// The number of local offers that match; `if_no_local` follows links for 0.
    pub local: usize,
    /// The time at which the query returns with the offers that it has.
    pub deadline: Instant,
}

/// A trader behind a proxy offer, with its part of the query.
#[derive(Clone, Debug)]
pub struct ProxyTarget {
    /// The `Lookup` to query.
    pub target: Lookup,
    /// The constraint of the proxy offer's recipe.
    pub constraint: String,
    /// The policies that take the place of the importer's (`policies_to_pass_on`).
    pub policies: Vec<Policy>,
}

/// The offers of other traders, and the policies that limited them.
#[derive(Debug, Default)]
pub struct FollowedOffers {
    /// Offers of other traders, each of them in its trader's order.
    pub offers: Vec<Offer>,
    /// The names of the policies that limited other traders.
    pub limits_applied: Vec<String>,
}

/// The links of a trader, and the traders behind its proxy offers.
pub trait Followed: fmt::Debug + Send + Sync {
    /// Records the `request_id` of a query. Returns whether it was recorded before: the answer is empty then.
    fn is_repeated(&self, request_id: &[u8]) -> bool;

    /// Passes a query on to linked traders, in parallel, and to the targets of proxy offers.
    fn follow(&self, query: &FollowedQuery<'_>) -> FollowedOffers;

    /// The register of the trader that a path of links leads to; `None` if the first link does not exist.
    fn resolve(&self, name: &[String]) -> Option<Result<Option<Register>, register::ResolveError>>;
}
