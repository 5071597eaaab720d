//! Addresses of the Internet family: text, names, order.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};

use proptest::prelude::*;
use spandrel_ipc::inet::Addr;

proptest! {
    #[test]
    fn a_displayed_address_parses_to_itself(ip: IpAddr, port: u16) {
        let addr = Addr::from(SocketAddr::new(ip, port));
        prop_assert_eq!(addr.to_string().parse::<Addr>(), Ok(addr));
        prop_assert_eq!(Addr::new(&addr.host(), port).unwrap(), addr);
        prop_assert_eq!(SocketAddr::from(addr), SocketAddr::new(ip, port));
        prop_assert_eq!((addr.ip(), addr.port()), (ip, port));
        prop_assert_eq!(addr.with_port(1).with_port(port), addr);
    }

    #[test]
    fn no_text_makes_parsing_panic(text: String) {
        if let Err(error) = text.parse::<Addr>() {
            prop_assert!(error.to_string().contains(&text));
        }
    }
}

#[test]
fn both_address_forms_are_parsed() {
    let v4: Addr = "127.0.0.1:2809".parse().unwrap();
    let v6: Addr = "[::1]:2809".parse().unwrap();
    assert_eq!(v4, Addr::loopback(2809));
    assert_eq!(v6, Addr::loopback_v6(2809));
    assert_eq!((v4.host(), v6.host()), ("127.0.0.1".to_owned(), "::1".to_owned()));
    assert!(v4.is_loopback() && v6.is_loopback() && !v4.is_any());
    assert!(Addr::any(0).is_any() && Addr::any_v6(0).is_any());
}

#[test]
fn an_invalid_address_is_quoted_in_the_error() {
    for text in ["", "localhost:1", "127.0.0.1", "::1:2809:", "[::1]", "127.0.0.1:65536", "[127.0.0.1]:1"] {
        let error = text.parse::<Addr>().unwrap_err();
        assert!(error.to_string().starts_with(&format!("`{text}` is not an address")), "{error}");
    }
}

#[test]
fn numeric_addresses_need_no_lookup() {
    assert_eq!(Addr::resolve("::1", 7).unwrap(), [Addr::loopback_v6(7)]);
    assert_eq!(Addr::resolve("[::1]", 7).unwrap(), [Addr::loopback_v6(7)]);
    assert_eq!(Addr::new("127.0.0.1", 7).unwrap(), Addr::loopback(7));
}

#[test]
fn localhost_resolves() {
    let addrs = Addr::resolve("localhost", 7).unwrap();
    assert!(!addrs.is_empty());
    assert!(addrs.iter().all(|addr| addr.is_loopback() && addr.port() == 7), "{addrs:?}");
}

#[test]
fn a_name_without_an_address_is_not_found() {
    // RFC 6761, 6.4: names under `invalid` never exist.
    for host in ["no-such-host.invalid", "", "a b", "nul\0inside", "[127.0.0.1]"] {
        let error = Addr::new(host, 1).expect_err(host);
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert!(error.to_string().contains(&format!("`{host}`")), "{error}");
    }
}

#[test]
fn addresses_are_ordered_and_hashed() {
    let addrs = [Addr::loopback(1), Addr::loopback(2), Addr::loopback_v6(1)];
    assert!(addrs.is_sorted());
    assert_eq!(addrs.into_iter().chain(addrs).collect::<HashSet<_>>().len(), 3);
}

#[test]
#[cfg(unix)]
fn the_name_of_a_host_leads_back_to_its_address() {
    let loopback = Addr::loopback(7);
    let name = loopback.host_name().unwrap().expect("the loopback address has a name");
    assert!(Addr::resolve(&name, 7).unwrap().contains(&loopback), "{name}");
}
