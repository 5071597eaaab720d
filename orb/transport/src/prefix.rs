//! Prefixes of IP addresses.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr},
    str::FromStr,
};

/// A prefix of IP addresses: the addresses that share their first bits: `10.0.0.0/8`, `10.0.0.0/255.0.0.0`, `2001:db8::/32`, or a
/// single address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Prefix {
    network: IpAddr,
    bits: u32,
}

impl Prefix {
    /// Whether the prefix contains the address. An IPv4 address mapped to IPv6 counts as IPv4.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                is_alike(u128::from(network.to_bits()), u128::from(address.to_bits()), 32 - self.bits)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                is_alike(network.to_bits(), address.to_bits(), 128 - self.bits)
            }
            _ => false,
        }
    }
}

/// Whether two numbers are equal except for their `last` bits.
fn is_alike(one: u128, other: u128, last: u32) -> bool {
    (one ^ other).checked_shr(last).unwrap_or(0) == 0
}

/// The number of bits that a mask compares, if they are the first ones.
fn bits_of(mask: Ipv4Addr) -> Option<u32> {
    let mask = mask.to_bits();
    (mask.leading_ones() + mask.trailing_zeros() >= 32).then(|| mask.leading_ones())
}

impl FromStr for Prefix {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        const EXPECTED: &str = "expected an IP address, with or without the length of a prefix";
        let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
        let address = address.strip_prefix('[').and_then(|address| address.strip_suffix(']')).unwrap_or(address);
        let network: IpAddr = address.parse().map_err(|_| EXPECTED)?;
        let most = if network.is_ipv4() { 32 } else { 128 };
        let bits = match length {
            None => most,
            Some(length) => match length.parse::<Ipv4Addr>() {
                Ok(mask) if network.is_ipv4() => bits_of(mask).ok_or("a mask must be ones, then zeros")?,
                _ => length.parse().map_err(|_| EXPECTED)?,
            },
        };
        if bits > most { Err("the prefix is longer than the address") } else { Ok(Self { network, bits }) }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(prefix: &str, address: &str) -> bool {
        prefix.parse::<Prefix>().unwrap().contains(address.parse().unwrap())
    }

    #[test]
    fn addresses_are_compared_by_their_first_bits() {
        for (prefix, address, expected) in [
            ("10.0.0.0/8", "10.200.3.4", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("172.16.0.0/255.240.0.0", "172.31.255.255", true),
            ("172.16.0.0/255.240.0.0", "172.32.0.0", false),
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3", "10.1.2.2", false),
            ("0.0.0.0/0", "1.2.3.4", true),
            ("0.0.0.0/0", "::1", false),
            ("10.0.0.0/8", "::ffff:10.1.1.1", true),
            ("2001:db8::/32", "2001:db8:1::9", true),
            ("2001:db8::/33", "2001:db8:8000::9", false),
            ("::/0", "fe80::1", true),
            ("[::1]", "::1", true),
        ] {
            assert_eq!(contains(prefix, address), expected, "{prefix} {address}");
        }
    }

    #[test]
    fn text_that_is_not_a_prefix_is_rejected() {
        for text in ["", "10", "10.0.0.0/33", "::/129", "10.0.0.0/255.0.255.0", "10.0.0.0/x", "host/8", "10.0.0.0/-1"] {
            assert!(text.parse::<Prefix>().is_err(), "{text}");
        }
    }
}
