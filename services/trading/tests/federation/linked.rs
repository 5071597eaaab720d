//! Queries over links: cycles, hop counts, rules, orders, traders that are named, that hang and that are down.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use spandrel::net::sync::{Arc, Mutex};
use spandrel::poa::ObjectId;
use spandrel::services::cos_trading::lookup::{HowManyProps, QueryError, SpecifiedProps};
use spandrel::services::cos_trading::{
    Admin, FollowOption, ImportAttributesServant, Link, Lookup, LookupServant, LookupSkeleton, Offer, OfferIterator,
    Policy, Property, Proxy, Register, SupportAttributesServant, TraderComponentsServant,
};
use spandrel::types::{Any, Interface as _};
use spandrel::{Endpoint, ObjectRef, Orb, Poa, SystemException};
use spandrel_test_support::{TEST_TIMEOUT, eventually, in_background};
use spandrel_trading::federation::linked::{FollowSettings, LinkOptions, LinkedTraders};
use spandrel_trading::federation::rules::{FollowLimits, LinkRules};
use spandrel_trading::federation::{Followed as _, FollowedQuery};

use FollowOption::{Always, IfNoLocal, LocalOnly};

type Result<T> = std::result::Result<T, SystemException>;

const LIMITS: FollowLimits =
    FollowLimits { def_follow_policy: Always, max_follow_policy: Always, def_hop_count: 5, max_hop_count: 5 };
const ALWAYS: LinkRules = LinkRules { default: Always, limit: Always };

/// A trader with given offers, which all match each query.
struct FakeTrader {
    queues: Vec<i32>,
    linked: LinkedTraders,
    queries: AtomicUsize,
    /// Locked while queries hang.
    answers: Mutex<()>,
    /// The time that the trader has for a query.
    time: Duration,
}

impl LookupServant for FakeTrader {
    fn query(
        &self,
        service_type: &str,
        constraint: &str,
        preference: &str,
        policies: &[Policy],
        desired_props: &SpecifiedProps,
        how_many: u32,
    ) -> std::result::Result<(Vec<Offer>, Option<OfferIterator>, Vec<String>), QueryError> {
        self.queries.fetch_add(1, Ordering::Relaxed);
        drop(self.answers.lock());
        let policy = |name: &str| policies.iter().find(|policy| policy.name == name).map(|policy| &policy.value);
        let id: Option<Vec<u8>> = policy("request_id").and_then(|value| value.extract().ok());
        if id.is_some_and(|id| self.linked.is_repeated(&id)) {
            return Ok((Vec::new(), None, Vec::new()));
        }
        let mut offers: Vec<Offer> = self.queues.iter().map(|queue| offer(*queue)).collect();
        let starting_trader: Vec<String> =
            policy("starting_trader").and_then(|value| value.extract().ok()).unwrap_or_default();
        if !starting_trader.is_empty() {
            offers.clear();
        }
        let followed = self.linked.follow(&FollowedQuery {
            service_type,
            constraint,
            preference,
            policies,
            desired_props,
            hop_count: policy("hop_count").and_then(|value| value.extract().ok()).unwrap_or(LIMITS.def_hop_count),
            follow: policy("link_follow_rule").and_then(|value| value.extract().ok()).unwrap_or(Always),
            proxies: &[],
            starting_trader: &starting_trader,
            return_card: how_many,
            local: offers.len(),
            deadline: Instant::now() + self.time,
        });
        offers.extend(followed.offers);
        Ok((offers, None, followed.limits_applied))
    }
}

impl TraderComponentsServant for FakeTrader {
    fn lookup_if(&self) -> Result<Option<Lookup>> {
        Ok(None)
    }
    fn register_if(&self) -> Result<Option<Register>> {
        Ok(None)
    }
    fn link_if(&self) -> Result<Option<Link>> {
        Ok(None)
    }
    fn proxy_if(&self) -> Result<Option<Proxy>> {
        Ok(None)
    }
    fn admin_if(&self) -> Result<Option<Admin>> {
        Ok(None)
    }
}

impl SupportAttributesServant for FakeTrader {
    fn supports_modifiable_properties(&self) -> Result<bool> {
        Ok(false)
    }
    fn supports_dynamic_properties(&self) -> Result<bool> {
        Ok(false)
    }
    fn supports_proxy_offers(&self) -> Result<bool> {
        Ok(false)
    }
    fn type_repos(&self) -> Result<Option<ObjectRef>> {
        Ok(None)
    }
}

macro_rules! attributes {
    ($($name:ident: $type:ty = $value:expr;)*) => {
        impl ImportAttributesServant for FakeTrader {
            $(fn $name(&self) -> Result<$type> {
                Ok($value)
            })*
        }
    };
}

attributes! {
    def_search_card: u32 = 100;
    max_search_card: u32 = 100;
    def_match_card: u32 = 100;
    max_match_card: u32 = 100;
    def_return_card: u32 = 100;
    max_return_card: u32 = 100;
    max_list: u32 = 100;
    def_hop_count: u32 = LIMITS.def_hop_count;
    max_hop_count: u32 = LIMITS.max_hop_count;
    def_follow_policy: FollowOption = LIMITS.def_follow_policy;
    max_follow_policy: FollowOption = LIMITS.max_follow_policy;
}

fn offer(queue: i32) -> Offer {
    let property = Property { name: "queue".to_owned(), value: Any::new(queue).unwrap() };
    Offer { reference: None, properties: vec![property] }
}

fn queues(offers: &[Offer]) -> Vec<i32> {
    offers.iter().map(|offer| offer.properties[0].value.extract().unwrap()).collect()
}

/// A fake trader on an ORB of its own, so that it can be ended alone.
struct Served {
    orb: Orb,
    trader: Arc<FakeTrader>,
    lookup: Lookup,
}

impl Served {
    fn new(number: usize, queues: &[i32], time: Duration) -> Self {
        let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
        let poa = Poa::root(&orb).unwrap();
        poa.the_poa_manager().activate().unwrap();
        let stem = format!("trader {number} ").into_bytes();
        let settings = move || FollowSettings { limits: LIMITS, request_id_stem: stem.clone() };
        let trader = Arc::new(FakeTrader {
            queues: queues.to_vec(),
            linked: LinkedTraders::new(LinkOptions::default(), None, Arc::new(settings)),
            queries: AtomicUsize::new(0),
            answers: Mutex::new(()),
            time,
        });
        let id: ObjectId = poa.activate_object(Arc::new(LookupSkeleton::new(Arc::clone(&trader)))).unwrap();
        let lookup = poa.id_to_reference(&id).unwrap().unchecked_narrow();
        Self { orb, trader, lookup }
    }

    /// Adds a link; the reference is that of this trader's ORB.
    fn link(&self, name: &str, other: &Self, rules: LinkRules) {
        let target = self.orb.string_to_object(&other.lookup.as_object().to_string()).unwrap();
        self.trader.linked.links.add(name, Some(&target.unchecked_narrow()), rules, Always).unwrap();
    }

    fn queries(&self) -> usize {
        self.trader.queries.load(Ordering::Relaxed)
    }

    fn query(&self, preference: &str, policies: &[Policy], how_many: u32) -> Vec<i32> {
        let all = SpecifiedProps::Unlisted(HowManyProps::All);
        let (offers, _, _) = self.lookup.query("Printer", "", preference, policies, &all, how_many).unwrap();
        queues(&offers)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        _ = self.orb.shutdown();
    }
}

fn policy(name: &str, value: Any) -> Policy {
    Policy { name: name.to_owned(), value }
}

fn hops(count: u32) -> [Policy; 1] {
    [policy("hop_count", Any::new(count).unwrap())]
}

/// Traders that are linked in a ring, each with one offer: its number.
fn ring(count: i32) -> Vec<Served> {
    let traders: Vec<Served> = (0..count).map(|number| Served::new(number as usize, &[number], TEST_TIMEOUT)).collect();
    for (number, trader) in traders.iter().enumerate() {
        trader.link("next", &traders[(number + 1) % traders.len()], ALWAYS);
    }
    traders
}

#[test]
fn a_ring_of_five_traders_answers_once_each_and_goes_on_without_a_dead_one() {
    let mut traders = ring(5);
    assert_eq!(traders[0].query("first", &[], 100), [0, 1, 2, 3, 4]);
    // The query returned to the first trader, which recognized it.
    assert_eq!(traders.iter().map(Served::queries).collect::<Vec<_>>(), [2, 1, 1, 1, 1]);
    assert_eq!(traders[3].query("first", &[], 100), [3, 4, 0, 1, 2]);
    assert_eq!(traders[0].query("first", &hops(2), 100), [0, 1, 2]);
    assert_eq!(traders[0].query("first", &hops(0), 100), [0]);
    drop(traders.remove(3));
    assert_eq!(traders[0].query("first", &[], 100), [0, 1, 2]);
    assert_eq!(traders[3].query("first", &[], 100), [4, 0, 1, 2]);
}

#[test]
fn a_query_follows_links_as_their_rules_say() {
    let traders = ["with", "without"].map(|name| match name {
        "with" => Served::new(0, &[0], TEST_TIMEOUT),
        _ => Served::new(1, &[], TEST_TIMEOUT),
    });
    let other = Served::new(2, &[7], TEST_TIMEOUT);
    for (name, limit) in [("never", LocalOnly), ("empty", IfNoLocal)] {
        for trader in &traders {
            trader.link(name, &other, LinkRules { default: LocalOnly, limit });
        }
    }
    assert_eq!(traders[0].query("first", &[], 100), [0]);
    assert_eq!(traders[1].query("first", &[], 100), [7]);
    let local = [policy("link_follow_rule", Any::new(LocalOnly).unwrap())];
    assert_eq!(traders[1].query("first", &local, 100), [0_i32; 0]);
}

#[test]
fn linked_traders_are_queried_at_the_same_time_and_their_offers_ordered() {
    let first = Served::new(0, &[], TEST_TIMEOUT);
    let others = [Served::new(1, &[5, 1], TEST_TIMEOUT), Served::new(2, &[4, 2], TEST_TIMEOUT)];
    for (name, other) in ["a", "b"].into_iter().zip(&others) {
        first.link(name, other, ALWAYS);
    }
    // Neither answers until both were asked.
    let guards = others.each_ref().map(|other| other.trader.answers.lock());
    let lookup = first.lookup.clone();
    let query = in_background(move || {
        let all = SpecifiedProps::Unlisted(HowManyProps::None);
        lookup.query("Printer", "", "min queue", &[], &all, 3).unwrap().0
    });
    eventually(|| others.iter().all(|other| other.queries() == 1));
    drop(guards);
    assert_eq!(queues(&query.recv_timeout(TEST_TIMEOUT).unwrap()), [1, 2, 4]);
}

#[test]
fn a_linked_trader_that_hangs_leaves_the_offers_of_the_others() {
    let first = Served::new(0, &[0], Duration::from_millis(400));
    let others = [Served::new(1, &[1], TEST_TIMEOUT), Served::new(2, &[2], TEST_TIMEOUT)];
    for (name, other) in ["a", "b"].into_iter().zip(&others) {
        first.link(name, other, ALWAYS);
    }
    let hangs = others[0].trader.answers.lock();
    // On a loaded machine, an answer of the other trader may take longer than the time limit.
    eventually(|| first.query("first", &[], 100) == [0, 2]);
    drop(hangs);
}

#[test]
fn a_query_goes_to_the_trader_that_it_names() {
    let traders = ring(3);
    let name = |links: &[&str]| {
        let links: Vec<String> = links.iter().map(|link| (*link).to_owned()).collect();
        [policy("starting_trader", Any::new(links).unwrap()), hops(2)[0].clone()]
    };
    // With the hops that are left, the query goes on from there.
    assert_eq!(traders[0].query("first", &name(&["next"]), 100), [1, 2]);
    assert_eq!(traders[0].query("first", &name(&["next", "next"]), 100), [2]);
    assert_eq!(traders[0].query("first", &name(&["nosuch"]), 100), [0_i32; 0]);
}
