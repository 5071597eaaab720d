//! The links of a trader to others, with their rules.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use spandrel::SystemException;
use spandrel::net::sync::{Arc, Mutex, RwLock};
use spandrel::services::cos_trading::link::{
    AddLinkError, DefaultFollowTooPermissive, DescribeLinkError, DuplicateLinkName, IllegalLinkName,
    LimitingFollowTooPermissive, LinkInfo, ModifyLinkError, RemoveLinkError, UnknownLinkName,
};
use spandrel::services::cos_trading::{FollowOption, InvalidLookupRef, Lookup};
use spandrel::types::Interface as _;
use spandrel_daemon::require_at_most;

use super::rules::{LinkRules, stricter};
use crate::names::is_identifier;

/// The data of one link, as the store has it.
#[derive(Clone, Debug)]
pub struct LinkRecord {
    /// The trader that receives queries over the link.
    pub target: Lookup,
    /// The rules that bound queries over this link.
    pub rules: LinkRules,
}

/// The store of links. A change that cannot be stored is refused.
pub trait LinkStore: fmt::Debug + Send + Sync {
    /// Stores a link with this name, or removes it; durable when this returns.
    ///
    /// # Errors
    /// PERSIST_STORE.
    fn store(&self, name: &str, link: Option<&LinkRecord>) -> Result<(), SystemException>;
}

/// The links of a trader by their names.
#[derive(Debug)]
pub struct Links {
    limit: usize,
    store: Option<Arc<dyn LinkStore>>,
    /// Held during a change, so that queries read while the disk is written.
    changes: Mutex<()>,
    links: RwLock<BTreeMap<String, LinkRecord>>,
}

impl Links {
    /// An empty table of at most this many links, in memory or in a store.
    #[must_use]
    pub fn new(limit: usize, store: Option<Arc<dyn LinkStore>>) -> Self {
        Self { limit, store, changes: Mutex::default(), links: RwLock::default() }
    }

    /// Stores and applies a change, with the lock of changes held.
    fn change(&self, name: &str, link: Option<LinkRecord>) -> Result<(), SystemException> {
        if let Some(store) = &self.store {
            store.store(name, link.as_ref())?;
        }
        let mut links = self.links.write();
        match link {
            Some(link) => _ = links.insert(name.to_owned(), link),
            None => _ = links.remove(name),
        }
        Ok(())
    }

    /// Adds a link; the order of the checks is that of the operation's `raises` clause.
    ///
    /// # Errors
    /// The exceptions of `Link::add_link` (2.5.6); IMP_LIMIT for one link too many.
    pub fn add(
        &self,
        name: &str,
        target: Option<&Lookup>,
        rules: LinkRules,
        maximum: FollowOption,
    ) -> Result<(), AddLinkError> {
        if !is_identifier(name) {
            return Err(AddLinkError::IllegalLinkName(IllegalLinkName { name: name.to_owned() }));
        }
        let _changes = self.changes.lock();
        if self.get(name).is_some() {
            return Err(AddLinkError::DuplicateLinkName(DuplicateLinkName { name: name.to_owned() }));
        }
        let Some(target) = target else {
            return Err(AddLinkError::InvalidLookupRef(InvalidLookupRef { target: None }));
        };
        match violation(rules, maximum) {
            Some(Violation::Default(raised)) => return Err(AddLinkError::DefaultFollowTooPermissive(raised)),
            Some(Violation::Limit(raised)) => return Err(AddLinkError::LimitingFollowTooPermissive(raised)),
            None => {}
        }
        require_at_most(self.links.read().len() + 1, self.limit, "links")?;
        Ok(self.change(name, Some(LinkRecord { target: target.clone(), rules }))?)
    }

    /// Removes a link; the change is durable when this returns.
    ///
    /// # Errors
    /// The exceptions of `Link::remove_link`.
    pub fn remove(&self, name: &str) -> Result<(), RemoveLinkError> {
        if !is_identifier(name) {
            return Err(RemoveLinkError::IllegalLinkName(IllegalLinkName { name: name.to_owned() }));
        }
        let _changes = self.changes.lock();
        if self.get(name).is_none() {
            return Err(RemoveLinkError::UnknownLinkName(UnknownLinkName { name: name.to_owned() }));
        }
        Ok(self.change(name, None)?)
    }

    /// Changes the rules of a link, if `maximum` permits them.
    ///
    /// # Errors
    /// The exceptions of `Link::modify_link`.
    pub fn modify(&self, name: &str, rules: LinkRules, maximum: FollowOption) -> Result<(), ModifyLinkError> {
        if !is_identifier(name) {
            return Err(ModifyLinkError::IllegalLinkName(IllegalLinkName { name: name.to_owned() }));
        }
        let _changes = self.changes.lock();
        let Some(link) = self.get(name) else {
            return Err(ModifyLinkError::UnknownLinkName(UnknownLinkName { name: name.to_owned() }));
        };
        match violation(rules, maximum) {
            Some(Violation::Default(raised)) => Err(ModifyLinkError::DefaultFollowTooPermissive(raised)),
            Some(Violation::Limit(raised)) => Err(ModifyLinkError::LimitingFollowTooPermissive(raised)),
            None => Ok(self.change(name, Some(LinkRecord { rules, ..link }))?),
        }
    }

    /// A link with the `Register` of its target. The target is asked for it; nil if it does not answer within
    /// `timeout`.
    ///
    /// # Errors
    /// The exceptions of `Link::describe_link`.
    pub fn describe(&self, name: &str, timeout: Duration) -> Result<LinkInfo, DescribeLinkError> {
        if !is_identifier(name) {
            return Err(DescribeLinkError::IllegalLinkName(IllegalLinkName { name: name.to_owned() }));
        }
        let Some(link) = self.get(name) else {
            return Err(DescribeLinkError::UnknownLinkName(UnknownLinkName { name: name.to_owned() }));
        };
        let bounded: Lookup = link.target.as_object().with_timeout(Some(timeout)).unchecked_narrow();
        Ok(LinkInfo {
            target_reg: bounded.register_if().ok().flatten(),
            target: Some(link.target),
            def_pass_on_follow_rule: link.rules.default,
            limiting_follow_rule: link.rules.limit,
        })
    }

    /// The link with this name; `None` if there is none.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<LinkRecord> {
        self.links.read().get(name).cloned()
    }

    /// Whether no query needs to be forwarded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.links.read().is_empty()
    }

    /// The names of all links, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.links.read().keys().cloned().collect()
    }

    /// All links in the order of their names.
    #[must_use]
    pub fn all(&self) -> Vec<(String, LinkRecord)> {
        self.links.read().iter().map(|(name, link)| (name.clone(), link.clone())).collect()
    }

    /// Adds a link of the store, when the trader starts.
    pub fn restore(&self, name: String, link: LinkRecord) {
        self.links.write().insert(name, link);
    }
}

enum Violation {
    Default(DefaultFollowTooPermissive),
    Limit(LimitingFollowTooPermissive),
}

/// The default rule may permit no more than the limit, and the limit no more than the trader's maximum.
fn violation(rules: LinkRules, maximum: FollowOption) -> Option<Violation> {
    if stricter(rules.default, rules.limit) != rules.default {
        return Some(Violation::Default(DefaultFollowTooPermissive {
            def_pass_on_follow_rule: rules.default,
            limiting_follow_rule: rules.limit,
        }));
    }
    if stricter(rules.limit, maximum) != rules.limit {
        return Some(Violation::Limit(LimitingFollowTooPermissive {
            limiting_follow_rule: rules.limit,
            max_link_follow_policy: maximum,
        }));
    }
    None
}
