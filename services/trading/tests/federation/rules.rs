//! The rules of links, over all their combinations.

use spandrel::services::cos_trading::FollowOption::{self, Always, IfNoLocal, LocalOnly};
use spandrel_trading::federation::rules::{FollowLimits, Hop, LinkRules, hop, hop_count, stricter};

const OPTIONS: [FollowOption; 3] = [LocalOnly, IfNoLocal, Always];
const LIMITS: FollowLimits =
    FollowLimits { def_follow_policy: IfNoLocal, max_follow_policy: Always, def_hop_count: 2, max_hop_count: 5 };

#[test]
fn the_hop_count_is_limited_by_the_trader() {
    assert_eq!(hop_count(None, &LIMITS), (2, false));
    assert_eq!(hop_count(Some(5), &LIMITS), (5, false));
    assert_eq!(hop_count(Some(6), &LIMITS), (5, true));
    assert_eq!(hop_count(Some(0), &LIMITS), (0, false));
}

#[test]
fn no_link_is_followed_without_hops() {
    let link = LinkRules { default: Always, limit: Always };
    assert_eq!(hop(Some(Always), 0, &LIMITS, link, false), None);
    assert_eq!(hop(Some(Always), 1, &LIMITS, link, true), Some(Hop { hop_count: 0, follow_rule: Always }));
}

// All combinations, against the sentences of the specification about the minimum of the rules.
#[test]
fn the_strictest_rule_counts() {
    for requested in [None, Some(LocalOnly), Some(IfNoLocal), Some(Always)] {
        for (limit, maximum) in OPTIONS.iter().flat_map(|limit| OPTIONS.map(|maximum| (*limit, maximum))) {
            for default in OPTIONS {
                for has_local in [false, true] {
                    let limits = FollowLimits { max_follow_policy: maximum, ..LIMITS };
                    let chosen = hop(requested, 3, &limits, LinkRules { default, limit }, has_local);
                    let rules = [requested.unwrap_or(IfNoLocal), limit, maximum];
                    let is_always = rules.iter().all(|rule| *rule == Always);
                    let is_never = rules.contains(&LocalOnly);
                    assert_eq!(chosen.is_some(), is_always || (!is_never && !has_local));
                    let Some(chosen) = chosen else { continue };
                    assert_eq!(chosen.hop_count, 2);
                    // The next trader may do no more than the link and this trader permit.
                    assert_eq!(stricter(chosen.follow_rule, stricter(limit, maximum)), chosen.follow_rule);
                    let first = requested.unwrap_or(default);
                    assert!([first, limit, maximum].contains(&chosen.follow_rule));
                }
            }
        }
    }
}
