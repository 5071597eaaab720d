//! The traders behind the links of a trader.

use std::fmt;
use std::time::{Duration, Instant};

use spandrel::net::sync::Arc;
use spandrel::services::cos_trading::register::{RegisterNotSupported, ResolveError};
use spandrel::services::cos_trading::{Lookup, Policy, Register};
use spandrel::types::{Any, Interface as _};
use spandrel_constraint::{Limits, Preference};

use super::follow::{
    RemoteQuery, RemoteTarget, merge, policies_of_hop, policies_of_proxy, query_all, requested_properties,
};
use super::links::{LinkStore, Links};
use super::requests::RecentRequests;
use super::rules::{FollowLimits, Hop, hop};
use super::{Followed, FollowedOffers, FollowedQuery};

/// The attributes of a trader that concern links. Read anew for each query, since administrators change them.
#[derive(Clone, Debug)]
pub struct FollowSettings {
    /// The rules and hop counts that bound queries over links.
    pub limits: FollowLimits,
    /// The beginning of the ids of the trader's own requests, which no other trader has.
    pub request_id_stem: Vec<u8>,
}

/// The time limit of each call that resolves the name of a trader.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);

/// The sizes of a trader's tables of links and recent requests.
#[derive(Clone, Copy, Debug)]
pub struct LinkOptions {
    /// The most links (default 1,000).
    pub links: usize,
    /// The ids of recent requests that are remembered, to recognize a query in a circle (default 10,000).
    pub requests: usize,
}

impl Default for LinkOptions {
    fn default() -> Self {
        Self { links: 1_000, requests: 10_000 }
    }
}

/// Forwards queries over a trader's links, and ends those that come back in a circle.
pub struct LinkedTraders {
    /// The links of this trader to others.
    pub links: Links,
    requests: RecentRequests,
    settings: Arc<dyn Fn() -> FollowSettings + Send + Sync>,
}

impl fmt::Debug for LinkedTraders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkedTraders").field("links", &self.links).finish_non_exhaustive()
    }
}

impl LinkedTraders {
    /// A trader without links, whose changes go to `store`. `settings` returns the present settings of the
    /// trader.
    pub fn new(
        options: LinkOptions,
        store: Option<Arc<dyn LinkStore>>,
        settings: Arc<dyn Fn() -> FollowSettings + Send + Sync>,
    ) -> Self {
        Self { links: Links::new(options.links, store), requests: RecentRequests::new(options.requests), settings }
    }

    /// The hops of a query over links, with their targets, in the order of their names.
    fn hops(&self, query: &FollowedQuery<'_>, limits: &FollowLimits) -> Vec<(Lookup, Hop, Vec<String>)> {
        let requested = policy(query.policies, "link_follow_rule").map(|_| query.follow);
        if let Some((first, rest)) = query.starting_trader.split_first() {
            // A named trader is the importer's wish, apart from the hop count.
            let link = self.links.get(first).zip(query.hop_count.checked_sub(1));
            let hop = |hop_count| Hop { hop_count, follow_rule: query.follow };
            return link.map(|(link, hops)| (link.target, hop(hops), rest.to_vec())).into_iter().collect();
        }
        let links = self.links.all().into_iter();
        let followed = links.filter_map(|(_, link)| {
            let hop = hop(requested, query.hop_count, limits, link.rules, query.local > 0)?;
            Some((link.target, hop, Vec::new()))
        });
        followed.collect()
    }
}

impl Followed for LinkedTraders {
    fn is_repeated(&self, request_id: &[u8]) -> bool {
        !self.requests.record(request_id)
    }

    fn follow(&self, query: &FollowedQuery<'_>) -> FollowedOffers {
        let settings = (self.settings)();
        let hops = self.hops(query, &settings.limits);
        // A proxy offer counts as a link.
        let proxies = if query.hop_count > 0 { query.proxies } else { &[] };
        if hops.is_empty() && proxies.is_empty() {
            return FollowedOffers::default();
        }
        let id = policy(query.policies, "request_id").and_then(|value| value.extract().ok());
        let id: Vec<u8> = id.unwrap_or_else(|| self.requests.begin(&settings.request_id_stem));
        let targets = hops.into_iter().filter_map(|(target, hop, rest)| {
            let policies = policies_of_hop(query.policies, hop, &id, &rest);
            // The values are encoded without an error.
            policies.ok().map(|policies| RemoteTarget { target, constraint: query.constraint, policies })
        });
        let behind_proxies = proxies.iter().filter_map(|proxy| {
            let hop = Hop { hop_count: query.hop_count - 1, follow_rule: query.follow };
            let policies = policies_of_proxy(query.policies, hop, &id, &proxy.policies).ok()?;
            Some(RemoteTarget { target: proxy.target.clone(), constraint: &proxy.constraint, policies })
        });
        let targets: Vec<RemoteTarget<'_>> = targets.chain(behind_proxies).collect();
        let Ok(preference) = Preference::parse(query.preference, Limits::default()) else {
            return FollowedOffers::default(); // the query was checked
        };
        let properties = requested_properties(query.desired_props, &preference);
        let remote = RemoteQuery {
            service_type: query.service_type,
            preference: query.preference,
            properties: &properties,
            how_many: query.return_card,
        };
        let answers = query_all(&targets, remote, time_limit(query, &settings.limits));
        let mut limits_applied = Vec::new();
        let mut lists = Vec::new();
        for answer in answers {
            lists.push(answer.offers);
            for name in answer.limits {
                if !limits_applied.contains(&name) {
                    limits_applied.push(name);
                }
            }
        }
        let offers = merge(lists, &preference, query.return_card as usize, || fastrand::u64(..));
        FollowedOffers { offers, limits_applied }
    }

    fn resolve(&self, name: &[String]) -> Option<Result<Option<Register>, ResolveError>> {
        let (first, rest) = name.split_first()?;
        let link = self.links.get(first)?;
        let target: Lookup = link.target.as_object().with_timeout(Some(RESOLVE_TIMEOUT)).unchecked_narrow();
        let register = match target.register_if() {
            Ok(Some(register)) => register,
            Ok(None) => {
                let name = name.to_vec();
                return Some(Err(ResolveError::RegisterNotSupported(RegisterNotSupported { name })));
            }
            Err(exception) => return Some(Err(exception.into())),
        };
        if rest.is_empty() {
            return Some(Ok(Some(register)));
        }
        let register: Register = register.as_object().with_timeout(Some(RESOLVE_TIMEOUT)).unchecked_narrow();
        Some(register.resolve(rest))
    }
}

/// The time for the linked traders. It falls with the hop count, so that a trader has its answer ready, without the offers of
/// one that hangs, before the trader before it stops waiting.
fn time_limit(query: &FollowedQuery<'_>, limits: &FollowLimits) -> Duration {
    let left = query.deadline.saturating_duration_since(Instant::now());
    let most = limits.max_hop_count.max(query.hop_count).saturating_add(1);
    left.mul_f64(f64::from(query.hop_count) / f64::from(most))
}

/// The value of a policy of the importer.
fn policy<'p>(policies: &'p [Policy], name: &str) -> Option<&'p Any> {
    policies.iter().find(|policy| policy.name == name).map(|policy| &policy.value)
}
