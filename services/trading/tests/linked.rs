//! Traders of this crate that are linked with each other, and links and dynamic properties after a restart.

use spandrel::net::sync::Arc;
use spandrel::services::cos_trading::lookup::{HowManyProps, QueryError, SpecifiedProps};
use spandrel::services::cos_trading::register::ResolveError;
use spandrel::services::cos_trading::{FollowOption, Lookup, Policy, Property};
use spandrel::services::cos_trading_dynamic::{
    DynamicProp, DynamicPropEvalServant, DynamicPropEvalSkeleton, dynamic_prop_eval::EvalDpError,
};
use spandrel::services::cos_trading_repos::ServiceTypeRepository;
use spandrel::types::{Any, Interface as _, TypeCode};
use spandrel::{Endpoint, Orb, Poa};
use spandrel_trading::{TradingOptions, TradingService};

use crate::support::patient;

struct Trader {
    orb: Orb,
    service: Option<TradingService>,
    lookup: Lookup,
}

impl Trader {
    fn with(options: TradingOptions) -> Self {
        let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
        let service = TradingService::start(&orb, patient(options)).unwrap();
        let lookup = service.lookup().unchecked_narrow();
        Self { orb, service: Some(service), lookup }
    }

    /// A trader in memory with one offer of this queue.
    fn with_offer(queue: i32) -> Self {
        let trader = Self::with(TradingOptions::default());
        trader.add_type();
        trader.export(Any::new(queue).unwrap());
        trader
    }

    fn add_type(&self) {
        let types: ServiceTypeRepository = self.lookup.type_repos().unwrap().unwrap().unchecked_narrow();
        types.add_type("Printer", "IDL:Office/Printer:1.0", &[], &[]).unwrap();
    }

    fn export(&self, queue: Any) {
        let properties = [Property { name: "queue".to_owned(), value: queue }];
        let register = self.lookup.register_if().unwrap().unwrap();
        register.export(Some(self.lookup.as_object()), "Printer", &properties).unwrap();
    }

    fn link(&self, name: &str, other: &Self) {
        let links = self.lookup.link_if().unwrap().unwrap();
        let target = self.orb.string_to_object(&other.lookup.as_object().to_string()).unwrap().unchecked_narrow();
        links.add_link(name, Some(&target), FollowOption::Always, FollowOption::Always).unwrap();
    }

    fn query(&self, preference: &str, policies: &[Policy]) -> Result<Vec<i32>, QueryError> {
        let all = SpecifiedProps::Unlisted(HowManyProps::All);
        let (offers, _, _) = self.lookup.query("Printer", "queue >= 0", preference, policies, &all, 100)?;
        Ok(offers.iter().map(|offer| offer.properties[0].value.extract().unwrap()).collect())
    }
}

impl Drop for Trader {
    fn drop(&mut self) {
        self.service.take().map(TradingService::stop);
        _ = self.orb.shutdown();
    }
}

fn always() -> Policy {
    Policy { name: "link_follow_rule".to_owned(), value: Any::new(FollowOption::Always).unwrap() }
}

fn starting_trader(links: &[&str]) -> Policy {
    let links: Vec<String> = links.iter().map(|link| (*link).to_owned()).collect();
    Policy { name: "starting_trader".to_owned(), value: Any::new(links).unwrap() }
}

#[test]
fn five_traders_in_a_ring_answer_in_one_order_and_go_on_without_a_dead_one() {
    let mut traders: Vec<Trader> = [3, 1, 4, 0, 2].map(Trader::with_offer).into();
    for (number, trader) in traders.iter().enumerate() {
        trader.link("next", &traders[(number + 1) % traders.len()]);
    }
    for trader in &traders {
        assert_eq!(trader.query("min queue", &[always()]).unwrap(), [0, 1, 2, 3, 4]);
    }
    // The default follows links for want of own offers.
    assert_eq!(traders[0].query("min queue", &[]).unwrap(), [3]);
    let hops = Policy { name: "hop_count".to_owned(), value: Any::new(1_u32).unwrap() };
    assert_eq!(traders[0].query("max queue", &[always(), hops]).unwrap(), [3, 1]);
    assert_eq!(traders[0].query("max queue", &[starting_trader(&["next", "next"])]).unwrap(), [4]);
    let error = traders[0].query("", &[starting_trader(&["other"])]).unwrap_err();
    assert!(matches!(error, QueryError::InvalidPolicyValue(_)), "{error}");
    let long = Policy { name: "request_id".to_owned(), value: Any::new(vec![0_u8; 10_000]).unwrap() };
    let error = traders[0].query("", &[long]).unwrap_err();
    assert!(matches!(error, QueryError::InvalidPolicyValue(_)), "{error}");
    drop(traders.remove(2));
    assert_eq!(traders[0].query("min queue", &[always()]).unwrap(), [1, 3]);
    assert_eq!(traders[2].query("min queue", &[always()]).unwrap(), [0, 1, 2, 3]);
}

#[test]
fn the_properties_of_the_preference_are_not_shown() {
    let traders = [7, 2].map(Trader::with_offer);
    traders[0].link("next", &traders[1]);
    let none = SpecifiedProps::Unlisted(HowManyProps::None);
    let (offers, _, _) = traders[0].lookup.query("Printer", "", "min queue", &[always()], &none, 100).unwrap();
    assert!(offers.iter().all(|offer| offer.properties.is_empty()));
    let objects: Vec<_> = offers.iter().map(|offer| offer.reference.clone().unwrap()).collect();
    assert!(
        objects[0].is_equivalent(traders[1].lookup.as_object())
            && objects[1].is_equivalent(traders[0].lookup.as_object())
    );
}

#[test]
fn registers_are_resolved_over_links() {
    let traders = [0, 1, 2].map(Trader::with_offer);
    traders[0].link("a", &traders[1]);
    traders[1].link("b", &traders[2]);
    let register = traders[0].lookup.register_if().unwrap().unwrap();
    let path = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let found = register.resolve(&path(&["a", "b"])).unwrap().unwrap();
    let expected = traders[2].lookup.register_if().unwrap().unwrap();
    assert!(found.as_object().is_equivalent(expected.as_object()));
    assert!(matches!(register.resolve(&path(&["a", "c"])), Err(ResolveError::UnknownTraderName(_))));
    assert!(matches!(register.resolve(&path(&["c"])), Err(ResolveError::UnknownTraderName(_))));
}

/// Answers 5.
struct Five;

impl DynamicPropEvalServant for Five {
    fn eval_dp(&self, _name: &str, _type: &TypeCode, _extra: &Any) -> Result<Any, EvalDpError> {
        Ok(Any::new(5_i32).unwrap())
    }
}

#[test]
fn links_and_dynamic_properties_are_there_after_a_restart() {
    let data = tempfile::tempdir().unwrap();
    let other = Trader::with_offer(9);
    let evaluators = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
    let poa = Poa::root(&evaluators).unwrap();
    poa.the_poa_manager().activate().unwrap();
    let id = poa.activate_object(Arc::new(DynamicPropEvalSkeleton::new(Five))).unwrap();
    let trader = Trader::with(TradingOptions::new(data.path()));
    trader.add_type();
    let evaluator = trader.orb.string_to_object(&poa.id_to_reference(&id).unwrap().to_string()).unwrap();
    let dynamic = DynamicProp {
        eval_if: Some(evaluator.unchecked_narrow()),
        returned_type: TypeCode::LONG,
        extra_info: Any::new("").unwrap(),
    };
    trader.export(Any::new(dynamic).unwrap());
    trader.link("other", &other);
    trader.link("removed", &other);
    trader.lookup.link_if().unwrap().unwrap().remove_link("removed").unwrap();
    assert_eq!(trader.query("max queue", &[always()]).unwrap(), [9, 5]);
    drop(trader);
    let trader = Trader::with(TradingOptions::new(data.path()));
    assert_eq!(trader.lookup.link_if().unwrap().unwrap().list_links().unwrap(), ["other"]);
    assert_eq!(trader.query("max queue", &[always()]).unwrap(), [9, 5]);
    evaluators.shutdown().unwrap();
}
