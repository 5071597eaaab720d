//! The rules by which a query goes over links (Trading Object Service 1.0, 2.2.6): pure functions.

use spandrel::services::cos_trading::FollowOption;

/// The trader's attributes that bound queries over its links, and stand for absent policies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FollowLimits {
    /// The rule of queries without the policy `link_follow_rule`.
    pub def_follow_policy: FollowOption,
    /// The most permissive rule that a query may have; others are reduced to it.
    pub max_follow_policy: FollowOption,
    /// The hop count of queries without the policy `hop_count`.
    pub def_hop_count: u32,
    /// The highest hop count that a query may have; others are reduced to it.
    pub max_hop_count: u32,
}

/// The rules that an administrator has given a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkRules {
    /// The rule that is passed on for queries without one.
    pub default: FollowOption,
    /// The most permissive rule that a query may have over the link.
    pub limit: FollowOption,
}

/// A query over one link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hop {
    /// The links that the query may follow from the linked trader on.
    pub hop_count: u32,
    /// The rule for these links.
    pub follow_rule: FollowOption,
}

/// The stricter of two rules: `local_only` before `if_no_local` before `always`.
#[must_use]
pub fn stricter(left: FollowOption, right: FollowOption) -> FollowOption {
    if (left as u32) < right as u32 { left } else { right }
}

/// The hop count of a query, and whether the trader's maximum limited it.
#[must_use]
pub fn hop_count(requested: Option<u32>, limits: &FollowLimits) -> (u32, bool) {
    let requested = requested.unwrap_or(limits.def_hop_count);
    (requested.min(limits.max_hop_count), requested > limits.max_hop_count)
}

/// The hop over a link, or `None` if the query does not follow it.
///
/// `requested` is the query's own rule, and `has_local` tells whether the trader itself has a matching offer. A link is
/// followed by the strictest of the rules of the query (or the trader's default), the link's limit and the trader's maximum. The
/// next trader receives the strictest of these, or without a rule of the query, of the link's default and the trader's maximum.
#[must_use]
pub fn hop(
    requested: Option<FollowOption>,
    hop_count: u32,
    limits: &FollowLimits,
    link: LinkRules,
    has_local: bool,
) -> Option<Hop> {
    let permitted = stricter(limits.max_follow_policy, link.limit);
    let rule = stricter(permitted, requested.unwrap_or(limits.def_follow_policy));
    let is_followed = match rule {
        FollowOption::LocalOnly => false,
        FollowOption::IfNoLocal => !has_local,
        FollowOption::Always => true,
    };
    let hop_count = hop_count.checked_sub(1).filter(|_| is_followed)?;
    let follow_rule = match requested {
        Some(_) => rule,
        None => stricter(link.default, permitted),
    };
    Some(Hop { hop_count, follow_rule })
}
