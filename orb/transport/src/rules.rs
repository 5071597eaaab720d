//! Transport rules, as in omniORB: the permitted server addresses, their transports, and the permitted
//! clients.
//!
//! A rule is a set of addresses and the transports permitted for them: `10.0.0.0/8 uds,iiop`. The first rule
//! whose set contains an address decides, and its transports are in order of preference. An address in no
//! rule is forbidden; without rules every address is permitted.

use std::{fmt, net::IpAddr};

use spandrel_ipc::inet;

use crate::{
    address::{Address, scheme_of},
    prefix::Prefix,
};

/// The distance between the ranks of two rules: more than the transports that a rule can name.
const STEP: u32 = 1 << 8;

/// Decision on the server addresses to call, and on their order.
pub trait AddressSelection: fmt::Debug + Send + Sync {
    /// Whether the protocol with this scheme is used at all.
    fn uses(&self, scheme: &str) -> bool;

    /// Whether the ranks of addresses have another order than their costs.
    fn has_preferences(&self) -> bool;

    /// The rank of an address among those of the same server, the lowest first; `None` if it is not
    /// permitted. `cost` comes from its protocol.
    fn rank(&self, address: &Address, cost: u32) -> Option<u64>;
}

/// The selection of the options `-ORBTransports` and `-ORBClientTransportRule`.
#[derive(Clone, Debug, Default)]
pub struct TransportSelection {
    /// The permitted schemes, the preferred one first; all without a list.
    pub schemes: Option<Vec<String>>,
    /// The rules that permit or refuse an address; without rules, all are permitted.
    pub rules: TransportRules,
}

impl AddressSelection for TransportSelection {
    fn uses(&self, scheme: &str) -> bool {
        self.schemes.as_ref().is_none_or(|schemes| schemes.iter().any(|used| used == scheme))
    }

    fn has_preferences(&self) -> bool {
        self.schemes.is_some() || !self.rules.0.is_empty()
    }

    fn rank(&self, address: &Address, cost: u32) -> Option<u64> {
        let preference = match &self.schemes {
            None => u64::from(cost),
            Some(schemes) => schemes.iter().position(|scheme| scheme == address.scheme())? as u64,
        };
        Some(u64::from(self.rules.rank(address)?) << 32 | preference)
    }
}

/// A list of rules; the first that contains an address decides.
#[derive(Clone, Debug, Default)]
pub struct TransportRules(Vec<Rule>);

#[derive(Clone, Debug)]
struct Rule {
    addresses: Addresses,
    /// The permitted schemes; empty if none is.
    transports: Vec<String>,
}

#[derive(Clone, Debug)]
enum Addresses {
    All,
    /// The addresses of this machine, and those of transports inside it.
    OwnHost,
    Within(Prefix),
}

/// The network addresses of an address to be checked.
enum Found {
    /// An address inside this machine.
    Inside,
    At(Vec<IpAddr>),
}

impl TransportRules {
    /// Adds rules, separated by `;`: *addresses* *transports*, where addresses are a prefix, `localhost` or
    /// `*`, and transports are names, separated by commas or spaces, or `none`.
    ///
    /// # Errors
    /// The expected form.
    pub fn add(&mut self, text: &str) -> Result<(), &'static str> {
        for rule in text.split(';').map(str::trim).filter(|rule| !rule.is_empty()) {
            self.0.push(parse(rule)?);
        }
        Ok(())
    }

    /// The rank of an address, the lowest is preferred; `None` if it is forbidden.
    #[must_use]
    pub fn rank(&self, address: &Address) -> Option<u32> {
        if self.0.is_empty() {
            return Some(0);
        }
        let is_all = |rule: &Rule| matches!(rule.addresses, Addresses::All);
        // Names are resolved only if a rule depends on them.
        let resolved = if self.0.iter().all(is_all) { Found::At(Vec::new()) } else { resolve(address) };
        let at = self.0.iter().position(|rule| rule.addresses.contain(&resolved))?;
        let preference = self.0[at].transports.iter().position(|scheme| scheme == address.scheme())?;
        u32::try_from(at).ok()?.checked_mul(STEP)?.checked_add(u32::try_from(preference).ok()?)
    }
}

impl Addresses {
    fn contain(&self, found: &Found) -> bool {
        match (self, found) {
            (Self::All, _) | (Self::OwnHost, Found::Inside) => true,
            (Self::OwnHost, Found::At(addresses)) => addresses.iter().any(|address| is_own_host(*address)),
            (Self::Within(prefix), Found::At(addresses)) => addresses.iter().any(|address| prefix.contains(*address)),
            (Self::Within(_), Found::Inside) => false,
        }
    }
}

/// Whether an address is one of this machine.
#[must_use]
pub fn is_own_host(address: IpAddr) -> bool {
    let address = address.to_canonical();
    address.is_loopback()
        || if_addrs::get_if_addrs().is_ok_and(|all| all.iter().any(|interface| interface.ip() == address))
}

fn resolve(address: &Address) -> Found {
    match address.host_and_port() {
        None => Found::Inside,
        Some((host, port)) => {
            // An unresolvable name is within no prefix.
            let addresses = inet::Addr::resolve(host, port).unwrap_or_default();
            Found::At(addresses.iter().map(inet::Addr::ip).collect())
        }
    }
}

fn parse(rule: &str) -> Result<Rule, &'static str> {
    const EXPECTED: &str = "rules like `10.0.0.0/8 uds,iiop; * none`";
    let (addresses, transports) = rule.split_once(char::is_whitespace).ok_or(EXPECTED)?;
    let addresses = match addresses {
        "*" => Addresses::All,
        "localhost" => Addresses::OwnHost,
        prefix => Addresses::Within(prefix.parse().map_err(|_| EXPECTED)?),
    };
    let named = transports.split([',', ' ', '\t']).filter(|name| !name.is_empty());
    let transports: Vec<String> = named.map(|name| scheme_of(name).to_owned()).collect();
    if transports.is_empty() || transports.len() >= STEP as usize {
        return Err(EXPECTED);
    }
    Ok(Rule { addresses, transports })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> TransportRules {
        let mut rules = TransportRules::default();
        rules.add(text).unwrap();
        rules
    }

    fn iiop(host: &str) -> Address {
        Address::at_port("iiop", host, 1)
    }

    #[test]
    fn the_first_rule_that_contains_the_address_decides() {
        let rules =
            rules("10.1.0.0/16 none; 10.0.0.0/255.0.0.0 ssl,tcp; localhost unix,tcp; 2001:db8::/32 iiop; * ssliop");
        assert_eq!(rules.rank(&iiop("10.1.2.3")), None);
        let (tls, plain) = (Address::at_port("ssliop", "10.2.2.3", 1), iiop("10.2.2.3"));
        assert!(rules.rank(&tls).unwrap() < rules.rank(&plain).unwrap());
        assert_eq!(
            rules.rank(&Address::new("uds", "10.2.2.3:1")),
            rules.rank(&Address::new("uds", "/x")),
            "it is a path"
        );
        assert!(rules.rank(&plain).unwrap() < rules.rank(&Address::new("uds", "/x")).unwrap());
        assert!(rules.rank(&iiop("127.0.0.1")).is_some() && rules.rank(&iiop("::1")).is_some());
        assert_eq!(rules.rank(&Address::new("shm", "@x")), None);
        assert!(rules.rank(&iiop("2001:db8::7")).is_some());
        assert_eq!(rules.rank(&iiop("192.0.2.1")), None);
        assert!(rules.rank(&Address::at_port("ssliop", "192.0.2.1", 1)).is_some());
    }

    #[test]
    fn without_rules_all_addresses_are_permitted() {
        assert_eq!(TransportRules::default().rank(&iiop("no-such-host.invalid")), Some(0));
        assert_eq!(rules("10.0.0.0/8 iiop").rank(&iiop("192.0.2.1")), None);
        assert!(rules("* iiop").rank(&iiop("no-such-host.invalid")).is_some());
    }

    #[test]
    fn malformed_rules_are_rejected() {
        for text in ["*", "iiop", "10.0.0.0/40 iiop", "* ,", "host.example iiop", "; 1.2.3.4/x iiop"] {
            assert!(TransportRules::default().add(text).is_err(), "{text}");
        }
        assert!(TransportRules::default().add(" ; ").is_ok(), "none is added");
    }
}
