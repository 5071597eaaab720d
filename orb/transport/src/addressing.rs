//! Endpoints that are a host and a port: the ports at which they listen, and the hosts and ports that references publish.

use std::{
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
};

use spandrel_ipc::inet;

use crate::{endpoint::Endpoint, host_name::host_name, prefix::Prefix, protocol::SocketSettings};

/// The options of endpoints that are a host and a port.
pub const INET_OPTIONS: [&str; 3] = ["portspan", "publish", "interface"];

/// The addresses of this machine that are published.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Networks {
    All,
    Named(String),
    Within(Prefix),
}

/// Listens at an endpoint that is a host and a port, for IIOP and other protocols over TCP: the acceptor, with the hosts and ports to
/// publish, the preferred one first. Options are those of [`INET_OPTIONS`].
///
/// # Errors
/// Those of the system, saying which option to change, and of an address or an option that is none.
pub fn listen_inet(endpoint: &Endpoint, settings: &SocketSettings) -> io::Result<(inet::Acceptor, Vec<(String, u16)>)> {
    let networks = networks(endpoint)?;
    let (host, port) = endpoint.host_and_port()?;
    let host = match host {
        // An endpoint that says how others reach it is meant for others.
        "" if networks.is_none() && endpoint.option("publish").is_none() => "127.0.0.1",
        "" => "*",
        host => host,
    };
    let acceptor = open(endpoint, host, port, settings)?;
    let bound = acceptor.local_addr()?;
    let natural = match &networks {
        Some(networks) => chosen(endpoint, networks, bound.ip())?,
        None => natural(host, bound.ip())?,
    };
    let natural: Vec<_> = natural.into_iter().map(|host| (host, bound.port())).collect();
    let published = match endpoint.option("publish") {
        Some(rules) => publish(endpoint, rules, &natural, bound.port())?,
        None => natural,
    };
    Ok((acceptor, published))
}

/// Opens the first port that is free.
fn open(endpoint: &Endpoint, host: &str, first: u16, settings: &SocketSettings) -> io::Result<inet::Acceptor> {
    let span: u16 = match endpoint.option("portspan") {
        None => 1,
        Some(span) => match span.parse() {
            Ok(span @ 1..) if first != 0 => span,
            Ok(1..) => return Err(endpoint.invalid("`portspan` needs a port to begin with")),
            _ => return Err(endpoint.invalid("`portspan` is a number of ports")),
        },
    };
    let last = first.checked_add(span - 1).ok_or_else(|| endpoint.invalid("there is no port beyond 65535"))?;
    let mut refused = None;
    for port in first..=last {
        match open_at(host, port, settings) {
            Ok(acceptor) => return Ok(acceptor),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => refused = Some(error),
            Err(error) => return Err(cannot_listen(endpoint, &format!("{host}:{port}"), &error)),
        }
    }
    let error = refused.unwrap_or_else(|| io::ErrorKind::AddrInUse.into());
    let where_to = if span == 1 { format!("{host}:{first}") } else { format!("any port of {host}:{first}-{last}") };
    Err(cannot_listen(endpoint, &where_to, &error))
}

fn open_at(host: &str, port: u16, settings: &SocketSettings) -> io::Result<inet::Acceptor> {
    let open = |host: &str| {
        let addr = inet::Addr::new(host, port)?;
        // Everywhere means everywhere: `[::]` takes IPv4, too.
        let mut options =
            inet::AcceptorOptions::default().dual_stack(addr.is_any() && matches!(addr.ip(), IpAddr::V6(_)));
        if let Some(octets) = settings.send_queue {
            options = options.send_queue(octets);
        }
        if let Some(octets) = settings.recv_queue {
            options = options.recv_queue(octets);
        }
        inet::Acceptor::open_with(&addr, &options)
    };
    if host != "*" {
        return open(host);
    }
    match open("::") {
        // A system without IPv6.
        Err(error) if !matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied) => {
            open("0.0.0.0")
        }
        opened => opened,
    }
}

/// The system's error, with what can be done.
fn cannot_listen(endpoint: &Endpoint, at: &str, error: &io::Error) -> io::Error {
    let advice = match error.kind() {
        io::ErrorKind::AddrInUse => "another program listens there: choose another port, or several by `portspan=N`",
        io::ErrorKind::AddrNotAvailable => {
            "it is no address of this machine: listen at `*`, and say by `publish=HOST:PORT` how others reach it"
        }
        io::ErrorKind::PermissionDenied => "ports below 1024 are mostly the superuser's: choose another",
        _ => "-ORBListenEndpoints says where to listen",
    };
    io::Error::new(error.kind(), format!("cannot listen at {at} for {endpoint}: {error} ({advice})"))
}

/// The hosts to publish without `publish` and `interface`.
fn natural(host: &str, bound: IpAddr) -> io::Result<Vec<String>> {
    if !bound.is_unspecified() {
        // A name is published as it stands; the zone of an address means nothing elsewhere.
        return Ok(vec![if host.parse::<IpAddr>().is_ok() || host.contains('%') {
            bound.to_string()
        } else {
            host.into()
        }]);
    }
    let all = reachable()?;
    let best = |is_v6: bool| {
        let routed = outgoing(is_v6).filter(is_publishable);
        routed.or_else(|| all.iter().map(|(_, ip)| *ip).find(|ip| ip.is_ipv6() == is_v6))
    };
    let (v4, v6) = (best(false), best(true).filter(|_| bound.is_ipv6()));
    // `[::]` asks for IPv6 first.
    let best = if host == "*" { [v4, v6] } else { [v6, v4] };
    let hosts: Vec<String> = best.into_iter().flatten().map(|ip| ip.to_string()).collect();
    Ok(if hosts.is_empty() { vec!["127.0.0.1".to_owned()] } else { hosts })
}

/// The hosts to publish of those that `interface` names.
fn chosen(endpoint: &Endpoint, networks: &Networks, bound: IpAddr) -> io::Result<Vec<String>> {
    let fits = |name: &str, ip: IpAddr| match networks {
        Networks::All => true,
        Networks::Named(interface) => name == interface,
        Networks::Within(prefix) => prefix.contains(ip),
    };
    let is_bound = |ip: &IpAddr| if bound.is_unspecified() { bound.is_ipv6() || ip.is_ipv4() } else { *ip == bound };
    // Loopback is published where it is named.
    let all = if_addrs::get_if_addrs()?;
    let all = all.into_iter().map(|interface| (interface.name.clone(), interface.ip()));
    let all: Vec<_> =
        all.filter(|(_, ip)| is_zone_free(ip) && (*networks != Networks::All || !ip.is_loopback())).collect();
    let found = all.iter().filter(|(name, ip)| fits(name, *ip) && is_bound(ip));
    let hosts: Vec<String> = found.map(|(_, ip)| ip.to_string()).collect();
    if hosts.is_empty() {
        let all: Vec<String> = all.iter().map(|(name, ip)| format!("{name} {ip}")).collect();
        return Err(
            endpoint.invalid(format_args!("`interface` names no address that is listened at, of {}", all.join(", ")))
        );
    }
    Ok(hosts)
}

fn networks(endpoint: &Endpoint) -> io::Result<Option<Networks>> {
    Ok(match endpoint.option("interface") {
        None => None,
        Some("") => return Err(endpoint.invalid("`interface` is the name of one, a prefix of addresses, or `all`")),
        Some("all") => Some(Networks::All),
        Some(text) => Some(match text.parse() {
            Ok(prefix) => Networks::Within(prefix),
            Err(reason) if text.contains('/') => return Err(endpoint.invalid(format_args!("`{text}`: {reason}"))),
            Err(_) => Networks::Named(text.to_owned()),
        }),
    })
}

/// The hosts and ports of `publish`, separated by commas: `host:port`, `host` with the port that is listened at, `addr` for what would be published
/// without, `hostname` for what this machine calls itself.
fn publish(endpoint: &Endpoint, rules: &str, natural: &[(String, u16)], port: u16) -> io::Result<Vec<(String, u16)>> {
    let mut published: Vec<(String, u16)> = Vec::new();
    for rule in rules.split(',').filter(|rule| !rule.is_empty()) {
        // As omniORB spells it.
        let rule = rule.strip_prefix("giop:tcp:").unwrap_or(rule);
        let added = match rule {
            "addr" => natural.to_vec(),
            "hostname" => vec![(host_name(), port)],
            rule => {
                let at = Endpoint::of(endpoint.scheme(), rule);
                let (host, said) = at
                    .host_and_port()
                    .map_err(|_| endpoint.invalid(format_args!("`{rule}` is no host:port to publish")))?;
                let said = if said == 0 { port } else { said };
                // Without a host, the natural ones by another port.
                if host.is_empty() {
                    natural.iter().map(|(host, _)| (host.clone(), said)).collect()
                } else {
                    vec![(host.split('%').next().unwrap_or(host).to_owned(), said)]
                }
            }
        };
        published.extend(added.into_iter().filter(|new| !published.contains(new)).collect::<Vec<_>>());
    }
    if published.is_empty() { Err(endpoint.invalid("`publish` says nothing to publish")) } else { Ok(published) }
}

/// Link-local addresses mean nothing without the name of a link.
fn is_zone_free(ip: &IpAddr) -> bool {
    !matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

fn is_publishable(ip: &IpAddr) -> bool {
    is_zone_free(ip) && !ip.is_loopback() && !ip.is_unspecified()
}

/// The addresses by which others may reach this machine, with the names of their interfaces.
fn reachable() -> io::Result<Vec<(String, IpAddr)>> {
    let all = if_addrs::get_if_addrs()?.into_iter().map(|interface| (interface.name.clone(), interface.ip()));
    Ok(all.filter(|(_, ip)| is_publishable(ip)).collect())
}

/// The address from which this machine sends to others: rather than that of a bridge to its own containers. Nothing is sent.
fn outgoing(is_v6: bool) -> Option<IpAddr> {
    // Addresses for documentation, which lie behind the default route if anything does.
    let (from, to) = if is_v6 { ("[::]:0", "[2001:db8::1]:9") } else { ("0.0.0.0:0", "192.0.2.255:9") };
    let socket = UdpSocket::bind(from.parse::<SocketAddr>().ok()?).ok()?;
    socket.connect(to).ok()?;
    socket.local_addr().ok().map(|addr| addr.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(rules: &str) -> io::Result<Vec<(String, u16)>> {
        publish(&Endpoint::new("", 0), rules, &[("10.0.0.1".into(), 77), ("2001:db8::2".into(), 77)], 77)
    }

    fn pairs(expected: &[(&str, u16)]) -> Vec<(String, u16)> {
        expected.iter().map(|(host, port)| ((*host).to_owned(), *port)).collect()
    }

    #[test]
    fn what_is_published_is_said_in_order() {
        for (rules, expected) in [
            ("nat.example:9999", &[("nat.example", 9999)][..]),
            ("nat.example", &[("nat.example", 77)]),
            ("a:1,[::1]:2,addr", &[("a", 1), ("::1", 2), ("10.0.0.1", 77), ("2001:db8::2", 77)]),
            (":9", &[("10.0.0.1", 9), ("2001:db8::2", 9)]),
            ("giop:tcp:a:1,a:1", &[("a", 1)]),
            ("[fe80::1%eth0]:4", &[("fe80::1", 4)]),
        ] {
            assert_eq!(published(rules).unwrap(), pairs(expected), "{rules}");
        }
        for rules in ["", ",", "a:70000", "a:b"] {
            assert!(published(rules).is_err(), "{rules}");
        }
    }

    #[test]
    fn addresses_are_published_without_zones() {
        let bound = "fe80::1".parse().unwrap();
        assert_eq!(natural("fe80::1%1", bound).unwrap(), ["fe80::1"]);
        assert_eq!(natural("host.example", "10.0.0.1".parse().unwrap()).unwrap(), ["host.example"]);
        assert!(natural("*", "::".parse().unwrap()).unwrap().iter().all(|host| !host.contains('%')));
    }

    #[test]
    fn ports_are_tried_in_turn() {
        let first = inet::Acceptor::open(&inet::Addr::loopback(0)).unwrap();
        let port = first.local_addr().unwrap().port();
        let endpoint = Endpoint::new("127.0.0.1", port);
        let refused = listen_inet(&endpoint, &SocketSettings::default()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
        assert!(refused.to_string().contains("portspan"), "{refused}");
        let Some(last) = port.checked_add(99) else { return };
        let (second, published) =
            listen_inet(&endpoint.with("portspan", "100"), &SocketSettings::default()).expect("one of them is free");
        let chosen = second.local_addr().unwrap().port();
        assert!(chosen > port && chosen <= last);
        assert_eq!(published, [("127.0.0.1".to_owned(), chosen)]);
    }

    #[test]
    fn options_that_make_no_sense_are_refused() {
        for (endpoint, named) in [
            ("iiop://:0/portspan=3", "a port to begin with"),
            ("iiop://:5000/portspan=0", "a number of ports"),
            ("iiop://:65535/portspan=2", "65535"),
            ("iiop://*:0/interface=no-such-interface", "`interface`"),
            ("iiop://*:0/interface=10.0.0.0/99", "longer"),
            ("iiop://*:0/publish=", "`publish`"),
        ] {
            let refused = listen_inet(&endpoint.parse().unwrap(), &SocketSettings::default()).unwrap_err().to_string();
            assert!(refused.contains(named), "{endpoint}: {refused}");
        }
    }
}
