//! Exceptions of the operations on links, in their order.

use std::time::Duration;

use spandrel::net::sync::Arc;
use spandrel::services::cos_trading::link::{
    AddLinkError, DescribeLinkError, LinkInfo, ModifyLinkError, RemoveLinkError,
};
use spandrel::services::cos_trading::{FollowOption, Lookup};
use spandrel::{CompletionStatus, Orb, SystemException};
use spandrel_trading::federation::links::{LinkRecord, LinkStore, Links};
use spandrel_trading::federation::rules::LinkRules;

use FollowOption::{Always, IfNoLocal, LocalOnly};

const RULES: LinkRules = LinkRules { default: IfNoLocal, limit: Always };

/// A reference to no running trader.
fn target(orb: &Orb) -> Lookup {
    orb.string_to_object("corbaloc::127.0.0.1:1/TradingService").unwrap().unchecked_narrow()
}

#[test]
fn links_are_added_described_and_removed() {
    let orb = Orb::builder().build().unwrap();
    let links = Links::new(2, None);
    links.add("b", Some(&target(&orb)), RULES, Always).unwrap();
    links.add("a", Some(&target(&orb)), RULES, Always).unwrap();
    assert_eq!(links.names(), ["a", "b"]);
    let limit = Duration::from_secs(5);
    // A target that does not answer has no Register.
    let LinkInfo { target_reg, def_pass_on_follow_rule, limiting_follow_rule, .. } =
        links.describe("b", limit).unwrap();
    assert_eq!((target_reg, def_pass_on_follow_rule, limiting_follow_rule), (None, IfNoLocal, Always));
    links.modify("b", LinkRules { default: LocalOnly, limit: IfNoLocal }, Always).unwrap();
    assert_eq!(links.describe("b", limit).unwrap().limiting_follow_rule, IfNoLocal);
    let AddLinkError::System(exception) = links.add("c", Some(&target(&orb)), RULES, Always).unwrap_err() else {
        panic!()
    };
    assert!(exception.to_string().contains("IMP_LIMIT"), "{exception}");
    links.remove("a").unwrap();
    assert_eq!(links.names(), ["b"]);
}

#[test]
fn each_fault_has_its_exception() {
    let orb = Orb::builder().build().unwrap();
    let target = target(&orb);
    let links = Links::new(10, None);
    links.add("a", Some(&target), RULES, Always).unwrap();
    // The first fault counts.
    for name in ["", "1a", "a b", "a-b", &"a".repeat(2_000)] {
        assert!(matches!(links.add(name, None, RULES, LocalOnly), Err(AddLinkError::IllegalLinkName(_))), "{name}");
        assert!(matches!(links.remove(name), Err(RemoveLinkError::IllegalLinkName(_))));
        assert!(matches!(links.describe(name, Duration::ZERO), Err(DescribeLinkError::IllegalLinkName(_))));
        assert!(matches!(links.modify(name, RULES, Always), Err(ModifyLinkError::IllegalLinkName(_))));
    }
    assert!(matches!(links.add("a", None, RULES, Always), Err(AddLinkError::DuplicateLinkName(_))));
    assert!(matches!(links.add("b", None, RULES, LocalOnly), Err(AddLinkError::InvalidLookupRef(_))));
    let permissive = LinkRules { default: Always, limit: IfNoLocal };
    let raised = links.add("b", Some(&target), permissive, LocalOnly).unwrap_err();
    let AddLinkError::DefaultFollowTooPermissive(raised) = raised else { panic!("{raised}") };
    assert_eq!((raised.def_pass_on_follow_rule, raised.limiting_follow_rule), (Always, IfNoLocal));
    let raised = links.add("b", Some(&target), RULES, IfNoLocal).unwrap_err();
    let AddLinkError::LimitingFollowTooPermissive(raised) = raised else { panic!("{raised}") };
    assert_eq!((raised.limiting_follow_rule, raised.max_link_follow_policy), (Always, IfNoLocal));
    assert!(matches!(links.remove("b"), Err(RemoveLinkError::UnknownLinkName(_))));
    assert!(matches!(links.describe("b", Duration::ZERO), Err(DescribeLinkError::UnknownLinkName(_))));
    assert!(matches!(links.modify("b", permissive, Always), Err(ModifyLinkError::UnknownLinkName(_))));
    assert!(matches!(links.modify("a", permissive, Always), Err(ModifyLinkError::DefaultFollowTooPermissive(_))));
    assert!(matches!(links.modify("a", RULES, IfNoLocal), Err(ModifyLinkError::LimitingFollowTooPermissive(_))));
    assert_eq!(links.get("a").unwrap().rules, RULES, "a refused change leaves the link as it was");
}

/// Refuses each change.
#[derive(Debug)]
struct FullDisk;

impl LinkStore for FullDisk {
    fn store(&self, _name: &str, _link: Option<&LinkRecord>) -> Result<(), SystemException> {
        Err(SystemException::persist_store(0, CompletionStatus::No))
    }
}

#[test]
fn a_change_that_cannot_be_stored_is_refused() {
    let orb = Orb::builder().build().unwrap();
    let links = Links::new(10, Some(Arc::new(FullDisk)));
    links.restore("a".to_owned(), LinkRecord { target: target(&orb), rules: RULES });
    assert!(matches!(links.add("b", Some(&target(&orb)), RULES, Always), Err(AddLinkError::System(_))));
    assert!(matches!(links.remove("a"), Err(RemoveLinkError::System(_))));
    let stricter = LinkRules { default: LocalOnly, limit: LocalOnly };
    assert!(matches!(links.modify("a", stricter, Always), Err(ModifyLinkError::System(_))));
    assert_eq!(links.names(), ["a"]);
    assert_eq!(links.get("a").unwrap().rules, RULES);
}
